"""An archive as one self-contained page: sortable and filterable runs, causes, pool by version."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analyzer.fleet.show import short_flags
from analyzer.fleet.summary import Summary, load, version_column
from analyzer.fleet.versions import NO_VERSION, span_of_label
from analyzer.redact import clean
from analyzer.report.markup import Html, asset, el, join, page
from analyzer.units import several
from analyzer.whole import write_whole

if TYPE_CHECKING:
    import polars as pl

MOST_ROWS = 20_000
COLUMNS = (
    ("run", "source", False), ("engine", "engine", False), ("version", "version", False),
    ("outcome", "outcome", False), ("cause", "cause", False), ("pool, tokens", "pool_tokens", True),
    ("lost, tokens", "lost_tokens", True), ("running", "limit_running", True), ("context", "limit_context", True),
    ("model", "model_path", False), ("flags", "flags", False),
)  # fmt: skip
CHOICES = ("engine", "outcome", "cause")
_OUTCOMES = {"serving": "good", "stopped": "good", "degraded": "warn"}


def write_page(folder: Path, summary: Summary, path: Path, pages: Path | None = None) -> None:
    """Writes the page of the audit in ``folder``; ``pages`` holds the runs' own pages, which are then linked.

    Raises ``UserError`` if it cannot be written; the file is then as it was.
    """
    write_whole(path, fleet_page(folder, summary, path, pages).encode())


def fleet_page(folder: Path, summary: Summary, path: Path, pages: Path | None = None) -> str:
    """The page as text."""
    runs = load(folder, "runs").with_columns(version_column().alias("version"))
    t = summary.totals
    title = f"{several(t['runs'], 'run')} in {several(t['files'], 'file')}"
    body = join(
        el(
            "header",
            el("h1", title),
            el("span", f"{t['failed']:,} failed, {several(t['findings'], 'finding')}", class_="soft"),
            class_="top",
        ),
        el(
            "main",
            _causes(summary.causes),
            _pools(runs),
            _table(runs, path, pages),
            _frame("The same set-up, a smaller pool in a later version", summary.regressions),
            _frame("More than 20 % off their set-up's median", summary.outliers),
            _frame("Not read", summary.errors),
        ),
    )
    own = Path(__file__).parent / "assets"
    styles = asset("page.css") + (own / "fleet.css").read_text(encoding="utf-8")
    return page(f"{title}: kvautopsy", body, styles=styles, script=(own / "fleet.js").read_text(encoding="utf-8"))


def _causes(causes: pl.DataFrame) -> Html | None:
    rows = list(causes.head(30).iter_rows())
    if not rows:
        return None
    most = max(count for _, count, _ in rows)
    cells = []
    for cause, count, lost in rows:
        bar = el("rect", width=f"{100 * count / most:.1f}%", height="100%", rx="2")
        cost = f", {lost:,.0f} tokens lost" if lost else ""
        cells += [
            el("button", str(cause), type="button", data_cause=str(cause)),
            el("svg", bar, role="img", aria_label=f"{cause}: {count} runs"),
            el("span", several(count, "run") + cost),
        ]
    return el("section", el("h3", "Causes"), el("div", *cells, class_="bars"))


def _pools(runs: pl.DataFrame) -> Html | None:
    """Pool against version, one dot a run, on a logarithmic scale."""
    import polars as pl

    rows = [
        (f"{engine} {version.split('+')[0]}", span_of_label(version), engine, tokens, run)
        for engine, version, tokens, run in runs.filter(pl.col("pool_tokens") > 0)
        .select("engine", version_column().fill_null("?"), "pool_tokens", "run")
        .head(5000)
        .iter_rows()
    ]
    if len(rows) < 2:
        return None
    # One column a version: builds of one version (0.8.0rc3.dev5+g5eeabc2a) stand together.
    names = list(
        dict.fromkeys(
            name for name, *_ in sorted(rows, key=lambda r: (str(r[2]), r[1].high or r[1].low or NO_VERSION, r[0]))
        )
    )
    low, high = (math.log10(f(r[3] for r in rows)) for f in (min, max))
    low, high = math.floor(low), math.ceil(high) if high > math.floor(low) else math.floor(low) + 1
    width, height, left, foot = 900, 260, 90, 100
    step = (width - left - 10) / max(1, len(names))

    def y(value: float) -> float:
        return 10 + (height - 20) * (1 - (math.log10(value) - low) / (high - low))

    marks: list[Html] = []
    for power in range(low, high + 1):
        place = y(10**power)
        marks.append(el("line", x1=left, x2=width - 10, y1=place, y2=place))
        marks.append(el("text", f"{10**power:,}", x=left - 6, y=place + 4, text_anchor="end"))
    for i, name in enumerate(names):
        x = left + step * (i + 0.5)
        turn = f"rotate(-35 {x:.0f} {height + 14})"
        marks.append(el("text", name, x=x, y=height + 14, text_anchor="end", transform=turn))
    for name, _, _, tokens, run in rows:
        x = left + step * (names.index(name) + 0.5)
        dot = Html(f'<circle cx="{x:.1f}" cy="{y(tokens):.1f}" r="4" fill-opacity="0.6">')
        marks.append(Html(dot + el("title", clean(f"{run}: {tokens:,.0f} tokens")) + "</circle>"))
    chart = Html(
        f'<svg class="dots" role="img" aria-label="KV pool in tokens by version" '
        f'viewBox="0 0 {width} {height + foot}">{join(*marks)}</svg>'
    )
    return el("section", el("h3", "KV pool by version, tokens"), chart)


def _table(runs: pl.DataFrame, path: Path, pages: Path | None) -> Html:
    from analyzer.fleet.worker import page_name

    selects = []
    for name in CHOICES:
        index = next(i for i, (_, column, _) in enumerate(COLUMNS) if column == name)
        values = sorted({str(v) for v in runs[name].to_list() if v is not None})
        options = [el("option", f"any {name}", value=""), *[el("option", v, value=v) for v in values]]
        selects.append(el("select", *options, data_column=str(index), aria_label=name))
    tools = el(
        "div",
        el("input", id="filter", type="search", placeholder="filter by words", aria_label="filter"),
        *selects,
        el("span", "", id="count", class_="soft", aria_live="polite"),
        class_="tools",
    )
    head = el(
        "tr",
        *[
            el("th", el("button", title, type="button"), scope="col", class_="num" if numeric else None)
            for title, _, numeric in COLUMNS
        ],
    )
    linked = {}
    if pages is not None:
        for name in set(runs["source"].to_list()):
            place = pages / page_name(str(name))
            if place.exists():
                linked[name] = f"{pages.name}/{place.name}" if pages.parent == path.parent else place.as_uri()
    rows = [
        el("tr", *[_cell(row, column, numeric, linked) for _, column, numeric in COLUMNS])
        for row in runs.head(MOST_ROWS).iter_rows(named=True)
    ]
    more = f"Only the first {MOST_ROWS:,} runs are listed; the tables hold all." if runs.height > MOST_ROWS else None
    table = el("table", el("thead", head), el("tbody", *rows), class_="runs")
    note = el("p", more, class_="soft") if more else None
    return el("section", el("h3", "Runs"), tools, el("div", table, class_="wide"), note)


def _cell(row: dict[str, Any], column: str, numeric: bool, linked: dict[str, str]) -> Html:
    value = row[column]
    if numeric:
        shown = "" if value is None else f"{value:,.0f}"
        return el("td", shown, class_="num", data_value="NaN" if value is None else f"{value:.0f}")
    if column == "source":
        text = clean(f"{value}#{str(row['run']).rpartition('#')[2]}")
        return el("td", el("a", text, href=linked[value]) if value in linked else text)
    if column == "outcome":
        return el(
            "td", el("span", str(value), class_=_OUTCOMES.get(str(value), "bad" if "crash" in str(value) else "soft"))
        )
    if column == "flags":
        return el("td", _flags(str(value or "")))
    return el("td", clean(str(value if value is not None else "")))


def _flags(value: str) -> Html | None:
    """The launch arguments, folded: a launch has dozens, and they would make each row a screen high."""
    flags = clean(short_flags(value)).split()
    if not flags:
        return None
    return el("details", el("summary", several(len(flags), "flag")), el("p", " ".join(flags)), class_="flags")


def _frame(title: str, frame: pl.DataFrame, most: int = 200) -> Html | None:
    if not frame.height:
        return None
    head = el("tr", *[el("th", name, scope="col") for name in frame.columns])
    rows = []
    for row in frame.head(most).iter_rows(named=True):
        cells = []
        for name, value in row.items():
            if name == "flags":
                value = short_flags(str(value or ""))
            if name == "change":
                value = f"{100 * value:+.1f} %"
            shown = f"{value:,.0f}" if isinstance(value, float) else str(value if value is not None else "")
            cells.append(el("td", clean(shown), class_="num" if isinstance(value, int | float) else None))
        rows.append(el("tr", *cells))
    more = el("p", f"... and {frame.height - most:,} more", class_="soft") if frame.height > most else None
    table = el("table", el("thead", head), el("tbody", *rows))
    return el("section", el("h3", title), el("div", table, class_="wide"), more)
