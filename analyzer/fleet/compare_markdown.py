"""Comparisons as Markdown for an issue tracker."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from analyzer.fleet.compare import Comparison
from analyzer.fleet.compare_view import MOST, cells, name_of, pools_of, steps_of, tables_of, verdict_of
from analyzer.redact import clean
from analyzer.report.markdown import plain


def to_markdown(results: Sequence[Comparison]) -> str:
    """``results`` as Markdown text."""
    parts = [part for result in results for part in _comparison(result)]
    parts.append("<sub>kvautopsy. Every share is what the engine's own sizing formula gives for that input.</sub>")
    return "\n\n".join(parts) + "\n"


def _comparison(result: Comparison) -> Iterable[str]:
    yield f"## {plain(name_of(result.after))}"
    yield f"against {plain(name_of(result.before))}"
    yield f"**{plain(verdict_of(result))}**"
    if result.change is not None:
        yield f"Pool: {plain(pools_of(result))}"
    if steps := steps_of(result):
        rows = [
            (plain(s.name), plain(" ".join((s.what, ", ".join(s.more))).strip()), f"{s.tokens:+,.0f}") for s in steps
        ]
        yield _table(("input", "first to second run", "tokens"), rows, numbers=1)
    for warning in result.warnings:
        yield f"> {plain(clean(warning))}"
    for title, differences in tables_of(result):
        yield f"### {title}"
        values = [cells(row) for row in differences]
        yield _table(("name", "first run", "second run"), [tuple(map(plain, row)) for row in values[:MOST]])
        if len(values) > MOST:
            yield f"... and {len(values) - MOST} more"


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]], numbers: int = 0) -> str:
    rules = ["---"] * (len(heads) - numbers) + ["---:"] * numbers
    return "\n".join("| " + " | ".join(row) + " |" for row in (heads, rules, *rows))
