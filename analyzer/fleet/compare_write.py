"""Comparisons in every form: as text for a stream, and as a file by its ending."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from analyzer.errors import UserError
from analyzer.fleet.compare import Comparison
from analyzer.whole import write_whole

_ENDINGS = {
    ".html": "html", ".htm": "html", ".md": "markdown", ".markdown": "markdown", ".json": "json", ".txt": "text"
}  # fmt: skip


def format_of(path: Path) -> str:
    """The form that the ending of ``path`` names. Raises ``UserError`` for one that names none."""
    if (form := _ENDINGS.get(path.suffix.lower())) is None:
        raise UserError(f"{path}: the ending names no form of a comparison; use one of .html .md .json .txt")
    return form


def render(results: Sequence[Comparison], form: str) -> str:
    """``results`` as text in ``form``: text, json, markdown or html."""
    if form == "json":
        from analyzer.fleet.show_compare import as_json

        return json.dumps([as_json(result) for result in results], indent=1, default=str, ensure_ascii=False) + "\n"
    if form == "markdown":
        from analyzer.fleet.compare_markdown import to_markdown

        return to_markdown(results)
    if form == "html":
        from analyzer.fleet.compare_page import comparison_page

        return comparison_page(results)
    import io

    from rich.console import Console

    from analyzer.fleet.show_compare import WIDTH, print_comparison

    out = io.StringIO()
    for result in results:
        print_comparison(result, Console(file=out, width=WIDTH, color_system=None, highlight=False))
    return out.getvalue()


def write(results: Sequence[Comparison], path: Path) -> None:
    """Writes ``results`` to ``path``, whole or not at all. Raises ``UserError`` if that cannot be done."""
    write_whole(path, render(results, format_of(path)).encode())
