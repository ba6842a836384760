"""Reports as text and as files."""

from __future__ import annotations

import io
import sys
from pathlib import Path

from analyzer.errors import UserError
from analyzer.report.model import Report
from analyzer.whole import write_whole

TEXT_WIDTH = 100
EXTENSIONS = {
    ".html": "html", ".htm": "html", ".md": "markdown", ".markdown": "markdown", ".sarif": "sarif",
    ".sarif.json": "sarif", ".junit.xml": "junit", ".xml": "junit", ".json": "json", ".txt": "text",
}  # fmt: skip


def format_of(path: Path) -> str:
    """The format that the extension of ``path`` names. Raises ``UserError`` for one that names none."""
    name = path.name.lower()
    for extension in sorted(EXTENSIONS, key=len, reverse=True):
        if name.endswith(extension):
            return EXTENSIONS[extension]
    known = " ".join(sorted({".html", ".md", ".json", ".sarif", ".junit.xml", ".txt"}))
    raise UserError(f"{path}: the extension names no report format; use one of {known}")


def render(report: Report, format: str, *, noise: bool = False) -> str:
    """``report`` as text in ``format``."""
    if format == "json":
        from analyzer.report.jsonform import dumps

        return dumps(report)
    if format == "markdown":
        from analyzer.report.markdown import to_markdown

        return to_markdown(report)
    if format == "html":
        from analyzer.report.html import to_html

        return to_html(report)
    if format == "sarif":
        from analyzer.report.sarif import to_sarif

        return to_sarif(report)
    if format == "junit":
        from analyzer.report.junit import to_junit

        return to_junit(report)
    if format == "text":
        return _as_text(report, noise=noise)
    raise UserError(f"no such format: {format}")


def print_report(report: Report, format: str = "text", *, noise: bool = False) -> None:
    """Prints ``report`` on standard output in ``format``."""
    if format == "text":
        from rich.console import Console

        from analyzer.report.terminal import to_terminal

        to_terminal(report, Console(file=sys.stdout, highlight=False, markup=False, emoji=False), noise=noise)
        return
    text = render(report, format, noise=noise)
    if hasattr(sys.stdout, "buffer"):
        sys.stdout.flush()
        sys.stdout.buffer.write(text.encode())
        sys.stdout.buffer.flush()
    else:
        sys.stdout.write(text)


def write_report(report: Report, path: Path) -> None:
    """Writes ``report`` to ``path``: first beside it, then renamed, so that no reader meets half a report.

    Raises ``UserError`` if the extension names no format or the place cannot be written.
    """
    path = Path(path)
    text = render(report, format_of(path), noise=True)
    write_whole(path, text.encode())


def _as_text(report: Report, *, noise: bool) -> str:
    from rich.console import Console

    from analyzer.report.terminal import to_terminal

    out = io.StringIO()
    console = Console(
        file=out, width=TEXT_WIDTH, color_system=None, force_terminal=False, highlight=False, markup=False
    )
    to_terminal(report, console, noise=noise)
    return out.getvalue()
