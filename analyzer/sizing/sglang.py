"""SGLang's pool: from what is free before and after loading to tokens, slots and running requests.

    rest   = A1 - A0 (1 - f) - reservations
    tokens = min((rest - state) / cell, user's cap), floored to a page

A0 is free memory before loading, A1 after the last model that is loaded before sizing (the draft's from 0.5.14 on),
both the least over all ranks; f is mem_fraction_static; cell is what one token is charged, draft layers included.
Source: SGLang 0.4.0 .. 0.5.23, reproduced on hardware for 0.5.17 within 0.13 %.

Inputs (overrides take the same names, base units): ``gpu.free_before_load`` A0, ``gpu.free_after_load`` A1,
``gpu.foreign`` memory that others hold (0 frees it), ``sizing.fraction`` f, ``sizing.reserved`` and ``sizing.fixed``
(taken from rest), ``sizing.cell``, ``draft.weights.loaded`` (0: without the draft's weights),
``draft.duplicate_vocab`` (0: the draft's own embedding and head not charged), ``weights.loaded``, ``state.ratio`` q,
``state.slots`` (given by the user), ``state.slot_bytes``, ``state.slots_per_request`` R, ``spec.draft_tokens`` D,
``limit.running_requested`` N, ``limit.context``, ``pool.user_cap``, ``pool.block_tokens``. ``sizing.cell_factor``
multiplies the cell (0.5: half the bytes per token).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from analyzer.run.model import Run
from analyzer.sizing.base import Solution
from analyzer.sizing.sglang_running import RunningInputs, running_requests
from analyzer.sizing.sglang_state import StateInputs, StatePlan, plan_state
from analyzer.sizing.sglang_versions import Span
from analyzer.units import show_bytes

NO_CAP = math.inf
NEUTRAL = {
    "gpu.foreign": 0.0,
    "sizing.reserved": 0.0,
    "sizing.fixed": 0.0,
    "sizing.cell_factor": 1.0,
    "draft.weights.loaded": 0.0,
    "draft.duplicate_vocab": 0.0,
    "weights.loaded": 0.0,
    "pool.user_cap": NO_CAP,
    "pool.block_tokens": 1.0,
}
"""Inputs that every model has, with the value that changes nothing."""


@dataclass(slots=True)
class SglangSizing:
    """SGLang's formula for one run's version, filled with its inputs. Implements ``sizing.base.SizingModel``."""

    formula: str
    span: Span
    inputs: dict[str, float]
    missing: tuple[str, ...] = ()
    calibrated: tuple[str, ...] = ()
    margin: float = 0.0
    notes: tuple[str, ...] = ()
    state: bool = False
    """Whether the model keeps recurrent state."""
    slots_given: bool = False
    """Whether the number of slots is an input (given by the user, or the observed one) and not the ratio's."""
    draft_charged: bool = False
    """Whether the draft's weights are loaded before sizing (0.5.14 and later)."""
    attention_dp: float = 1.0
    running_default: bool = False
    budget: float | None = None
    """The budget as the engine printed it (DeepSeek-V4 class, MLX), in place of A1 - A0 (1 - f)."""
    top_up: float = 0.0
    """Tokens added after sizing (speculation up to 0.5.6)."""
    rough_cell: bool = False
    """The cell is a guess, good enough to see that the user's cap decides but not to say what would without it."""

    def solve(self, overrides: Mapping[str, float] | None = None) -> Solution:
        """The pool with ``overrides`` in place of inputs. Raises ``KeyError`` for a name that is no input."""
        values = {**NEUTRAL, **self.inputs}
        for name, value in (overrides or {}).items():
            if name not in values and not (name == "state.slots" and self.state):
                raise KeyError(f"the sizing model of this run has no input {name!r}")
            values[name] = float(value)
        given = bool(overrides) and "state.slots" in (overrides or {})
        steps: list[str] = []
        rest = self._rest(values, steps)
        cell = values.get("sizing.cell", 0.0) * values["sizing.cell_factor"]
        if rest is None or cell <= 0 or values.get("state.ratio", 0.0) < 0:
            return Solution(None, steps=tuple(steps))
        same_ratio = values.get("state.ratio") == self.inputs.get("state.ratio")
        plan = self._state(rest, values, given or (self.slots_given and same_ratio), steps)
        if self.state and plan is None:
            return Solution(None, steps=tuple(steps))
        left = rest - (plan.taken if plan else 0.0) - values["sizing.fixed"]
        capacity = max(0.0, left / cell) + self.top_up
        tokens = min(capacity, values["pool.user_cap"])
        if self.rough_cell and tokens > self._base("pool.user_cap"):
            return Solution(None, steps=tuple(steps))
        page = max(1.0, values["pool.block_tokens"])
        tokens = math.floor(tokens / page) * page
        steps.append(f"tokens = {show_bytes(left)} / {cell:,.2f} bytes = {capacity:,.0f}")
        if capacity > values["pool.user_cap"]:
            steps.append(f"cut to the user's cap, whole pages of {page:.0f}: {tokens:,.0f}")
        running = self._running(values, tokens, plan.slots if plan else None, steps)
        return Solution(float(tokens), float(plan.slots) if plan else None, running, tuple(steps))

    def _rest(self, values: Mapping[str, float], steps: list[str]) -> float | None:
        if self.budget is not None:
            rest = self.budget - (values["sizing.reserved"] - self._base("sizing.reserved"))
            steps.append(f"budget as printed = {show_bytes(rest)}")
            return rest
        names = ("gpu.free_before_load", "gpu.free_after_load", "sizing.fraction")
        if any(name not in values for name in names):
            return None
        before, after, fraction = (values[name] for name in names)
        freed = self._base("gpu.foreign") - values["gpu.foreign"]
        before += freed
        after += freed + self._base("weights.loaded") - values["weights.loaded"]
        if self.draft_charged:
            duplicate = self._base("draft.duplicate_vocab") - values["draft.duplicate_vocab"]
            # the duplicate is part of what the draft loaded: without the draft there is none to save
            after += self._base("draft.weights.loaded") - max(0.0, values["draft.weights.loaded"] - duplicate)
        rest = after - before * (1 - fraction) - values["sizing.reserved"]
        reserved = f" - {show_bytes(values['sizing.reserved'])} reserved" if values["sizing.reserved"] else ""
        steps.append(
            f"rest = A1 {show_bytes(after)} - A0 {show_bytes(before)} x (1 - {fraction:g}){reserved}"
            f" = {show_bytes(rest)}"
        )
        return rest

    def _base(self, name: str) -> float:
        return self.inputs.get(name, NEUTRAL[name])

    def _state(self, rest: float, values: Mapping[str, float], given: bool, steps: list[str]) -> StatePlan | None:
        if not self.state:
            return None
        size, per_request = values.get("state.slot_bytes"), values.get("state.slots_per_request")
        if not size or (not given and (per_request is None or "state.ratio" not in values)):
            return None
        inputs = StateInputs(
            slot_bytes=size,
            ratio=values.get("state.ratio", 0.9),
            per_request=per_request or 1.0,
            requests=self._share(values),
            draft_tokens=values.get("spec.draft_tokens", 0.0),
            slots=values.get("state.slots") if given else None,
        )
        plan = plan_state(rest, inputs, self.span)
        more = f", {show_bytes(plan.speculative_bytes)} for speculation" if plan.speculative_bytes else ""
        steps.append(f"state: {plan.formula}: {plan.slots:,} slots, {show_bytes(plan.slots_bytes)}{more}")
        return plan

    def _share(self, values: Mapping[str, float]) -> float | None:
        requested = values.get("limit.running_requested")
        return None if requested is None else max(1.0, requested // self.attention_dp)

    def _running(
        self, values: Mapping[str, float], tokens: float, slots: float | None, steps: list[str]
    ) -> float | None:
        if "limit.context" not in values and "limit.running_requested" not in values:
            return None
        running = running_requests(
            RunningInputs(
                tokens=tokens,
                context=values.get("limit.context", 0.0),
                requested=values.get("limit.running_requested"),
                attention_dp=self.attention_dp,
                default=self.running_default,
                slots=slots,
                per_request=values.get("state.slots_per_request"),
            ),
            self.span,
        )
        steps.append(running.step)
        return float(running.requests)


def sglang_model(run: Run) -> SglangSizing | None:
    """The model of ``run``, filled from its facts; None if they say nothing of the pool's sizing.

    Also writes the facts that only the formula gives into ``run.facts`` (``sizing.budget``, ``sizing.reserve``,
    ``sizing.cell``, ``draft.duplicate_vocab``, ``limit.bound_by`` …), with origin ``derived``.
    """
    from analyzer.sizing.sglang_inputs import build

    return build(run)
