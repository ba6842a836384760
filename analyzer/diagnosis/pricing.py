"""What each finding costs in tokens: the sizing model is solved again with the value that would be healthy.

Findings share one gap, so their costs are not independent. They are taken one after the other, in each step the one
that now gains most, on top of those taken before; so the costs add up to the gain of mending them all. A finding that
gains nothing on top of the others costs nothing beside them (they mend the same thing). Faults are priced before
choices (findings of severity info): what speculation costs by design must not swallow what a fault adds to it.

Only a model that reproduces the observed pool may price: its error must be within 1 % or its own margin.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from analyzer.run.model import Run
from analyzer.sizing.base import SizingModel

TOLERANCE = 0.01
"""Relative error up to which a model counts as reproducing the pool, if its margin is not wider."""
NOISE = 1.0
"""Tokens below which a difference is rounding."""

Overrides: TypeAlias = dict[str, float]
Healthy: TypeAlias = Callable[[Mapping[str, float]], "Overrides | None"]
"""Gives a finding's healthy inputs in a run where the given inputs are mended already; None if they cannot be had."""


@dataclass(frozen=True, slots=True)
class Price:
    """The cost of one finding. ``note`` says why a part is missing."""

    lost_tokens: float | None = None
    pool_if_fixed: float | None = None
    """The pool when this finding and those priced before it are mended."""
    note: str = ""


@dataclass(slots=True)
class Bill:
    """The costs of all findings of one run.

    ``unexplained`` is what neither the findings nor the model account for: the pool with everything mended, less the
    pool observed, less the sum of the costs. As the costs are differences of the model, it is the distance between
    the model's pool and the observed one; None where that is within the rounding of printed figures.
    """

    prices: list[Price]
    unexplained: float | None = None
    note: str = ""
    applied: Overrides = field(default_factory=dict)


def price(findings: Sequence[Healthy | None], run: Run, model: SizingModel | None, tiers: Sequence[int] = ()) -> Bill:
    """The bill for ``findings``; one that names no healthy value has an empty price.

    ``tiers`` gives each finding's turn: all of a lower tier are priced before the next one's. Without it all are equal.
    """
    unpriced = Bill([Price() for _ in findings])
    if not any(findings):
        return unpriced
    observed = run.facts.number("pool.tokens")
    if observed is None or observed <= 0:
        unpriced.note = "costs are not priced: the log does not say how large the pool is"
        return unpriced
    base = _solve(model, {}) if model is not None else None
    if model is None or base is None:
        unpriced.note = "costs are not priced: the log lacks inputs of the sizing formula"
        return unpriced
    error = abs(base - observed) / observed
    if error > max(TOLERANCE, model.margin):
        unpriced.note = f"costs are not priced: the sizing formula gives {base:,.0f} tokens, {error:.1%} off the pool"
        return unpriced
    return _bill(findings, model, base, observed, tiers or [0] * len(findings))


def _bill(
    findings: Sequence[Healthy | None], model: SizingModel, base: float, observed: float, tiers: Sequence[int]
) -> Bill:
    bill = Bill([Price() for _ in findings])
    pool, idle = base, []
    for tier in sorted(set(tiers)):
        turn = [i for i, healthy in enumerate(findings) if healthy is not None and tiers[i] == tier]
        while (best := _best(findings, turn, bill, model, pool)) is not None:
            gain, index, overrides = best
            bill.applied.update(overrides)
            pool += gain
            bill.prices[index] = Price(gain, pool + observed - base)
            turn.remove(index)
        idle += turn
    _price_rest(findings, idle, bill.prices, model, base, pool, observed)
    rounding = max(NOISE, model.margin * observed)
    bill.unexplained = base - observed if abs(base - observed) > rounding else None
    return bill


def _best(
    findings: Sequence[Healthy | None], turn: Sequence[int], bill: Bill, model: SizingModel, pool: float
) -> tuple[float, int, Overrides] | None:
    """Gain, index and overrides of the finding in ``turn`` that now gains most; None if none does."""
    best: tuple[float, int, Overrides] | None = None
    for index in turn:
        healthy = findings[index]
        overrides = healthy(bill.applied) if healthy is not None else None
        mended = _solve(model, {**bill.applied, **overrides}) if overrides is not None else None
        if mended is not None and overrides is not None and mended - pool >= NOISE:
            best = max(best or (0.0, -1, {}), (mended - pool, index, overrides), key=lambda b: b[0])
    return best


def _price_rest(
    findings: Sequence[Healthy | None], left: Sequence[int], prices: list[Price], model: SizingModel,
    base: float, pool: float, observed: float,
) -> None:  # fmt: skip
    """Says of what gained nothing whether it alone would (then the others mend it, too) or would shrink the pool."""
    for index in left:
        healthy = findings[index]
        if healthy is None:
            continue
        alone = healthy({})
        mended = _solve(model, alone) if alone is not None else None
        if mended is None:
            note = "not priced: the sizing formula of this version has no such input, or the log lacks it"
            prices[index] = Price(note=note)
        elif mended - base >= NOISE:
            prices[index] = Price(0.0, pool + observed - base, "mended by the findings before it, too")
        elif mended - base > -NOISE:
            prices[index] = Price(0.0, observed, "costs no tokens")
        else:
            note = f"mending it makes the pool {base - mended:,.0f} tokens smaller"
            prices[index] = Price(None, mended + observed - base, note)


def _solve(model: SizingModel, overrides: Mapping[str, float]) -> float | None:
    """The model's pool, or None if it cannot say (an input it does not have, a missing one, a division by zero)."""
    try:
        tokens = model.solve(overrides).tokens
    except (KeyError, ZeroDivisionError, OverflowError, ValueError, TypeError):
        return None
    return float(tokens) if tokens is not None and abs(tokens) < 1e18 else None
