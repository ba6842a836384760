"""From the facts of one SGLang run to the inputs of its sizing model, and to the facts that follow from both.

What the log lacks is named in ``missing`` with how to supply it. What had to be taken from the observed pool itself is
named in ``calibrated``: then the prediction proves nothing about that input.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from analyzer.run.facts import Facts, Where
from analyzer.run.model import Run
from analyzer.sizing.sglang import SglangSizing
from analyzer.sizing.sglang_cell import MOST_ROUNDING, Cell, charged_cell, uncertainty
from analyzer.sizing.sglang_derived import write_derived
from analyzer.sizing.sglang_fraction import default_fraction
from analyzer.sizing.sglang_state import slots_per_request
from analyzer.sizing.sglang_versions import Span
from analyzer.units import GIB, show_bytes

LATE_READING = 0.063 * GIB
"""A0 is taken before the printed figure and is higher by this on a discrete GPU (measured: H200, 0.5.17)."""
LATE_READING_INTEGRATED = 0.1 * GIB
"""The same where the device shares the host's memory (0.07 .. 0.12 measured)."""
MOST_MARGIN = 0.1
"""A budget less certain than this share of it gives a range, no figure."""
TRITON_WORKSPACE = 0.099 * GIB
_SLOTS_PER_REQUEST = range(3, 7)
"""State slots that one request can take while prefixes are kept."""
_TELLING_LIMIT = 3
"""A printed limit below this fits several of them."""
BYTES_PER_POOL_TOKEN = 48
"""Allocated between the pool and the first capture (0.5.15 .. 0.5.18), for each pool token, outside the cell."""


@dataclass(slots=True)
class Draft:
    """The model under construction."""

    run: Run
    facts: Facts
    span: Span
    inputs: dict[str, float] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    calibrated: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def late_reading(self) -> float:
        """Bytes by which A0 exceeds the printed figure, as far as it was measured."""
        if not self.span.likely("0.5.10"):
            return 0.0
        return LATE_READING_INTEGRATED if self.facts.value("gpu.integrated") is True else LATE_READING

    def number(self, name: str) -> float | None:
        """The fact ``name`` as a number, or None."""
        return self.facts.number(name)

    def argument(self, name: str, default: Any = None) -> Any:
        """The launch argument ``name``."""
        return self.facts.value(f"args.{name}", default)

    def take(self, name: str, value: float | None, how: str = "") -> None:
        """Makes ``value`` an input, or notes that it is missing."""
        if value is not None:
            self.inputs[name] = value
        elif how:
            self.missing.append(f"{name}: {how}")


def build(run: Run) -> SglangSizing | None:
    """See ``analyzer.sizing.sglang.sglang_model``."""
    facts = run.facts
    if not any(name in facts for name in ("pool.tokens", "gpu.free_after_load", "sizing.budget", "state.slots")):
        return None
    draft = Draft(run, facts, Span.of(run))
    charged = _draft_charged(draft)
    _memory(draft, charged)
    state = _state(draft)
    _duplicate(draft, charged)
    budget = draft.number("sizing.budget") if _origin(facts, "sizing.budget") == "log" else None
    rest = _rest(draft, budget)
    cell = charged_cell(draft, rest, charged, budget is not None)
    margin = _margin(draft, rest, cell)
    _take_cell(draft, cell, rest, margin, budget is not None)
    shared = draft.argument("enable_dp_attention") is True
    model = SglangSizing(
        formula=_formula(draft, budget is not None, state),
        span=draft.span,
        inputs=draft.inputs,
        missing=tuple(draft.missing),
        calibrated=tuple(draft.calibrated),
        margin=margin,
        notes=tuple(draft.notes),
        state=state,
        slots_given="state.slots" in draft.inputs,
        draft_charged=charged,
        attention_dp=max(1.0, float(draft.argument("data_parallel_size", 1))) if shared else 1.0,
        running_default=facts.value("limit.running_default") is True,
        budget=budget,
        top_up=_top_up(draft, draft.number("limit.running_requested")),
        rough_cell=cell.margin > MOST_ROUNDING,
    )
    _check_slots(draft, model)
    write_derived(draft, model, cell, rest)
    return model


