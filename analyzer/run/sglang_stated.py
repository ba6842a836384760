"""Facts of an SGLang run that single lines state, whatever came before them.

``sglang_facts`` draws from the order of lines; here a line is enough. SGLang 0.4.0 .. 0.5.23.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from analyzer.run.facts import Facts, Where
from analyzer.run.stacks import standing

if TYPE_CHECKING:
    from analyzer.run.sglang import SglangFolder

REFUSALS = ("request_over_pool", "request_over_context", "request_total_over_context")
"""Kinds of lines that tell of a request refused for its length."""


def write_stated(folder: SglangFolder, facts: Facts) -> None:
    """Writes what single lines say of device, state, pools, limits and refusals."""
    _device(folder, facts)
    _state(folder, facts)
    _other_pools(folder, facts)
    _summary(folder, facts)
    _requests(folder, facts)
    _failed_sizing(folder, facts)


def _device(folder: SglangFolder, facts: Facts) -> None:
    if (found := folder.of("gpu_capacity")) is not None:
        facts.add("gpu.total", found.get("total_mib"), found.record, rank="")
        facts.add("gpu.integrated", True, found.record, rank="")
    for event in folder.events_by_rank("memory_unbalanced"):
        if (least := event.get("least")) is not None:
            facts.add("gpu.free_least", least, event.record)
    for event in folder.events_by_rank("distributed_end"):
        facts.add("non_torch.bytes", event.get("used"), event.record)
    for kind in ("fraction_multimodal_reduced", "fraction_multimodal_adjusted"):
        for event in folder.events_by_rank(kind):
            facts.add("sizing.fraction", event.get("fraction"), event.record, rank="")
            facts.add("sizing.fraction_multimodal", True, event.record, rank="")
    for event in folder.events_by_rank("memory_profiled"):
        facts.add("gpu.free_before_load", event.get("before"), event.record)
        facts.add("gpu.free_after_load", event.get("avail"), event.record)
        if (event.get("rest") or 0.0) > 0:
            facts.add("sizing.budget", event.get("rest"), event.record)
    for event in folder.events_by_rank("symmetric_memory"):
        facts.add("sizing.other_reserved", event.get("reserved"), event.record)
    _reserved(folder, facts)


def _reserved(folder: SglangFolder, facts: Facts) -> None:
    """What is taken out of the budget before the pool: features of multimodal models, scratch of sharded KV."""
    total: dict[str, float] = {}
    places: dict[str, list[Where]] = {}
    for kind, name in (("multimodal_reserve", "reserved"), ("kv_sharding", "scratch")):
        for event in folder.events_by_rank(kind):
            total[event.rank] = total.get(event.rank, 0.0) + (event.get(name) or 0.0)
            places.setdefault(event.rank, []).append(Where.of(event.record))
    for rank, reserved in total.items():
        facts.add("sizing.reserved", reserved, places[rank], rank=rank)


def _state(folder: SglangFolder, facts: Facts) -> None:
    for event in folder.events_by_rank("mamba_cache_allocated"):
        if "ssm" not in event.fields:
            facts.add("state.slots", event.get("slots"), event.record)
            continue
        own = (event.get("conv") or 0.0) + (event.get("ssm") or 0.0)
        between = (event.get("intermediate_ssm") or 0.0) + (event.get("intermediate_conv") or 0.0)
        facts.add("state.bytes", own + between, event.record)
        facts.add("state.slots_bytes", own, event.record)
        if between:
            facts.add("state.intermediate_bytes", between, event.record)
        slots = event.get("slots")
        facts.add("state.slots", slots, event.record)
        if slots and own > 0.1 * (1 << 30):
            facts.add("state.slot_bytes", own / (slots + 1), event.record, origin="derived")
    for kind in ("state_slots_figures", "state_slots_cap"):
        for event in folder.events_by_rank(kind):
            facts.add("state.slots_per_request", event.get("per_request"), event.record)
            facts.add("state.slots", event.get("slots"), event.record)
            facts.add("limit.running_by_state", event.get("running"), event.record)
            facts.add("limit.running", event.get("running"), event.record)
    for event in folder.events_by_rank("state_no_memory"):
        facts.add("state.slot_bytes", event.get("slot_bytes"), event.record)
        facts.add("state.slots", event.get("slots"), event.record)
    for event in folder.events_by_rank("pyspy_dump"):
        if (where := standing(event.record.text)) is not None:
            facts.add("hang.where", where, event.record)
    for event in folder.events_by_rank("state_too_small"):
        facts.add("state.slots_per_request", event.get("per_request"), event.record)
        facts.add("state.slots", event.get("slots"), event.record)


def _other_pools(folder: SglangFolder, facts: Facts) -> None:
    """Pools that are not told by a "KV Cache is allocated" line."""
    for kind in ("swa_pool", "swa_pool_all"):
        for event in folder.events_by_rank(kind):
            facts.add("pool.swa_tokens", event.get("swa_tokens"), event.record)
            facts.add("pool.tokens", event.get("full_tokens", event.get("swa_tokens")), event.record)
    for event in folder.events_by_rank("swa_pool_usage"):
        facts.add("pool.swa_tokens", event.get("swa_tokens"), event.record)
        facts.add("pool.bytes", event.get("pool_bytes"), event.record)
        told = facts.get("pool.tokens")
        if told is None or event.record.rank not in told.ranks:
            facts.add("pool.tokens", event.get("full_tokens"), event.record)
    for event in folder.events_by_rank("dsv4_calculation"):
        facts.add("pool.profiled_tokens", event.get("tokens"), event.record)
        facts.add("sizing.cell", event.get("cell"), event.record)
        facts.add("sizing.budget", event.get("budget"), event.record)
        fixed = (event.get("state_fixed") or 0.0) + (event.get("swa_fixed") or 0.0)
        facts.add("sizing.fixed", fixed, event.record)
    for event in folder.events_by_rank("dsv4_pools"):
        facts.add("pool.tokens", event.get("tokens"), event.record)
        facts.add("pool.swa_tokens", event.get("swa_tokens"), event.record)
    for event in folder.events_by_rank("dsv4_draft_pools"):
        facts.add("draft.pool.tokens", event.get("tokens"), event.record)
        if "pool.tokens" not in facts:  # the draft's pool takes over the target's figures
            facts.add("pool.tokens", event.get("tokens"), event.record)
            facts.add("pool.swa_tokens", event.get("swa_tokens"), event.record)
    for event in folder.events_by_rank("dsv4_store"):
        facts.add("pool.swa_tokens", event.get("swa_tokens"), event.record)
        if "pool.tokens" not in facts and (sized := folder.of("dsv4_calculation", event.rank)) is not None:
            facts.add("pool.tokens", sized.get("tokens"), (Where.of(sized.record), Where.of(event.record)))
    for event in folder.events_by_rank("mlx_pool"):
        facts.add("pool.tokens", event.get("tokens"), event.record)
        facts.add("sizing.cell", event.get("cell"), event.record)
        facts.add("sizing.budget", event.get("budget"), event.record)
        facts.add("weights.loaded", event.get("used"), event.record)
        facts.add("gpu.total", event.get("limit"), event.record)
        facts.add("gpu.integrated", True, event.record)
    for event in folder.events_by_rank("mlx_store"):
        facts.add("pool.tokens", event.get("tokens"), event.record)
        facts.add("pool.bytes", event.get("store_bytes"), event.record)
        facts.add("gpu.integrated", True, event.record)
    for event in folder.events_by_rank("jax_profile"):
        facts.add("pool.profiled_tokens", event.get("tokens"), event.record)
        facts.add("sizing.cell", event.get("cell"), event.record)
        facts.add("sizing.budget", event.get("budget"), event.record)
    for event in folder.events_by_rank("jax_pool"):
        facts.add("pool.tokens", event.get("tokens"), event.record)
    for event in folder.events_by_rank("jit_headroom"):
        facts.add("sizing.budget", event.get("budget"), event.record)
    for event in folder.events_by_rank("token_cap_ignored"):
        facts.add("pool.profiled_tokens", event.get("profiled"), event.record)
        facts.add("pool.user_cap", event.get("wanted"), event.record, rank="")
    for event in folder.events_by_rank("unified_pool_budget"):
        facts.add("sizing.unified_bytes", event.get("budget_exact"), event.record)
        facts.add("pool.tokens", event.get("tokens"), event.record)
    for kind in ("host_pool_small", "kv_cache_post_capture"):
        for event in folder.events_by_rank(kind):
            facts.add("pool.tokens", event.get("tokens"), event.record)
    for event in folder.events_by_rank("kv_cache_post_capture"):
        facts.add("pool.bytes", event.get("kv_bytes"), event.record)
        facts.add("pool.dtype", event.get("dtype"), event.record)
        facts.add("free.after_pool", event.get("avail"), event.record)
        facts.add("sizing.post_capture", True, event.record, rank="")
    for event in folder.events_by_rank("kv_cache_post_capture_draft"):
        facts.add("draft.pool.bytes", event.get("kv_bytes"), event.record)
    if (found := folder.of("sparse_backends")) is not None:
        for phase in ("prefill", "decode"):
            facts.add(f"sparse.{phase}_backend", found.get(f"{phase}_backend"), found.record, rank="")
    for event in folder.events_by_rank("kv_dtype"):
        if "pool.dtype" not in facts:
            facts.add("pool.dtype", event.get("dtype"), event.record)
            if "float4" in str(event.get("dtype")):  # 0.5.5 .. 0.5.12 print the packed values alone
                facts.add("pool.scales_unprinted", True, event.record, rank="")


def _summary(folder: SglangFolder, facts: Facts) -> None:
    for event in folder.events_by_rank("pool_summary"):
        facts.add("pool.tokens", event.get("tokens"), event.record)
        facts.add("limit.running", event.get("running"), event.record)
        facts.add("limit.context", event.get("context"), event.record)
        facts.add("free.after_graphs", event.get("avail"), event.record)
        tokens, context = event.get("tokens"), event.get("context")
        if tokens and context:
            facts.add("limit.input", min(tokens, context) - 6, event.record, origin="derived")
            facts.add("limit.concurrency", tokens / context, event.record, origin="derived")
    for event in folder.events_by_rank("pool_summary_cut"):
        facts.add("pool.tokens", event.get("tokens"), event.record)
    for event in folder.events_by_rank("pool_below_context"):
        facts.add("limit.context", event.get("context"), event.record)
    for kind in ("post_capture_running", "mlx_stub_pools", "max_requests_resolved"):
        for event in folder.events_by_rank(kind):
            if "limit.running" not in facts or kind == "post_capture_running":
                facts.add("limit.running", event.get("running"), event.record)


def _requests(folder: SglangFolder, facts: Facts) -> None:
    if (found := folder.of("max_running_default")) is not None:
        facts.add("limit.running_requested", found.get("running"), found.record, rank="")
        facts.add("limit.running_default", True, found.record, rank="")
    elif folder.args.get("max_running_requests") is not None:
        facts.add("limit.running_default", False, folder.args_event.record if folder.args_event else None, rank="")
    for event in folder.events_by_rank("max_running_reduced"):
        facts.add("limit.running_by_tokens", event.get("running"), event.record)
    for event in folder.events_by_rank("request_over_pool"):
        facts.add("limit.input", event.get("allowed"), event.record, rank="")
    refused = [kind for kind in REFUSALS if kind in folder.last]
    if refused:
        where = [Where.of(folder.first[kind].record) for kind in refused]
        longest = max(int(folder.last[kind].get("total", folder.last[kind].get("tokens", 0))) for kind in refused)
        facts.add("request.refused_tokens", longest, where, rank="")


def _failed_sizing(folder: SglangFolder, facts: Facts) -> None:
    """Figures that only the message of a failed sizing carries."""
    for kind in ("no_pool_memory", "weights_leave_nothing"):
        if (event := folder.of(kind)) is not None and "sizing.fraction" not in facts:
            facts.add("sizing.fraction", event.get("fraction"), event.record, rank="")
    for event in folder.events_by_rank("memory_profiled"):
        if "sizing.fraction" not in facts:  # with two decimals: anything else that says it is more exact
            facts.add("sizing.fraction", event.get("fraction"), event.record, rank="")
        before, avail = event.get("before"), event.get("avail")
        if before and avail and not (event.get("rest") or 0.0) > 0:
            facts.add("sizing.fraction_least", 1 - avail / before, event.record, rank="", origin="derived")
    if (found := folder.of("weights_leave_nothing")) is not None:
        facts.add("sizing.fraction_least", found.get("least"), found.record, rank="")
