"""State slots of hybrid models (mamba, GDN, KDA): how many, and what they and speculation take before the KV pool.

Formulas of SGLang 0.5.2 .. 0.5.23 (``kv_cache_configurator.py``, before that ``model_runner.py``), reference 3.7.
Symbols: S1 bytes of a slot, K slots, q mamba_full_memory_ratio, R slots per request, N requests asked for, D draft
tokens. Confirmed on hardware for 0.5.17.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from analyzer.sizing.sglang_versions import Span


@dataclass(frozen=True, slots=True)
class StateInputs:
    """``slots`` is the user's number (or N with the prefix cache off), None where the ratio decides."""

    slot_bytes: float
    ratio: float
    per_request: float
    requests: float | None
    draft_tokens: float
    slots: float | None = None


@dataclass(frozen=True, slots=True)
class StatePlan:
    """``slots`` K, and the bytes that slots and speculative states take out of the budget."""

    slots: int
    slots_bytes: float
    speculative_bytes: float
    formula: str

    @property
    def taken(self) -> float:
        """Bytes that are gone before KV is sized."""
        return self.slots_bytes + self.speculative_bytes


def plan_state(rest: float, inputs: StateInputs, span: Span) -> StatePlan:
    """What the version of ``span`` takes for state out of ``rest`` bytes."""
    if span.likely("0.5.17"):
        return _with_padding(rest, inputs)
    if span.likely("0.5.13"):
        return _joint(rest, inputs)
    if span.likely("0.5.7"):
        return _reserved_first(rest, inputs)
    if span.likely("0.5.4"):
        return _multiplied(rest, inputs)
    slots = int(inputs.slots or inputs.requests or 512)
    return StatePlan(slots, slots * inputs.slot_bytes, 0.0, "K * S1")


def _requests(inputs: StateInputs, slots: int) -> float:
    by_slots = slots // inputs.per_request
    return by_slots if inputs.requests is None else min(inputs.requests, by_slots)


def _with_padding(rest: float, inputs: StateInputs) -> StatePlan:
    """0.5.17 .. 0.5.23: K and the intermediate states are solved together, each with a padding slot."""
    size, depth, per_request = inputs.slot_bytes, inputs.draft_tokens, inputs.per_request
    if inputs.slots is not None:
        slots = int(inputs.slots)
    else:
        budget = rest * inputs.ratio / (1 + inputs.ratio)
        slots = math.floor((budget - size * (1 + depth)) / (size * (1 + depth / per_request)))
    speculative = (_requests(inputs, slots) + 1) * depth * size if depth else 0.0
    return StatePlan(slots, (slots + 1) * size, speculative, "(K + 1) S1 + (min(N, K // R) + 1) D S1")


def _joint(rest: float, inputs: StateInputs) -> StatePlan:
    """0.5.13 .. 0.5.16: as later, without padding slots."""
    size, depth = inputs.slot_bytes, inputs.draft_tokens
    if inputs.slots is not None:
        slots = int(inputs.slots)
    else:
        budget = rest * inputs.ratio / (1 + inputs.ratio)
        slots = math.floor(budget / (size * (1 + depth / inputs.per_request)))
    speculative = _requests(inputs, slots) * depth * size
    return StatePlan(slots, slots * size, speculative, "K S1 + min(N, K // R) D S1")


def _reserved_first(rest: float, inputs: StateInputs) -> StatePlan:
    """0.5.7 .. 0.5.12: states for the REQUESTED number of requests come off first, whatever can run in the end."""
    size = inputs.slot_bytes
    reserved = (inputs.requests or 0.0) * inputs.draft_tokens * size
    if inputs.slots is not None:
        slots = int(inputs.slots)
    else:
        slots = math.floor((rest - reserved) * inputs.ratio / (1 + inputs.ratio) / size)
    return StatePlan(slots, slots * size, reserved, "K S1 + N D S1")


def _multiplied(rest: float, inputs: StateInputs) -> StatePlan:
    """0.5.4 .. 0.5.6: every slot is charged with D more states; the user's number counts without prefix cache only."""
    size, factor = inputs.slot_bytes, 1 + inputs.draft_tokens
    if inputs.slots is not None:
        slots = int(inputs.slots)
    else:
        slots = math.floor(rest * inputs.ratio / (1 + inputs.ratio) / size / factor)
    return StatePlan(slots, slots * size, slots * inputs.draft_tokens * size, "K S1 (1 + D)")


def slots_per_request(span: Span, *, radix: bool, overlap: bool, speculative: bool, strategy: str) -> tuple[int, bool]:
    """(R, whether it is certain): state slots that one running request takes.

    ``strategy`` is mamba_radix_cache_strategy (0.5.14+) or mamba_scheduler_strategy (0.5.7 .. 0.5.13), resolved.
    """
    if not radix:
        return 1, True
    extra = strategy.startswith("extra_buffer")
    if span.likely("0.5.10"):
        more = (1 if "lazy" in strategy or not overlap else 2) if extra else 0
    elif span.likely("0.5.8"):
        more = (1 if speculative else 2) if extra else 0
    elif span.likely("0.5.7"):
        more = 1 if extra and speculative else 2
    else:
        more = 0
    return 3 + more, span.known and strategy not in ("", "auto")