def _memory(draft: Draft, charged: bool) -> None:
    """Fills the inputs of the budget and of the limits."""
    _free(draft)
    _fraction(draft)
    _foreign(draft)
    names = ["sizing.reserved", "sizing.fixed", "weights.loaded", "limit.context", "pool.user_cap", "pool.block_tokens"]
    names += ["limit.running_requested", *(["draft.weights.loaded"] if charged else [])]
    for name in names:
        draft.take(name, draft.number(name))


def _take_cell(draft: Draft, cell: Cell, rest: float | None, margin: float, printed: bool) -> None:
    """Makes the cell an input, unless what it would predict could not be trusted; then says why."""
    if unlike := _other_sizing(draft):
        draft.missing.append(f"sizing.budget: {unlike}")
    elif cell.bytes is None:
        draft.missing.append(f"sizing.cell: {cell.how}")
    elif rest is not None and margin > MOST_MARGIN and not printed and cell.margin <= MOST_ROUNDING:
        off = uncertainty(draft)
        left = rest - (draft.number("state.bytes") or 0.0)
        low, high = max(0.0, left - off) / cell.bytes, max(0.0, left + off) / cell.bytes
        draft.missing.append(
            f"sizing.budget: {show_bytes(left)} is too little to predict from figures of 0.01 GiB "
            f"(between {low:,.0f} and {high:,.0f} tokens)"
        )
    else:
        draft.inputs["sizing.cell"] = cell.bytes
        if cell.calibrated or _origin(draft.facts, "pool.bytes") == "derived":
            draft.calibrated.append("sizing.cell")


def _other_sizing(draft: Draft) -> str:
    """Why the formula does not hold for this run, ``""`` if it does."""
    if draft.facts.value("sizing.post_capture") is True:
        return "the pool was sized from what was free after graph capture, which this log does not print"
    if "sizing.unified_bytes" in draft.facts:
        return "KV and state share one byte pool; the printed tokens are an upper bound, not a share"
    return ""


def _origin(facts: Facts, name: str) -> str:
    fact = facts.get(name)
    return fact.origin if fact else ""


def _draft_charged(draft: Draft) -> bool:
    """Whether the draft's weights are in A1: 0.5.14 and later, or if the log shows that order."""
    if "draft.weights.loaded" not in draft.facts:
        return False
    return draft.span.likely("0.5.14")


def _free(draft: Draft) -> None:
    exact = draft.number("gpu.free_least")
    before = exact if exact is not None else draft.number("gpu.free_before_load")
    fact = draft.facts.get("gpu.free_before_load")
    printed = exact is None and fact is not None
    if before is not None and printed:
        late = draft.late_reading
        before += late
        if late:
            draft.notes.append(f"A0 is the printed figure plus {show_bytes(late)}: it is read earlier")
    how = ('the line "Load weight begin. avail mem=…" of the target', 'the line "Load weight end. … avail mem=…"')
    if _origin(draft.facts, "sizing.budget") == "log":
        how = ("", "")  # the engine printed the budget itself
    draft.take("gpu.free_before_load", before, how[0])
    draft.take("gpu.free_after_load", draft.number("gpu.free_after_load"), how[1])


def _fraction(draft: Draft) -> None:
    fraction = draft.number("sizing.fraction")
    free = draft.number("gpu.free_before_load")
    default = default_fraction(draft.span, _arguments(draft.facts), draft.number("gpu.total"), free)
    if default is not None:
        draft.facts.add("sizing.fraction_formula", default, (), rank="", origin="derived")
    if fraction is None and default is not None:
        draft.facts.add("sizing.fraction", default, (), rank="", origin="derived")
        draft.facts.add("sizing.fraction_default", True, (), rank="", origin="derived")
        draft.notes.append(f"mem_fraction_static is not in the log: the default {default:g} of the version was assumed")
        fraction = default
    printed = _origin(draft.facts, "sizing.budget") == "log"
    draft.take("sizing.fraction", fraction, "" if printed else "the line server_args=… (mem_fraction_static)")


