"""Comparisons as one self-contained page: the way from one pool to the other as bars, and what else differs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from analyzer.fleet.compare import Comparison, Difference
from analyzer.fleet.compare_view import MOST, cells, meaning_of, name_of, pools_of, steps_of, tables_of, verdict_of
from analyzer.redact import clean
from analyzer.report.html_charts import SPAN
from analyzer.report.markup import Html, asset, el, join, page


def comparison_page(results: Sequence[Comparison]) -> str:
    """The page as text. All ``results`` have the same first run."""
    first = results[0].before
    others = "another run" if len(results) == 1 else f"{len(results)} others"
    title = f"{clean(first.source)} against {others}"
    body = join(
        el("header", el("h1", title), el("span", name_of(first), class_="soft"), class_="top"),
        el("main", *[_comparison(result) for result in results]),
        el("footer", "Made by kvautopsy. Every share is what the engine's own sizing formula gives for that input."),
    )
    styles = asset("page.css") + (Path(__file__).parent / "assets" / "compare.css").read_text(encoding="utf-8")
    return page(f"{title}: kvautopsy", body, styles=styles)


def _comparison(result: Comparison) -> Html:
    change = result.change
    kind = "soft" if not change else "bad" if change < 0 else "good"
    badge = (
        el("span", pools_of(result).partition("(")[2].rstrip(")").replace("-", "\u2212"), class_=f"badge {kind}")
        if change
        else None
    )
    failed = change is not None and change < 0
    return el(
        "article",
        el("h2", name_of(result.after), " ", badge),
        el("p", verdict_of(result).replace("->", "\u2192"), class_="verdict failed" if failed else "verdict"),
        _way(result),
        _notes(result.warnings),
        *[_differences(title, rows) for title, rows in tables_of(result)],
        class_="run",
    )


def _way(result: Comparison) -> Html | None:
    """From the first pool to the second, one row an input; it reads without the bars too."""
    if result.change is None:
        return None
    steps = steps_of(result)
    a, b = result.pool_before or 0.0, result.pool_after or 0.0
    most = max(a, b, *(edge for step in steps for edge in (step.start, step.end)))
    rows = [_row("pool of the first run", "", f"{a:,.0f}", _bar(0, a, most, "whole"))]
    for step in steps:
        name = join(step.name, *[el("small", item) for item in step.more])
        if about := meaning_of(step.name):
            name = join(name, el("small", about))
        kind = "gain" if step.tokens > 0 else "loss"
        rows.append(_row(name, step.what, f"{step.tokens:+,.0f}", _bar(step.start, step.end, most, kind)))
    rows.append(_row("pool of this run", "", f"{b:,.0f}", _bar(0, b, most, "whole")))
    heads = (("input", None), ("first \u2192 this run", None), ("tokens", "num"), (f"0 to {most:,.0f} tokens", None))
    head = el("tr", *[el("th", text, scope="col", class_=kind) for text, kind in heads])
    table = el("table", el("thead", head), el("tbody", *rows), class_="ledger way")
    return el("section", el("h3", "From one pool to the other"), el("div", table, class_="wide"))


def _row(name: str | Html, what: str, tokens: str, bar: Html) -> Html:
    return el(
        "tr",
        el("th", name, scope="row"),
        el("td", what.replace("->", "\u2192")),
        el("td", tokens, class_="num"),
        el("td", bar, class_="bar"),
    )


def _bar(start: float, end: float, most: float, kind: str) -> Html:
    scale = SPAN / most if most > 0 else 0.0
    left, right = sorted((start * scale, end * scale))
    rect = el("rect", x=round(left, 2), y=2, width=round(max(right - left, 1.5), 2), height=12, class_=kind)
    edges = [el("line", x1=x, x2=x, y1=0, y2=16, class_="edge") for x in (0, SPAN)]
    return el("svg", *edges, rect, viewBox="0 0 1000 16", preserveAspectRatio="none", aria_hidden="true")


def _notes(warnings: Sequence[str]) -> Html | None:
    if not warnings:
        return None
    return el("section", el("h3", "Not to be forgotten"), el("ul", *[el("li", clean(text)) for text in warnings]))


def _differences(title: str, rows: Sequence[Difference]) -> Html:
    def table(part: Sequence[Difference]) -> Html:
        head = el("tr", *[el("th", text, scope="col") for text in ("name", "first run", "this run")])
        lines = [el("tr", *[el("td", text) for text in cells(row)]) for row in part]
        return el("div", el("table", el("thead", head), el("tbody", *lines), class_="differences"), class_="wide")

    rest = rows[MOST:]
    more = el("details", el("summary", f"{len(rest)} more"), table(rest)) if rest else None
    return el("section", el("h3", title), table(rows[:MOST]), more)
