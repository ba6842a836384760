"""What every form of a comparison says, worded once: headings, the verdict, the steps from one pool to the other."""

from __future__ import annotations

from dataclasses import dataclass

from analyzer.fleet.compare import Comparison, Difference, Share
from analyzer.redact import clean
from analyzer.report.view import ENGINES, version_label
from analyzer.run.model import Run
from analyzer.run.vocabulary import spec_of
from analyzer.units import show

NO_POOL = "At least one of the runs prints no pool: there is no difference to explain."
MOST = 24
"""Rows of a table of differences that are shown at once."""


@dataclass(frozen=True, slots=True)
class Step:
    """One part of the way from the first pool to the second. ``start`` and ``end`` are pools in tokens."""

    name: str
    what: str
    more: tuple[str, ...]
    tokens: float
    start: float
    end: float


def name_of(run: Run) -> str:
    """``a.log (run 1), SGLang 0.5.13-0.5.15``."""
    version = version_label(run.version, *(run.version_range or ())) or "of unknown version"
    engine = ENGINES.get(run.engine or "", run.engine or "unknown engine")
    return clean(f"{run.source} (run {run.id}), {engine} {version}")


def pools_of(result: Comparison) -> str:
    """``4,676,407 -> 4,305,153 tokens (-371,254, -7.9 %)``; empty without both pools."""
    change = result.change
    if change is None:
        return ""
    a, b = result.pool_before or 0.0, result.pool_after or 0.0
    ratio = f", {100 * change / a:+.1f} %" if a else ""
    return f"{a:,.0f} -> {b:,.0f} tokens ({change:+,.0f}{ratio})"


def verdict_of(result: Comparison) -> str:
    """The answer in a sentence."""
    change = result.change
    if change is None:
        return NO_POOL
    if abs(change) < 0.5:
        return "Both pools hold the same number of tokens."
    how = "smaller" if change < 0 else "larger"
    head = f"This pool is {abs(change):,.0f} tokens {how} than the first run's."
    steps = steps_of(result)
    same_way = [step for step in steps if step.tokens * change > 0]
    if not same_way or not result.shares:
        return f"{head} No input of the sizing explains it{'; see the notes' if result.warnings else ''}."
    main = same_way[0]
    about = ", ".join(part for part in (main.name, meaning_of(main.name)) if part)
    return f"{head} First of all: {about}{f' ({main.what})' if main.what else ''}, {main.tokens:+,.0f} tokens."


def steps_of(result: Comparison) -> list[Step]:
    """Every share, the greatest first, then what is not explained; together they lead from one pool to the other."""
    at = result.pool_before or 0.0
    steps = []
    for share in result.shares:
        name, _, listed = share.name.partition(": ")
        more = tuple(clean(item) for item in listed.split(", ") if item)
        steps.append(Step(clean(name), arrow(share), more, share.tokens, at, at + share.tokens))
        at += share.tokens
    if result.shares and result.remainder is not None:
        steps.append(Step("not explained", "", (), result.remainder, at, at + result.remainder))
    return steps


def meaning_of(name: str) -> str:
    """What the vocabulary says of an input, or nothing."""
    try:
        return spec_of(name).meaning
    except KeyError:
        return ""


def arrow(share: Share) -> str:
    """``16.16 GiB -> 21.69 GiB``, to the last byte where they look alike; empty for what has no values of its own."""
    if share.before is None or share.after is None:
        return ""
    before, after = show(share.before, share.unit), show(share.after, share.unit)
    if before == after:  # what counts is behind the digits that are shown elsewhere
        exact = [f"{value:,.10g}" if isinstance(value, int | float) else value for value in (share.before, share.after)]
        before, after = exact[0], f"{exact[1]} {share.unit}"
    return f"{before} -> {after}"


def cells(row: Difference) -> tuple[str, str, str]:
    """Name, first and second value of a difference."""
    before, after = ("-" if value is None else clean(show(value, row.unit)) for value in (row.before, row.after))
    return clean(row.name.removeprefix("args.")), before, after


def tables_of(result: Comparison) -> list[tuple[str, list[Difference]]]:
    """The tables of what else differs, those that have rows."""
    tables = [("Arguments that differ", result.arguments), ("Facts that differ", result.facts)]
    return [(title, rows) for title, rows in tables if rows]
