"""An audit's summary and query answers as terminal tables."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from analyzer.redact import clean
from analyzer.units import several, show

if TYPE_CHECKING:
    import polars as pl
    from rich.console import Console

    from analyzer.fleet.summary import Summary

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

    table = Table(title=title or None, title_justify="left", title_style="bold", box=None, pad_edge=False)
    for column, dtype in frame.schema.items():
        numeric = dtype.is_numeric()
        clipped = column == "flags"
        table.add_column(
            column,
            justify="right" if numeric else "left",
            overflow="ellipsis" if clipped else "fold",
            no_wrap=numeric or clipped,
            ratio=1 if clipped else None,
        )
    for row in frame.head(limit).iter_rows(named=True):
        table.add_row(*(Text(_cell(name, value)) for name, value in row.items()))
    console.print(table)
    if frame.height > limit:
        console.print(f"  ... and {frame.height - limit:,} more rows", highlight=False)
    console.print()


def _cell(name: str, value: object) -> str:
    if value is None:
        return "-"
    if name == "change" and isinstance(value, float):
        return f"{100 * value:+.1f} %"
    if name in _NUMERIC and isinstance(value, int | float):
        return f"{value:,.0f}"
    return clean(show(value, "any"))
