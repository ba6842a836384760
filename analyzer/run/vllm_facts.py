"""What each line of a vLLM start-up proves.

One small writer for each kind of event; ``write_facts`` replays the kept lines through them in order. A value belongs
to the rank whose process printed it and is never summed over ranks. Engine cores of data-parallel groups are ranks of
their own (``EngineCore_DP1``); where one process prints the same line for several workers (0.8 to 0.11), its lines are
numbered.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from analyzer.events import Event
from analyzer.run import vllm_devices as devices
from analyzer.run.facts import Facts, Where
from analyzer.run.vllm_derived import derive
from analyzer.run.vllm_devices import ENGINE_CORE, rank_of
from analyzer.run.vllm_refusals import WRITERS as REFUSALS
from analyzer.run.vllm_refusals import write_refusal

Lines = dict[str, list[Event]]
"""Kept events by kind, in order."""

Writer = Callable[[list[Event], Facts], None]

GIB = 1 << 30
_PLAUSIBLE_MEMORY = 1 << 50
"""More than this was printed in bytes where GiB was meant (0.10.2, 0.11.0)."""


def _ranked(name: str, field: str) -> Callable[[Event, Facts], None]:
    def write(event: Event, facts: Facts) -> None:
        facts.add(name, event.get(field), event.record, rank=rank_of(event))

    return write


def _each(*writers: Callable[[Event, Facts], None]) -> Writer:
    def write(events: list[Event], facts: Facts) -> None:
        for event in events:
            for one in writers:
                one(event, facts)

    return write


def _numbered(events: list[Event]) -> list[tuple[str, Event]]:
    """Rank and event; several lines of one rank are told apart by number."""
    ranks = [rank_of(event) for event in events]
    seen: dict[str, int] = {}
    result = []
    for rank, event in zip(ranks, events, strict=True):
        number = seen.get(rank, 0)
        seen[rank] = number + 1
        result.append((f"{rank} worker {number}".strip() if ranks.count(rank) > 1 else rank, event))
    return result


# identity and limits


def _arch(events: list[Event], facts: Facts) -> None:
    first = events[0].get("arch")
    facts.add("model.arch", first, events[0].record, rank="")
    draft = next((e for e in events[1:] if e.get("arch") != first), None)
    if draft is not None and facts.value("spec.enabled") is not False:
        facts.add("draft.arch", draft.get("arch"), draft.record, rank="")


def _context(events: list[Event], facts: Facts) -> None:
    if "limit.context" not in facts:
        facts.add("limit.context", events[0].get("max_len"), events[0].record, rank="")


def _autofit(event: Event, facts: Facts) -> None:
    facts.add("limit.context", event.get("max_len"), event.record, rank="")
    facts.add("model.context", event.get("model_len"), event.record, rank="")


def _batched_tokens(event: Event, facts: Facts) -> None:
    facts.add("args.max_num_batched_tokens", event.get("batched_tokens"), event.record, rank="", origin="argument")


def _default_seqs(event: Event, facts: Facts) -> None:
    facts.add("limit.running_requested", event.get("seqs"), event.record, rank="")
    facts.add("limit.running_default", True, event.record, rank="")


def _rank_layout(events: list[Event], facts: Facts) -> None:
    for name, field in (
        ("args.tensor_parallel_size", "tp_rank"),
        ("args.pipeline_parallel_size", "pp_rank"),
        ("args.data_parallel_size", "dp_rank"),
    ):
        highest = max(events, key=lambda e: e.get(field, 0))
        if name not in facts and highest.get(field):
            facts.add(name, highest.get(field) + 1, highest.record, rank="", origin="argument")


# weights


def _weights(events: list[Event], facts: Facts) -> None:
    """V0 loads target and draft in two workers of one process, target first; V1 prints one figure for both."""
    loads: dict[str, list[Event]] = {}
    for event in events:
        loads.setdefault(rank_of(event), []).append(event)
    for rank, own in loads.items():
        facts.add("weights.loaded", own[0].get("weights"), own[0].record, rank=rank)
        if len(own) > 1 and facts.value("spec.enabled"):
            facts.add("draft.weights.loaded", own[1].get("weights"), own[1].record, rank=rank)
            facts.add("weights.loaded", own[1].get("weights"), own[1].record, rank=f"{rank} draft".strip())
        elif len(own) > 1:
            facts.add("weights.loaded", own[-1].get("weights"), own[-1].record, rank=rank)


def _checkpoint(events: list[Event], facts: Facts) -> None:
    """One line for each set of files that is loaded: the target's, then the drafter's, whose weights count in the
    same figure of memory. A size that is printed again is the same set of files, read by another worker."""
    for rank in dict.fromkeys(map(rank_of, events)):
        sizes = {event.get("checkpoint"): event for event in events if rank_of(event) == rank}
        places = [Where.of(event.record) for event in sizes.values()]
        facts.add("weights.checkpoint", sum(size for size in sizes if size), places, rank=rank)


# budget


def _budget(event: Event, facts: Facts) -> None:
    """Whatever part of the budget's equation a line holds."""
    rank, record, get = rank_of(event), event.record, event.get
    free = get("free")
    if free is not None and free > _PLAUSIBLE_MEMORY:
        free /= GIB
    for name, value in (
        ("gpu.total", get("total")),
        ("gpu.free_before_load", free),
        ("sizing.requested", get("budget")),
        ("activation.bytes", get("activation")),
        ("non_torch.bytes", get("non_torch")),
        ("sizing.consumed", get("consumed")),
        ("sizing.peak_torch", get("peak_torch")),
        ("sizing.suggested", get("suggested_bytes")),
        ("sizing.suggested_full", get("full_bytes")),
        ("pool.available_bytes", get("available")),
        ("graphs.bytes", get("graphs")),
    ):
        facts.add(name, value, record, rank=rank)
    if (weights := get("weights")) is not None and "weights.loaded" not in facts:
        facts.add("weights.loaded", weights, record, rank=rank)
    if (fraction := get("fraction")) is not None and "sizing.fraction" not in facts:
        facts.add("sizing.fraction", fraction, record, rank="")


