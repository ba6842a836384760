"""An audit's summary and query answers as terminal tables."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from analyzer.redact import clean
from analyzer.report.sheet import cells, clip, wrap
from analyzer.units import several, show

if TYPE_CHECKING:
    import polars as pl
    from rich.console import Console

    from analyzer.fleet.summary import Summary

_TEXT = 14
"""Columns in which text can still be read, wrapped."""
_NUMERIC = {"runs", "lost_tokens", "least", "median", "most", "pool_tokens", "before", "after", "change"}


def print_summary(summary: Summary, console: Console, limit: int = 12) -> None:
    """The summary, each table cut to ``limit`` rows with what was left out named."""
    t = summary.totals
    hold = "holds" if t["other"] == 1 else "hold"
    silent = f", {several(t['other'], 'file')} {hold} nothing of either engine" if t["other"] else ""
    held = f"{several(t['runs'], 'run')} in {several(t['files'], 'file')}"
    console.print(
        f"\n{held}: {t['failed']:,} failed, {several(t['findings'], 'finding')}{silent}\n",
        highlight=False,
    )
    tables = (
        ("RUNS by engine, version, outcome", summary.counts, 3 * limit),
        ("CAUSES by runs (tokens lost where priced)", summary.causes, 2 * limit),
        ("POOLS by set-up (tokens)", _short(summary.pools), limit),
        ("OUTLIERS: more than 20 % off their set-up's median", _short(summary.outliers), limit),
        ("REGRESSIONS: the same set-up, a smaller pool in a later version", _short(summary.regressions), limit),
        ("NOT READ", summary.errors, limit),
    )
    for title, frame, most in tables:
        if frame.height:
            print_frame(frame, console, title=title, limit=most)


def _short(frame: pl.DataFrame) -> pl.DataFrame:
    import polars as pl

    return frame.with_columns(pl.col("flags").map_elements(short_flags, return_dtype=pl.String))


def short_flags(flags: str) -> str:
    """Launch arguments as a reader wants them in a column: ``tensor_parallel_size=2 kv_cache_dtype=fp8``."""
    try:
        values = json.loads(flags or "{}")
    except ValueError:
        return flags
    return " ".join(f"{k}={v}" for k, v in values.items() if not isinstance(v, dict | list))


def print_frame(frame: pl.DataFrame, console: Console, *, title: str = "", limit: int = 50) -> None:
    """A data frame as a plain table."""
    from rich.table import Table
    from rich.text import Text

    if console.width < 110 and "flags" in frame.columns and frame.width > 4:
        frame = frame.drop("flags")  # they would squeeze every other column; the page and `query` have them

    if not frame.height:
        console.print("no rows\n", highlight=False)
        return
    names = [clean(name) for name in frame.columns]
    numeric = [dtype.is_numeric() for dtype in frame.dtypes]
    rows = [[_cell(name, value) for name, value in row.items()] for row in frame.head(limit).iter_rows(named=True)]
    if _least(names, numeric, rows) > console.width:
        _print_records(names, rows, console, title)
    else:
        table = Table(title=title or None, title_justify="left", title_style="bold", box=None, pad_edge=False)
        for name, number in zip(names, numeric, strict=True):
            table.add_column(name, justify="right" if number else "left", overflow="fold", no_wrap=number)
        for row in _flags_clipped(names, rows, console.width):
            table.add_row(*map(Text, row))
        console.print(table)
    if frame.height > limit:
        console.print(f"  ... and {frame.height - limit:,} more rows", highlight=False)
    console.print()


def _least(names: list[str], numeric: list[bool], rows: list[list[str]]) -> int:
    """Columns that a table needs in which no figure is cut and no text is a tower of letters."""
    widths = [max(map(cells, column)) for column in zip(names, *rows, strict=True)]
    return sum((w if number else min(w, _TEXT)) + 2 for w, number in zip(widths, numeric, strict=True)) - 2


def _flags_clipped(names: list[str], rows: list[list[str]], width: int) -> list[list[str]]:
    """``rows`` with launch arguments cut to what the other columns leave of ``width``."""
    if "flags" not in names:
        return rows
    at = names.index("flags")
    widths = [
        max(map(cells, column)) + 2 for number, column in enumerate(zip(names, *rows, strict=True)) if number != at
    ]
    room = max(2 * _TEXT, width - sum(widths))
    return [[clip(cell, room) if number == at else cell for number, cell in enumerate(row)] for row in rows]


def _print_records(names: list[str], rows: list[list[str]], console: Console, title: str) -> None:
    """One value a line: for tables that are wider than the console."""
    if title:
        console.print(title, style="bold", highlight=False, markup=False)
    room = max(map(cells, names)) + 2
    for number, row in enumerate(rows, 1):
        console.print(f"row {number}", style="bold", highlight=False)
        for name, cell in zip(names, row, strict=True):
            lines = list(wrap(cell, console.width - room - 2)) or [""]
            for left, line in zip([name, *[""] * len(lines)], lines, strict=False):
                console.print(f"  {left:<{room}}{line}", highlight=False, markup=False, soft_wrap=True)


def _cell(name: str, value: object) -> str:
    if value is None:
        return "-"
    if name == "change" and isinstance(value, float):
        return f"{100 * value:+.1f} %"
    if name in _NUMERIC and isinstance(value, int | float):
        return f"{value:,.0f}"
    return clean(show(value, "any"))
