"""The facts of one SGLang run, drawn from what its ranks printed.

Sources of what a line means: SGLang 0.4.0 .. 0.5.23, files ``model_runner.py``, ``pool_configurator.py``,
``kv_cache_configurator.py``, ``memory_pool.py``, ``scheduler.py``. Sizes are bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from analyzer.framing.record import Record
from analyzer.run.facts import Facts, Where
from analyzer.run.model import Run
from analyzer.run.sglang_stated import write_stated

if TYPE_CHECKING:
    from analyzer.run.sglang import Load, Pool, RankLog, SglangFolder

ARGUMENT_NAMES = {
    "tp_size": "tensor_parallel_size",
    "pp_size": "pipeline_parallel_size",
    "dp_size": "data_parallel_size",
    "ep_size": "expert_parallel_size",
}
"""SGLang's own names of arguments that both engines have, and the common name."""

_SIMPLE = (str, int, float, bool)


def write_facts(folder: SglangFolder, run: Run) -> None:
    """Writes every fact that the events so far give into ``run.facts``."""
    facts = run.facts
    facts.add("engine.name", "sglang", (), rank="")
    _arguments(folder, facts)
    speculative = _speculation(folder, facts)
    for rank, log in folder.ranks.items():
        _weights(facts, rank, log, speculative)
        _pools(folder, facts, rank, log, speculative)
        _graphs(facts, rank, log)
    write_stated(folder, facts)


def _arguments(folder: SglangFolder, facts: Facts) -> None:
    """Launch arguments: as resolved and printed, else as given on a command line, else as far as rank tags tell."""
    command = folder.of("launch_command") if folder.given else None
    source, args = folder.args_event or command, folder.arguments
    if source is None:
        _ranks_as_arguments(folder, facts)
        return
    where = Where.of(source.record)
    for key, value in args.items():
        if isinstance(value, _SIMPLE) and not str(key).startswith("__"):
            facts.add(f"args.{ARGUMENT_NAMES.get(str(key), key)}", value, where, rank="")
    fraction = args.get("mem_fraction_static")
    if isinstance(fraction, float) and abs(fraction * 1000 - round(fraction * 1000)) > 1e-6:
        facts.add("sizing.fraction_multimodal", True, where, rank="")  # a default has three decimals before this factor
    for name, key in (
        ("model.path", "model_path"),
        ("sizing.fraction", "mem_fraction_static"),
        ("pool.user_cap", "max_total_tokens"),
        ("pool.block_tokens", "page_size"),
        ("limit.running_requested", "max_running_requests"),
        ("state.dtype", "mamba_ssm_dtype"),
    ):
        value = args.get(key)
        if isinstance(value, _SIMPLE) and value != "":
            facts.add(name, value, where, rank="")
    if command is not None:
        given = "mem_fraction_static" in folder.given
        facts.add("sizing.fraction_default", not given, command.record, rank="")


def _ranks_as_arguments(folder: SglangFolder, facts: Facts) -> None:
    """Without the dump of arguments: parallel sizes as far as the rank tags show them (TP0 .. TP3: 4)."""
    for event in folder.events_by_rank("collectives_warm"):
        facts.add("args.tensor_parallel_size", event.get("tp"), event.record, rank="")
    if (found := folder.of("sparse_attention_tp")) is not None:
        facts.add("args.tensor_parallel_size", found.get("tp"), found.record, rank="")
    for tag, name in (("TP", "tensor_parallel_size"), ("PP", "pipeline_parallel_size"), ("DP", "data_parallel_size")):
        numbers = [int(part[len(tag) :]) for rank in folder.ranks for part in rank.split() if _is_tag(part, tag)]
        if numbers and f"args.{name}" not in facts:
            facts.add(f"args.{name}", 1 + max(numbers), (), rank="", origin="derived")


def _is_tag(part: str, tag: str) -> bool:
    return part.startswith(tag) and part[len(tag) :].isdigit()