def _kv_given(event: Event, facts: Facts) -> None:
    _budget(event, facts)
    reserved = event.get("reserved")
    facts.add("pool.user_bytes", reserved, event.record, rank="")
    facts.add("pool.available_bytes", reserved, event.record, rank=rank_of(event))


def _plan(event: Event, facts: Facts) -> None:
    _budget(event, facts)
    facts.add("pool.available_bytes", event.get("kv_bytes"), event.record, rank=rank_of(event))


# graphs


def _captured(event: Event, facts: Facts) -> None:
    """A negative figure is what somebody else gave back while graphs were captured: it tells nothing of them."""
    if (taken := event.get("graphs")) is not None and taken >= 0:
        facts.add("graphs.bytes", taken, event.record, rank=rank_of(event))


def _estimate_on(event: Event, facts: Facts) -> None:
    _budget(event, facts)
    total = facts.value("gpu.total")
    estimated = facts.value("graphs.estimated")
    if estimated is None and total:
        estimated = (event.get("fraction") - event.get("equivalent")) * total
    facts.add("graphs.applied", estimated, event.record, rank=rank_of(event))


def _estimate_off(event: Event, facts: Facts) -> None:
    _budget(event, facts)
    facts.add("graphs.applied", 0, event.record, rank=rank_of(event))


# blocks and tokens


def _blocks(event: Event, facts: Facts) -> None:
    facts.add("pool.blocks", event.get("blocks"), event.record, rank=rank_of(event))
    facts.add("pool.swap_blocks", event.get("swap_blocks"), event.record, rank=rank_of(event))


