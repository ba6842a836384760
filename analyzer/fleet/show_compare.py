"""A comparison as a terminal page, and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from analyzer.fleet.compare import Comparison, Difference
from analyzer.fleet.compare_view import (
    MOST,
    NO_POOL,
    cells,
    name_of,
    pools_of,
    steps_of,
    tables_of,
    verdict_of,
)
from analyzer.redact import clean
from analyzer.report.sheet import wrap

if TYPE_CHECKING:
    from rich.console import Console

WIDTH = 100


def print_comparison(result: Comparison, console: Console) -> None:
    """The page: what became of the pool, why, what else differs."""

    def line(text: str = "") -> None:
        console.print(text, highlight=False, markup=False, soft_wrap=True)

    line(f"\nA  {name_of(result.before)}\nB  {name_of(result.after)}\n")
    line(f"POOL   {pools_of(result)}" if result.change is not None else NO_POOL)
    if result.change is not None:
        for part in wrap(verdict_of(result), WIDTH - 7):
            line(f"       {part}")
        line()
    if result.shares:
        line(f"{'WHY':60}{'tokens':>14}")
        for step in steps_of(result):
            line(f"  {step.name:28} {step.what:28} {step.tokens:>+14,.0f}")
            for item in step.more:  # on lines of their own: they would break the columns
                line(f"      {item}")
        line()
    for title, rows in tables_of(result):
        line(title.upper())
        for row in rows[:MOST]:
            name, before, after = cells(row)
            line(f"  {name:32} {before[:60]:24} -> {after[:60]}")
        if len(rows) > MOST:
            line(f"  ... and {len(rows) - MOST} more (--format json has all)")
        line()
    for warning in result.warnings:
        line(f"NOTE  {clean(warning)}")


def as_json(result: Comparison) -> dict[str, Any]:
    """The comparison as a JSON object."""

    def rows(differences: list[Difference]) -> list[dict[str, Any]]:
        return [{"name": clean(d.name), "before": d.before, "after": d.after, "unit": d.unit} for d in differences]

    return {
        "schema": "kvautopsy.comparison/1",
        "before": {"source": clean(result.before.source), "run": result.before.id},
        "after": {"source": clean(result.after.source), "run": result.after.id},
        "pool_before": result.pool_before,
        "pool_after": result.pool_after,
        "change": result.change,
        "shares": [
            {"name": clean(s.name), "before": s.before, "after": s.after, "tokens": s.tokens, "unit": s.unit}
            for s in result.shares
        ],
        "remainder": result.remainder,
        "arguments": rows(result.arguments),
        "facts": rows(result.facts),
        "warnings": [clean(warning) for warning in result.warnings],
    }
