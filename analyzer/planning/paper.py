"""How the pages of this package are printed: a sheet of cleaned text."""

from __future__ import annotations

from collections.abc import Callable

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