def _speculation(folder: SglangFolder, facts: Facts) -> bool:
    """The facts of speculation; whether it is on (as far as the log shows)."""
    args = folder.arguments
    method = args.get("speculative_algorithm")
    source = folder.args_event or folder.of("launch_command")
    where = Where.of(source.record) if source else None
    if isinstance(method, str) and method not in ("", "None"):
        facts.add("spec.enabled", True, where, rank="")
        facts.add("spec.method", method, where, rank="")
        for name, key in (
            ("spec.draft_tokens", "speculative_num_draft_tokens"),
            ("spec.steps", "speculative_num_steps"),
        ):
            if isinstance(value := args.get(key), int):
                facts.add(name, value, where, rank="")
        return True
    if "speculative_algorithm" in folder.args:
        facts.add("spec.enabled", False, where, rank="")
        return False
    if (runner := folder.of("spec_dspark_runner")) is not None:
        facts.add("spec.method", "DSPARK", runner.record, rank="")
        facts.add("spec.draft_tokens", runner.get("draft_tokens"), runner.record, rank="")
    shown = _evidence_of_speculation(folder)
    if shown is not None:
        facts.add("spec.enabled", True, shown, rank="")
    return shown is not None


_SIGNS_OF_SPECULATION = (
    ("max_running_default", ""),
    ("draft_graph_begin", ""),
    ("dsv4_draft_pools", ""),
    ("draft_extend_graph_begin", ""),
    ("spec_dspark_runner", ""),
    ("draft_graph_end", ""),
    ("draft_extend_graph_end", ""),
    ("target_graph_begin", "target_phase"),
    ("target_graph_end", "target_phase"),
    ("mamba_cache_allocated", "intermediate_ssm"),
)
"""Kinds of lines that only a server with a draft prints; with a field: where it says more than "decode"."""


def _evidence_of_speculation(folder: SglangFolder) -> Where | None:
    for kind, field in _SIGNS_OF_SPECULATION:
        event = folder.first.get(kind)
        if event is not None and (not field or event.fields.get(field) not in (None, "decode")):
            return Where.of(event.record)
    for log in folder.ranks.values():
        for load in log.loads:
            if load.end is not None and load.looks_like_draft:
                return Where.of(load.end)
    decode = folder.last.get("decode_batch")
    if decode is not None and "accept_length" in decode.fields:
        return Where.of(decode.record)
    return None


def split_loads(log: RankLog, speculative: bool) -> tuple[list[Load], list[Load]]:
    """(loads of the target, loads of drafts) of one rank.

    The first load is the target's. A later one is a draft's if its class says so, or if speculation is on and it is not
    just the same figures again (which is another rank that printed no tag).
    """
    target: list[Load] = []
    draft: list[Load] = []
    for load in log.loads:
        if load.looks_like_draft and (target or load.end is None or speculative):
            draft.append(load)
        elif not target:
            target.append(load)
        elif speculative and not _same_load(target[0], load):
            draft.append(load)
        else:
            target.append(load)
    return target, draft


def _same_load(one: Load, other: Load) -> bool:
    if one.model_type != other.model_type or other.end is None:
        return False
    a, b = one.taken, other.taken
    return a is not None and b is not None and abs(a - b) <= 0.02 * max(abs(a), 1.0)


def _weights(facts: Facts, rank: str, log: RankLog, speculative: bool) -> None:
    target, draft = split_loads(log, speculative)
    if target:
        first = target[0]
        begin = first.begin or first.end
        facts.add("gpu.free_before_load", first.before, _where(begin), rank=rank)
        if first.end is not None:
            facts.add("model.arch", first.model_type, Where.of(first.end), rank=rank)
            origin = "log" if first.used is not None else "derived"
            facts.add("weights.loaded", first.taken, _both(first), rank=rank, origin=origin)
            facts.add("weights.quantization", first.quant or None, Where.of(first.end), rank=rank)
    finished = [load for load in draft if load.end is not None]
    if finished:
        last = finished[-1]
        taken = [load.taken for load in finished if load.taken is not None]
        facts.add("draft.arch", last.model_type, _where(last.end), rank=rank)
        if taken:
            places = [w for load in finished for w in _both(load)]
            facts.add("draft.weights.loaded", sum(taken), places, rank=rank)
        facts.add("draft.loads", len(finished), _where(last.end), rank=rank)
    before_pool = log.loads if log.loads_before_pool is None else log.loads[: log.loads_before_pool]
    ended = [load for load in before_pool if load.after is not None]
    if ended:
        facts.add("gpu.free_after_load", ended[-1].after, _where(ended[-1].end), rank=rank)