def _tokens(events: list[Event], facts: Facts) -> None:
    for rank, event in _numbered(events):
        facts.add("pool.tokens", event.get("tokens"), event.record, rank=rank)
        facts.add("limit.concurrency", event.get("concurrency"), event.record, rank=rank)
        _served_context(event, facts)
    cores = {event.record.process for event in events if ENGINE_CORE.match(event.record.process)}
    if len(cores) > 1 and "args.data_parallel_size" not in facts:
        facts.add("args.data_parallel_size", len(cores), events[-1].record, rank="", origin="derived")


def _concurrency(events: list[Event], facts: Facts) -> None:
    for rank, event in _numbered(events):
        facts.add("limit.concurrency", event.get("concurrency"), event.record, rank=rank)
        _served_context(event, facts)


def _served_context(event: Event, facts: Facts) -> None:
    """The length that the concurrency is counted in is the context that is served."""
    if "limit.context" not in facts:
        facts.add("limit.context", event.get("per_request"), event.record, rank="")


def _override(event: Event, facts: Facts) -> None:
    """Zero profiled blocks mark the throw-away pool of graph profiling: no limit of the user's."""
    if event.get("profiled_blocks"):
        facts.add("pool.user_blocks", event.get("override_blocks"), event.record, rank="")
        facts.add("pool.profiled_blocks", event.get("profiled_blocks"), event.record, rank=rank_of(event))


