"""What the pages of this package share: printing a sheet of cleaned text, and the exit status."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from analyzer.report.model import SEVERITIES
from analyzer.report.sheet import Sheet

WIDEST = 110


def print_sheet(write: Callable[[Sheet], None]) -> None:
    """Prints what ``write`` puts on a sheet of the terminal's width, without control characters of other people."""
    from rich.console import Console

    from analyzer.redact import clean

    console = Console(highlight=False, soft_wrap=True)
    sheet = Sheet(min(console.width, WIDEST), blocks=(console.encoding or "").lower().startswith("utf"))
    write(sheet)
    sheet.lines = [[piece if isinstance(piece, str) else (clean(piece[0]), piece[1]) for piece in line]
                   for line in sheet.lines]  # fmt: skip
    sheet.print(console)


def exit_status(severities: Iterable[str], fail_on: str) -> int:
    """0 nothing at or above ``fail_on``, else 1 (contract.md)."""
    if fail_on == "never":
        return 0
    limit = SEVERITIES.index(fail_on)
    return int(any(SEVERITIES.index(severity) <= limit for severity in severities))