def _arguments(facts: Facts) -> dict[str, Any]:
    return {fact.name[5:]: fact.value for fact in facts if fact.name.startswith("args.")}


def _foreign(draft: Draft) -> None:
    """Memory that others hold, on the rank that has least: from a witness, else from the spread over the ranks."""
    known = draft.number("gpu.foreign")
    fact = draft.facts.get("gpu.free_before_load")
    if known is None and fact is not None and len(fact.ranks) > 1:
        values = sorted(v for v in fact.ranks.values() if isinstance(v, int | float))
        spread = values[len(values) // 2] - values[0]
        if spread > max(0.03 * values[-1], 0.5 * GIB):
            known = spread
            draft.facts.add("gpu.foreign", spread, fact.where, rank="", origin="derived")
    draft.take("gpu.foreign", known)


def _state(draft: Draft) -> bool:
    """Fills the inputs of recurrent state; whether the model has any."""
    facts, number = draft.facts, draft.number
    if "state.slots" not in facts and "state.bytes" not in facts:
        return False
    draft.take("state.slot_bytes", _slot_bytes(draft), 'the line "Mamba Cache is allocated", or --model-dir')
    ratio = draft.argument("mamba_full_memory_ratio")
    draft.take("state.ratio", float(ratio) if isinstance(ratio, int | float) and ratio >= 0 else 0.9)
    facts.add("state.ratio", draft.inputs["state.ratio"], facts.where("args.mamba_full_memory_ratio"), rank="")
    if facts.value("spec.enabled") is True:
        how = "the line server_args=… (speculative_num_draft_tokens)"
        draft.take("spec.draft_tokens", number("spec.draft_tokens"), how)
    radix = draft.argument("disable_radix_cache") is not True
    per_request = number("state.slots_per_request")
    if per_request is None:
        strategy = draft.argument("mamba_radix_cache_strategy") or draft.argument("mamba_scheduler_strategy") or ""
        guess, certain = slots_per_request(
            draft.span,
            radix=radix,
            overlap=draft.argument("disable_overlap_schedule") is not True,
            speculative=facts.value("spec.enabled") is True,
            strategy=str(strategy),
        )
        if not certain and (shown := _slots_by_limit(draft)):
            guess, certain = shown, True
        per_request = float(guess)
        if certain:
            facts.add("state.slots_per_request", guess, (), rank="", origin="derived")
    draft.take("state.slots_per_request", per_request)
    given = draft.argument("max_mamba_cache_size")
    if isinstance(given, int) and (not radix or draft.span.likely("0.5.7")):
        draft.take("state.slots", float(given))
    elif not radix and draft.span.likely("0.5.8") and number("limit.running_requested"):
        draft.take("state.slots", number("limit.running_requested"))
    return True


def _slots_by_limit(draft: Draft) -> int | None:
    """State slots per request as the printed limit of running requests shows them, if only one number gives it."""
    slots, limit, wanted = map(draft.number, ("state.slots", "limit.running", "limit.running_requested"))
    if not slots or not limit or limit < _TELLING_LIMIT or (wanted is not None and wanted <= limit):
        return None
    fits = [per_request for per_request in _SLOTS_PER_REQUEST if slots // per_request == limit]
    return fits[0] if len(fits) == 1 else None


def _slot_bytes(draft: Draft) -> float | None:
    """S1: by the model's config if it is known, else from the printed state, slots and padding slot."""
    if (by_config := draft.number("model.state_slot_bytes")) is not None:
        return by_config
    return draft.number("state.slot_bytes")


def _duplicate(draft: Draft, charged: bool) -> None:
    """The draft's own embedding and head: seen as a rise of free memory after the pools, or against its file.

    They are freed after the draft's pool, so free memory RISES up to the first capture. What is allocated in between is
    added for the triton backend of 0.5.15 .. 0.5.18, where it was measured; elsewhere the rise is a lower bound.
    """
    facts = draft.facts
    if not charged:
        return
    known = draft.number("draft.duplicate_vocab")
    where: tuple[Where, ...] = facts.where("draft.duplicate_vocab")
    after, before = draft.number("free.after_pool"), draft.number("free.before_graphs")
    if before is None:
        before = draft.number("free.after_graphs")
    if known is None and after is not None and before is not None and before - after > 0.1 * GIB:
        known = before - after
        if str(draft.argument("attention_backend")) == "triton" and draft.span.likely("0.5.15"):
            tokens = draft.number("pool.tokens") or 0.0
            known += TRITON_WORKSPACE + BYTES_PER_POOL_TOKEN * tokens
        where = facts.where("free.after_pool") + facts.where("free.before_graphs")
    loaded, on_disk = draft.number("draft.weights.loaded"), draft.number("draft.weights.on_disk")
    if known is None and loaded is not None and on_disk is not None and loaded - on_disk > 0.2 * GIB:
        known = loaded - on_disk
        where = facts.where("draft.weights.loaded") + facts.where("draft.weights.on_disk")
    if known is not None:
        if loaded is not None:
            known = min(known, loaded)
        facts.add("draft.duplicate_vocab", known, where, rank="", origin="derived")
        draft.inputs["draft.duplicate_vocab"] = known


def _rest(draft: Draft, budget: float | None) -> float | None:
    if budget is not None:
        return budget
    inputs = draft.inputs
    names = ("gpu.free_before_load", "gpu.free_after_load", "sizing.fraction")
    if any(name not in inputs for name in names):
        return None
    before, after, fraction = (inputs[name] for name in names)
    return after - before * (1 - fraction) - inputs.get("sizing.reserved", 0.0)


def _top_up(draft: Draft, requested: float | None) -> float:
    """Tokens that speculation added after sizing, up to 0.5.6: N * steps * topk + N * D + 100."""
    if draft.facts.value("spec.enabled") is not True or draft.span.likely("0.5.7"):
        return 0.0
    steps, topk = draft.argument("speculative_num_steps", 0), draft.argument("speculative_eagle_topk", 0)
    depth = draft.number("spec.draft_tokens") or 0.0
    if not isinstance(steps, int) or not isinstance(topk, int) or requested is None:
        return 0.0
    return requested * steps * topk + requested * depth + 100


def _formula(draft: Draft, printed: bool, state: bool) -> str:
    parts = "budget as printed" if printed else "A1 - A0(1-f)"
    return f"sglang {draft.span}: ({parts}{' - state' if state else ''}) / cell"


def _margin(draft: Draft, rest: float | None, cell: Cell) -> float:
    """Relative error that rounding of the printed figures, and the late reading of A0, allow."""
    if not rest or rest <= 0:
        return 1.0
    left = rest - (draft.number("state.bytes") or 0.0)
    return min(1.0, uncertainty(draft) / max(left, 1.0) + cell.margin)


def _check_slots(draft: Draft, model: SglangSizing) -> None:
    """Takes the observed slots as an input where no formula of the run's span gives them from the ratio."""
    observed = draft.number("state.slots")
    if not model.state or observed is None or "state.slots" in model.inputs:
        return
    spans = [model.span, Span(model.span.high, model.span.high, model.span.known)]
    slots = {span: solved for span in spans if (solved := replace(model, span=span).solve().slots) is not None}
    best = min(slots, key=lambda span: abs(slots[span] - observed), default=model.span)
    model.span = best
    if best not in slots or abs(slots[best] - observed) > max(2.0, 0.01 * observed):
        model.inputs["state.slots"] = observed
        model.slots_given = True
        model.calibrated = (*model.calibrated, "state.slots")
