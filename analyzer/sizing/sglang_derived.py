"""Facts that only SGLang's formula gives: budget, reserve, charged cell, unspent memory, and which bound decided."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from analyzer.sizing.sglang_cell import Cell
from analyzer.sizing.sglang_running import RunningInputs, running_requests

if TYPE_CHECKING:
    from analyzer.sizing.sglang import SglangSizing
    from analyzer.sizing.sglang_inputs import Draft


def write_derived(draft: Draft, model: SglangSizing, cell: Cell, rest: float | None) -> None:
    """Writes budget, reserve, cell, what was left unspent and the deciding bounds into the run's facts."""
    facts, inputs = draft.facts, model.inputs

    def put(name: str, value: float | str | None, sources: Iterable[str]) -> None:
        where = tuple(dict.fromkeys(place for source in sources for place in facts.where(source)))
        facts.add(name, value, where, rank="", origin="derived")

    pools = ("pool.bytes", "draft.pool.bytes")
    budget_sources = ("gpu.free_after_load", "gpu.free_before_load", "sizing.fraction")
    if rest is not None and model.budget is None:
        put("sizing.budget", rest, budget_sources)
    if "gpu.free_before_load" in inputs and "sizing.fraction" in inputs:
        put("sizing.reserve", inputs["gpu.free_before_load"] * (1 - inputs["sizing.fraction"]), budget_sources[1:])
    if "sizing.cell" not in facts:
        put("sizing.cell", cell.bytes, ("pool.bytes", "pool.tokens", "draft.pool.bytes", *budget_sources))
    put("pool.bytes_per_token", cell.stored_target, ("pool.bytes", "pool.tokens"))
    put("sizing.charged_ratio", cell.charged_ratio, (*pools, "free.after_pool", *budget_sources))
    put("draft.layers_counted", cell.layers_counted, ("pool.bytes", "draft.pool.bytes", *budget_sources))
    put("sizing.attention_layers", cell.attention_layers, pools)
    put("draft.charged_depth", cell.charged_depth, (*pools, *budget_sources))
    put("sizing.stored_cell", cell.stored, ("pool.bytes", "pool.tokens", "draft.pool.bytes"))
    free = "free.after_pool" if model.draft_charged or "draft.pool.bytes" not in facts else "free.after_target_pool"
    after, reserve = draft.number(free), draft.number("sizing.reserve")
    if after is not None and reserve is not None:
        put("sizing.unspent", after - reserve, (free, *budget_sources[1:]))
    _bounds(draft, model)


def _bounds(draft: Draft, model: SglangSizing) -> None:
    """Which minimum decided the pool and the running requests."""
    facts = draft.facts
    tokens, cap = draft.number("pool.tokens"), draft.number("pool.user_cap")
    page = max(1.0, draft.number("pool.block_tokens") or 1.0)
    if tokens is not None:
        capped = cap is not None and cap - page < tokens <= cap
        bound = "user-cap" if capped else "memory"
        facts.add("pool.bound_by", bound, facts.where("pool.tokens"), rank="", origin="derived")
    observed = draft.number("limit.running")
    if observed is None or tokens is None:
        return
    if draft.number("limit.running_by_state") == observed:
        name = "state-slots"
    else:
        running = running_requests(
            RunningInputs(
                tokens=tokens,
                context=draft.number("limit.context") or 0.0,
                requested=draft.number("limit.running_requested"),
                attention_dp=model.attention_dp,
                default=model.running_default,
                slots=draft.number("state.slots") if model.state else None,
                per_request=model.inputs.get("state.slots_per_request"),
            ),
            draft.span,
        )
        if running.requests != observed:
            return
        name = running.bound_by
    facts.add("limit.bound_by", name, facts.where("limit.running"), rank="", origin="derived")