def _cache_config(events: list[Event], facts: Facts) -> None:
    """With data parallelism the front end's figure is the sum over the engines."""
    event = events[-1]
    blocks = event.get("blocks")
    if blocks is None or "pool.blocks" in facts:
        return
    engines = int(facts.value("args.data_parallel_size") or 1)
    tokens, context = facts.value("pool.tokens"), facts.value("limit.context")
    concurrency, block = facts.value("limit.concurrency"), facts.value("pool.block_tokens", 16)
    if engines == 1 and tokens and context and concurrency and abs(concurrency * context / tokens - 1) < 1e-3:
        engines = max(1, round(blocks * block / tokens))  # one group of layers: more blocks are other engines'
    facts.add("pool.blocks", blocks // engines, event.record, rank="")


def _groups(event: Event, facts: Facts) -> None:
    sizes = [int(n) for n in re.findall(r"\d+", str(event.get("sizes")))]
    facts.add("pool.groups", len(sizes) or None, event.record, rank="")
    if sizes and len(set(sizes)) == 1:
        facts.add("pool.block_tokens", sizes[0], event.record, rank="")


def _padding(event: Event, facts: Facts) -> None:
    facts.add("pool.padding_layers", event.get("layers"), event.record, rank="")
    facts.add("pool.padding_waste", event.get("waste"), event.record, rank="")


def _block_size(event: Event, facts: Facts) -> None:
    facts.add("pool.block_tokens", event.get("block_tokens"), event.record, rank="")


def _kv_dtype(event: Event, facts: Facts) -> None:
    facts.add("pool.dtype", event.get("dtype"), event.record, rank="")


def _context_parallel(event: Event, facts: Facts) -> None:
    for name, field in (("decode", "dcp"), ("prefill", "pcp")):
        facts.add(f"args.{name}_context_parallel_size", event.get(field), event.record, rank="", origin="argument")


# speculation


def _drafter(event: Event, facts: Facts) -> None:
    facts.add("spec.enabled", True, event.record, rank="")


def _compiled(event: Event, facts: Facts) -> None:
    """The head of a drafter is compiled in a folder of its own."""
    if "/eagle_head" in str(event.get("folder")):
        facts.add("spec.enabled", True, event.record, rank="")


def _proposer(event: Event, facts: Facts) -> None:
    name = re.search(r"\.(medusa|ngram|mlp_speculator|multi_step|eagle)\w*", str(event.get("spec_class")))
    if name and event.get("spec_part") == "proposer" and facts.value("spec.method") in (None, "draft_model"):
        method = {"multi_step": "draft_model"}.get(name[1], name[1])
        facts.add("spec.method", method, event.record, rank="")


def _platform(event: Event, facts: Facts) -> None:
    """The hardware found; the threads and the space of the CPU back end are printed on a CPU only."""
    facts.add("engine.platform", event.get("platform") or "cpu", event.record, rank="")


FACT_KINDS: dict[str, Writer] = {
    "platform_detected": _each(_platform),
    "cpu_threads": _each(_platform),
    "api_server_version": _each(),
    "banner": _each(_ranked("model.path", "model")),
    "banner_model": _each(_ranked("model.path", "model")),
    "arch_resolved": _arch,
    "max_model_len": _context,
    "autofit_reduced": _each(_autofit),
    "chunked_prefill": _each(_batched_tokens),
    "batched_tokens_default": _each(_batched_tokens),
    "max_num_seqs_default": _each(_default_seqs),
    "rank_assigned": _rank_layout,
    "context_parallel_tokens": _each(_context_parallel),
    "kv_dtype": _each(_kv_dtype),
    "weights_loaded": _weights,
    "checkpoint_size": _checkpoint,
    "v0_profile": _each(_budget),
    "v0_profile_results": _each(_budget),
    "debug_snapshot": _each(_budget),
    "debug_requested": _each(_budget),
    "debug_profile": _each(_budget),
    "xpu_before_profile": _each(_budget),
    "xpu_after_profile": _each(devices.xpu_profile),
    "tpu_memory": _each(devices.tpu_memory),
    "hpu_memory": _each(devices.hpu_memory),
    "hpu_weights_taken": _each(devices.hpu_taken),
    "hpu_cache_taken": _each(devices.hpu_taken),
    "tpu_model": _each(devices.tpu_loaded),
    "ascend_memory": _each(devices.ascend_memory),
    "available_kv": _each(_ranked("pool.available_bytes", "available")),
    "cpu_kv_default": _each(_platform, _ranked("pool.available_bytes", "available")),
    "cpu_kv_space": _each(_platform, devices.cpu_space),
    "kv_bytes_given": _each(_kv_given),
    "startup_plan_applied": _each(_plan),
    "graph_estimate": _each(_ranked("graphs.estimated", "graphs_estimated")),
    "graphs_captured": _each(_captured),
    "graph_compared": _each(_captured, _ranked("graphs.estimated", "graphs_estimated")),
    "ledger_weights": _each(_budget),
    "ledger_consumed": _each(_budget),
    "graph_estimate_on": _each(_estimate_on),
    "graph_estimate_off": _each(_estimate_off),
    "graph_estimate_later": _each(_estimate_off),
    "multimodal_reserve": _each(
        _ranked("sizing.multimodal_reserve", "mm_reserved"), _ranked("pool.available_bytes", "available")
    ),
    "kv_block_size": _each(_block_size),
    "attention_block": _each(_block_size),
    "attention_block_mixed": _each(_block_size),
    "group_sizes": _each(_groups),
    "state_padding": _each(_ranked("state.padding", "padding")),
    "state_dtype": _each(_ranked("state.dtype", "state_type")),
    "state_mode": _each(_ranked("state.mode", "mode")),
    "padding_layers": _each(_padding),
    "v0_blocks": _each(_blocks),
    "v1_blocks": _each(_blocks),
    "blocks_override": _each(_override),
    "kv_tokens": _tokens,
    "max_concurrency": _concurrency,
    "cache_config_info": _cache_config,
    "spec_drafter_loading": _each(_drafter),
    "engine_ready": _each(_ranked("engine.init_seconds", "seconds")),
    "compile_seconds": _each(),
    "compile_cache": _each(_compiled),
    "spec_worker_v0": _each(_proposer),
    **{kind: _each(write_refusal) for kind in REFUSALS},
}
"""Kind of event -> what it proves, in the order in which the facts are drawn."""


def write_facts(lines: Lines, facts: Facts) -> None:
    """Draws the facts from the kept lines."""
    for kind, write in FACT_KINDS.items():
        if events := lines.get(kind):
            write(events, facts)
    derive(facts, consumed="ledger_consumed" in lines)