def split_pools(log: RankLog, speculative: bool) -> tuple[list[Pool], list[Pool]]:
    """(pools of the target, pools of drafts) of one rank: workers are closed by "Memory pool end", target first."""
    workers = [pools for pools in log.workers if pools]
    if not workers:
        return [], []
    target, rest = workers[0], [pool for pools in workers[1:] for pool in pools]
    if not speculative:
        return target, []
    if not rest and not log.ends and len(target) == 2 and target[0].tokens == target[1].tokens:
        return target[:1], target[1:]  # a paste without the closing lines
    return target, rest


def _pools(folder: SglangFolder, facts: Facts, rank: str, log: RankLog, speculative: bool) -> None:
    target, draft = split_pools(log, speculative)
    if target:
        window = folder.of("swa_pool", rank) or folder.of("swa_pool")
        window_tokens = window.get("swa_tokens") if window else None
        full = [pool for pool in target if len(target) == 1 or pool.tokens != window_tokens] or target
        sizes = [pool.size for pool in target if pool.size is not None]
        places = [Where.of(pool.record) for pool in target]
        facts.add("pool.tokens", full[-1].tokens, places, rank=rank)
        if sizes:
            facts.add("pool.bytes", sum(sizes), places, rank=rank)
            facts.add("pool.rounding", 0.005 * (1 << 30) * sum(pool.parts for pool in target), places, rank=rank)
        facts.add("pool.dtype", full[-1].dtype or None, places, rank=rank)
    elif not speculative and "mamba_cache_allocated" not in folder.last:
        _unprinted_pool(folder, facts, rank, log)
    drafted = [pool.size for pool in draft if pool.size is not None]
    if drafted:
        places = [Where.of(pool.record) for pool in draft]
        facts.add("draft.pool.bytes", sum(drafted), places, rank=rank)
        facts.add("draft.pool.rounding", 0.005 * (1 << 30) * sum(pool.parts for pool in draft), places, rank=rank)
    if log.ends:
        free, record = log.ends[-1]
        facts.add("free.after_pool", free, Where.of(record), rank=rank)
        free, record = log.ends[0]
        facts.add("free.after_target_pool", free, Where.of(record), rank=rank)


def _unprinted_pool(folder: SglangFolder, facts: Facts, rank: str, log: RankLog) -> None:
    """The pool of a version that prints no line for it (up to 0.4.0): what went between the load and the pool's end.

    The table of requests, (N + 1) rows of the context length at 4 bytes, is taken off.
    """
    loaded = next((load for load in reversed(log.loads) if load.after is not None and load.end is not None), None)
    if loaded is None or loaded.after is None or loaded.end is None or not log.ends or loaded.used is not None:
        return  # a version whose line of weights tells the memory used has a line for the pool: it was cut here
    free, record = log.ends[0]
    taken = loaded.after - free
    if (summary := folder.of("pool_summary")) is not None:
        taken -= (summary.get("running", 0) + 1) * summary.get("context", 0) * 4
    if record.line > loaded.end.line and taken > 0:
        facts.add("pool.bytes", taken, (Where.of(loaded.end), Where.of(record)), rank=rank, origin="derived")
        facts.add("pool.rounding", 0.01 * taken, (), rank=rank, origin="derived")


def _graphs(facts: Facts, rank: str, log: RankLog) -> None:
    begun = [g for g in log.graphs if g.before is not None and g.begin is not None]
    if begun:
        facts.add("free.before_graphs", begun[0].before, _where(begun[0].begin), rank=rank)
    ended = [g for g in log.graphs if g.end is not None]
    used = [g for g in ended if g.used is not None]
    if used:
        facts.add("graphs.bytes", sum(g.used or 0.0 for g in used), [Where.of(g.end) for g in used if g.end], rank=rank)
    if ended and ended[-1].after is not None and ended[-1].end is not None:
        facts.add("free.after_graphs", ended[-1].after, Where.of(ended[-1].end), rank=rank)


def _where(record: Record | None) -> tuple[Where, ...]:
    return (Where.of(record),) if record is not None else ()


def _both(load: Load) -> list[Where]:
    return [Where.of(record) for record in (load.end, load.begin) if record is not None]
