"""A comparison as a terminal page, and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from analyzer.fleet.compare import Comparison, Difference, Share
from analyzer.redact import clean
from analyzer.units import show

if TYPE_CHECKING:
    from rich.console import Console

MOST = 24


def print_comparison(result: Comparison, console: Console) -> None:
    """The page: what became of the pool, why, what else differs."""
    before, after = result.before, result.after
    console.print(f"\nA  {_name(before)}\nB  {_name(after)}\n", highlight=False, markup=False, soft_wrap=True)
    change = result.change
    if change is None:
        console.print("At least one of the runs prints no pool: there is no difference to explain.", highlight=False)
    else:
        a, b = result.pool_before or 0, result.pool_after or 0
        ratio = f", {100 * change / a:+.1f} %" if a else ""
        console.print(
            f"POOL   {a:,.0f} -> {b:,.0f} tokens   ({change:+,.0f}{ratio})\n",
            highlight=False,
            markup=False,
            soft_wrap=True,
        )
    if result.shares:
        console.print("WHY                                                     tokens", highlight=False)
        for share in result.shares:
            label, more = _label(share)
            line = f"  {label:28} {_arrow(share):28} {share.tokens:>+14,.0f}"
            console.print(clean(line + more), highlight=False, markup=False, soft_wrap=True)
        if result.remainder is not None:
            console.print(f"  {'not explained':57} {result.remainder:>+14,.0f}", highlight=False)
        console.print()
    for title, rows in (("ARGUMENTS THAT DIFFER", result.arguments), ("FACTS THAT DIFFER", result.facts)):
        if rows:
            console.print(title, highlight=False)
            for row in rows[:MOST]:
                console.print(f"  {_row(row)}", highlight=False, markup=False, soft_wrap=True)
            if len(rows) > MOST:
                console.print(f"  ... and {len(rows) - MOST} more (--format json has all)", highlight=False)
            console.print()
    for warning in result.warnings:
        console.print(f"NOTE  {clean(warning)}", highlight=False, markup=False, soft_wrap=True)


def _label(share: Share) -> tuple[str, str]:
    """The name for its column, and what stands on lines of its own below: a list of inputs would break the columns."""
    name, _, listed = share.name.partition(": ")
    return name, "".join(f"\n      {item}" for item in listed.split(", ") if item)


def _arrow(share: Share) -> str:
    if share.before is None or share.after is None:
        return ""
    return f"{show(share.before, share.unit)} -> {show(share.after, share.unit)}"


def _name(run: Any) -> str:
    version = run.version or " ".join(v for v in run.version_range or () if v)
    return clean(f"{run.source} (run {run.id})   {run.engine or 'unknown engine'} {version}".strip())


def _row(row: Difference) -> str:
    a, b = ("-" if v is None else show(v, row.unit) for v in (row.before, row.after))
    return clean(f"{row.name.removeprefix('args.'):32} {a[:60]:24} -> {b[:60]}")


def as_json(result: Comparison) -> dict[str, Any]:
    """The comparison as a JSON object."""

    def rows(differences: list[Difference]) -> list[dict[str, Any]]:
        return [{"name": d.name, "before": d.before, "after": d.after, "unit": d.unit} for d in differences]

    return {
        "schema": "kvautopsy.comparison/1",
        "before": {"source": result.before.source, "run": result.before.id},
        "after": {"source": result.after.source, "run": result.after.id},
        "pool_before": result.pool_before,
        "pool_after": result.pool_after,
        "change": result.change,
        "shares": [
            {"name": s.name, "before": s.before, "after": s.after, "tokens": s.tokens, "unit": s.unit}
            for s in result.shares
        ],
        "remainder": result.remainder,
        "arguments": rows(result.arguments),
        "facts": rows(result.facts),
        "warnings": result.warnings,
    }
