"""Drawings of the HTML page as inline SVG: the memory waterfall and the time series."""

from __future__ import annotations

import json
from collections.abc import Sequence

from analyzer.report import view
from analyzer.report.charts import Chart, figure
from analyzer.report.markup import Html, el, join
from analyzer.report.model import LedgerRow
from analyzer.units import GIB, show_bytes

SPAN = 1000.0
"""Width of a drawing in its own units; the page stretches it."""


def waterfall(rows: Sequence[LedgerRow]) -> Html:
    """The ledger as a table whose bars start where the one above ended: it reads without the drawing too."""
    total = view.ledger_total(rows)
    if total <= 0:
        return Html("")
    body, start = [], 0.0
    for row in rows:
        body.append(
            el(
                "tr",
                el("th", row.item, scope="row"),
                el("td", f"{row.bytes / GIB:.2f}", class_="num"),
                el("td", _bar(row, start, total), class_="bar"),
                el("td", row.note, class_="note soft"),
                el("td", view.lines_text(row.lines), class_="lines"),
            )
        )
        start += row.bytes - row.freed
    head = el(
        "tr",
        el("th", "part", scope="col"),
        el("th", "GiB", scope="col", class_="num"),
        el("th", f"0 to {show_bytes(total)}", scope="col"),
        el("th", "", scope="col", class_="note"),
        el("th", "lines", scope="col"),
    )
    foot = el("tr", el("th", "in all", scope="row"), el("td", f"{total / GIB:.2f}", class_="num"), _rest_of(rows))
    table = el("table", el("thead", head), el("tbody", *body), el("tfoot", foot), class_="ledger")
    return join(table, _key(rows))


def _rest_of(rows: Sequence[LedgerRow]) -> Html:
    freed = sum(row.freed for row in rows)
    note = f"{freed / GIB:.2f} GiB freed after sizing is in two rows and counted once" if freed else ""
    return el("td", note, colspan="3")


def _bar(row: LedgerRow, start: float, total: float) -> Html:
    scale = SPAN / total
    x, width, freed = start * scale, row.bytes * scale, row.freed * scale
    parts = [
        el("line", x1=0, x2=0, y1=0, y2=16, class_="edge"),
        el("line", x1=SPAN, x2=SPAN, y1=0, y2=16, class_="edge"),
    ]
    if width > freed:
        kind = row.kind if row.kind in ("used", "unknown", "kept", "unused", "outside") else "used"
        parts.append(_rect(x, max(width - freed, 1.5), kind))
    if freed:
        parts.append(_rect(x + width - freed, freed, "freed"))
    return el("svg", *parts, viewBox="0 0 1000 16", preserveAspectRatio="none", aria_hidden="true")


def _rect(x: float, width: float, kind: str) -> Html:
    return el("rect", x=round(x, 2), y=2, width=round(width, 2), height=12, class_=kind)


def _key(rows: Sequence[LedgerRow]) -> Html:
    names = {
        "used": "in use", "unknown": "not itemised by the log", "freed": "loaded, then freed after sizing",
        "kept": "kept free on purpose",
        "unused": "left unused", "outside": "outside the budget",
    }  # fmt: skip
    kinds = {row.kind for row in rows} | ({"freed"} if any(row.freed for row in rows) else set())
    swatches = [
        el("span", el("svg", el("rect", width=10, height=10, class_=k), viewBox="0 0 10 10", aria_hidden="true"), name)
        for k, name in names.items()
        if k in kinds
    ]
    return el("p", *swatches, class_="key")


def series(charts: Sequence[Chart]) -> Html:
    """All time series of a run, on one common range that the page's script can zoom."""
    times = charts[0].times
    known = [t for t in times if t is not None]
    timed = len(known) == len(times) and len(known) > 1 and known[-1] > known[0] and known == sorted(known)
    first, last = (known[0], known[-1]) if timed else (0.0, float(max(len(times) - 1, 1)))
    xs = [SPAN * ((t if timed and t is not None else i) - first) / (last - first) for i, t in enumerate(times)]
    buttons = [
        el("button", text, type="button", data_act=act, aria_label=label)
        for act, text, label in (
            ("in", "+", "zoom in"), ("out", "\u2212", "zoom out"), ("back", "\u2190", "earlier"),
            ("on", "\u2192", "later"), ("all", "all", "show all"),
        )
    ]  # fmt: skip
    tools = el("div", *buttons, el("span", "or drag over a chart; double click shows all"), class_="tools")
    figures = [_figure(chart, xs) for chart in charts]
    return el(
        "div",
        tools,
        el("div", *figures, class_="charts"),
        class_="series",
        data_timed="1" if timed else "0",
        data_first=repr(first),
        data_last=repr(last),
    )


def _figure(chart: Chart, all_xs: Sequence[float]) -> Html:
    known = [(x, v) for x, v in zip(all_xs, chart.values, strict=True) if v is not None]
    xs, values = [round(x, 2) for x, _ in known], [round(v, 4) for _, v in known]
    top = chart.high if chart.high > 0 else 1.0
    drawn = [(x, 96 - 90 * min(max(v, 0.0) / top, 1.0)) for x, v in known]
    low, mean, high, last = (figure(v, chart.unit) for v in (chart.low, chart.mean, chart.high, chart.last))
    summary = f"{low} to {high}, mean {mean}, last {last}"
    drawing = el(
        "svg",
        el("line", x1=0, x2=SPAN, y1=96, y2=96, class_="grid"),
        el("line", x1=0, x2=SPAN, y1=6, y2=6, class_="grid"),
        el("path", d=_area(drawn), class_="area"),
        el("path", d=_line(drawn)),
        el("rect", x=0, y=0, width=0, height=100, class_="pick"),
        el("line", x1=0, x2=0, y1=0, y2=100, class_="hair"),
        viewBox="0 0 1000 100",
        preserveAspectRatio="none",
        role="img",
        aria_label=f"{chart.label}: {summary}",
    )
    axis = el(
        "div", el("span", "", class_="from"), el("span", f"top {high}"), el("span", "", class_="to"), class_="axis"
    )
    return el(
        "figure",
        el("figcaption", el("b", chart.label), el("span", summary, class_="read soft")),
        el("div", drawing, class_="plot"),
        axis,
        class_="chart",
        data_unit=chart.unit,
        data_values=json.dumps(values, separators=(",", ":")),
        data_xs=json.dumps(xs, separators=(",", ":")),
    )


def _line(points: Sequence[tuple[float, float]]) -> str:
    x, y = points[0]
    return f"M{x:.1f} {y:.1f}" + "".join(f"L{x:.1f} {y:.1f}" for x, y in points[1:] or [(x + 1, y)])


def _area(points: Sequence[tuple[float, float]]) -> str:
    top = "".join(f"L{x:.1f} {y:.1f}" for x, y in points)
    return f"M{points[0][0]:.1f} 96{top}L{points[-1][0]:.1f} 96Z"
