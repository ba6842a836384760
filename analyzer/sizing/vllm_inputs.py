"""From the facts of one vLLM run to the inputs of its sizing model.

Independent sources are preferred: the ledger for the bytes, and for the bytes of a token the model folder, the text of
a refusal (needed GiB over context length) or V0's swap blocks. Only where none is there, bytes per token are taken from
the printed pool itself (``calibrated``): no proof, but good enough to price a change.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from analyzer.run.facts import Facts
from analyzer.run.model import Run
from analyzer.sizing.vllm import VllmSizing
from analyzer.sizing.vllm_hybrid import HybridPlan
from analyzer.sizing.vllm_versions import (
    ESTIMATE_SUBTRACTED,
    TOKENS_BY_CONCURRENCY,
    WINDOWS_COUNT_BATCHES,
    at_least,
    default_fraction,
    label,
    span,
)
from analyzer.units import GIB, number_or_none

SWAP_SPACE = 4 * GIB
"""V0's default swap space on each device (``--swap-space``, GiB)."""
ROUNDING = 0.005 * GIB
"""Sizes are printed with two decimals."""
SAME = 0.01
"""Two printed figures of one thing differ by rounding only."""

_ENOUGH = ("pool.available_bytes", "pool.blocks", "pool.tokens", "sizing.requested", "gpu.total")
"""Any of these says something of a pool."""

_DEBUG = "printed at DEBUG from 0.11 to 0.25: set VLLM_LOGGING_LEVEL=DEBUG"
HOW = {
    "gpu.total": f"device memory is {_DEBUG}, or give --gpu-memory",
    "sizing.fraction": "the log shows no arguments: give the start of the log",
    "activation.bytes": f"the ledger is {_DEBUG}",
    "pool.available_bytes": "'Available KV cache memory' is not in this log: give the worker's output",
    "pool.bytes_per_token": "bytes per token follow from the model's config: give --model-dir",
}


@dataclass(slots=True)
class _Draft:
    """Inputs as they are gathered."""

    run: Run
    rank: str
    values: dict[str, float] = field(default_factory=dict)
    calibrated: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def facts(self) -> Facts:
        return self.run.facts

    def fact(self, name: str) -> float | None:
        """A number of the tightest rank, else of the run."""
        fact = self.facts.get(name)
        return None if fact is None else number_or_none(fact.ranks.get(self.rank, fact.value))

    def take(self, *names: str) -> None:
        """Copies facts that are known."""
        for name in names:
            if (value := self.fact(name)) is not None:
                self.values[name] = value

    def lacks(self, name: str) -> None:
        self.missing.append(f"{name}: {HOW[name]}")


def build(run: Run) -> VllmSizing | None:
    """The sizing model of ``run``, or None where its facts say nothing of a pool."""
    facts = run.facts
    if not any(name in facts for name in _ENOUGH):
        return None
    draft = _Draft(run, _tightest(facts))
    draft.take("gpu.total", "weights.loaded", "activation.bytes", "non_torch.bytes", "sizing.multimodal_reserve")
    draft.take("pool.tokens", "pool.available_bytes", "pool.block_tokens", "pool.padding_waste", "limit.context")
    draft.take("limit.running_requested", "args.decode_context_parallel_size")
    if draft.values.get("args.decode_context_parallel_size", 1.0) < 1:
        del draft.values["args.decode_context_parallel_size"]  # no server has fewer than one
    if draft.values.get("pool.padding_waste", 0.0) >= 1:
        del draft.values["pool.padding_waste"]
    if "weights.loaded" not in draft.values and (on_disk := draft.fact("weights.on_disk")) is not None:
        draft.values["weights.loaded"] = on_disk
    _fraction(draft)
    _graphs(draft)
    _user_limits(draft)
    ledger = _ledger(draft)
    _swap_pool(draft)
    known, step = _known_tokens(draft)
    hybrid = _hybrid(draft)
    source = "model folder" if hybrid is not None else _per_token(draft, known)
    _complain(draft, ledger, hybrid is not None)
    model = VllmSizing(
        formula=_formula(run, ledger, source, step),
        inputs=draft.values,
        missing=tuple(draft.missing),
        calibrated=tuple(dict.fromkeys(draft.calibrated)),
        margin=_margin(draft),
        ledger=ledger,
        tokens_known=known,
        tokens_step=step,
        proportional=source == "the pool itself",
        hybrid=hybrid,
        notes=tuple(draft.notes),
    )
    _write_facts(draft, model)
    return model


def _tightest(facts: Facts) -> str:
    """The rank with the least KV memory."""
    fact = facts.get("pool.available_bytes") or facts.get("pool.tokens")
    if fact is None or not fact.ranks:
        return ""
    return min(fact.ranks, key=lambda rank: (fact.ranks[rank], rank))


def _fraction(draft: _Draft) -> None:
    if draft.facts.value("args.device") == "cpu":
        return  # the CPU back end takes a given number of bytes
    draft.take("sizing.fraction")
    if "sizing.fraction" in draft.values or draft.facts.value("sizing.fraction_default") is not True:
        return
    if (default := default_fraction(draft.run)) is not None:
        draft.values["sizing.fraction"] = default
        draft.notes.append(f"gpu_memory_utilization was not given: {default:g} is this version's default")


def _graphs(draft: _Draft) -> None:
    """The estimate is subtracted by default from 0.20; the engine's own line on it decides where there is one."""
    draft.take("graphs.applied")
    estimated = draft.fact("graphs.estimated")
    if "graphs.applied" not in draft.values and estimated is not None:
        subtracted = at_least(draft.run, ESTIMATE_SUBTRACTED)
        if subtracted is not None:
            draft.values["graphs.applied"] = estimated if subtracted else 0.0


def _user_limits(draft: _Draft) -> None:
    """What the user gave in place of a share of memory. The CPU back end always works so."""
    draft.take("pool.user_blocks")
    printed = draft.values.get("pool.available_bytes")
    given = draft.fact("pool.user_bytes")
    if given is not None and (printed is None or abs(printed - given) <= max(2 * ROUNDING, SAME * given)):
        draft.values["pool.user_bytes"] = given


def _ledger(draft: _Draft) -> tuple[str, ...] | None:
    """The parts that make up the budget, if all are known."""
    values = draft.values
    if "gpu.total" not in values or "sizing.fraction" not in values:
        return None
    weights = values.get("weights.loaded")
    consumed, peak = draft.fact("sizing.consumed"), draft.fact("sizing.peak_torch")
    if consumed is not None and weights is None and "activation.bytes" in values:
        values["sizing.consumed"] = consumed
        return _parts(draft, "sizing.consumed", "activation.bytes", "graphs.applied")
    if peak is not None and "non_torch.bytes" in values:
        if weights is None:
            values["sizing.peak_torch"] = peak
            return _parts(draft, "sizing.peak_torch", "non_torch.bytes")
        values["activation.bytes"] = peak - weights
    if all(name in values for name in ("weights.loaded", "activation.bytes", "non_torch.bytes")):
        return _parts(draft, "weights.loaded", "activation.bytes", "non_torch.bytes", "graphs.applied")
    if weights is not None and "pool.available_bytes" in values and "pool.user_bytes" not in values:
        budget = values["gpu.total"] * values["sizing.fraction"]
        taken = weights + values.get("graphs.applied", 0.0) + values.get("sizing.multimodal_reserve", 0.0)
        rest = budget - taken - values["pool.available_bytes"] - values.get("non_torch.bytes", 0.0)
        if "activation.bytes" not in values and rest >= 0:
            values["activation.bytes"] = rest
            draft.calibrated.append("activation.bytes")
    return None


def _parts(draft: _Draft, *names: str) -> tuple[str, ...]:
    return tuple(n for n in (*names, "sizing.multimodal_reserve") if n in draft.values)


def _swap_pool(draft: _Draft) -> None:
    """V0: the swap space holds m blocks, so one block has swap space / m bytes."""
    swap = draft.fact("pool.swap_blocks")
    given = draft.facts.number("args.swap_space")
    space = SWAP_SPACE if given is None else given * GIB
    if swap and space:
        draft.values["pool.block_bytes"] = space / swap
        blocks = draft.fact("pool.blocks")
        if "pool.available_bytes" not in draft.values and blocks:
            draft.values["pool.available_bytes"] = blocks * space / swap
            draft.calibrated.append("pool.available_bytes")


def _known_tokens(draft: _Draft) -> tuple[float | None, str]:
    """Tokens of the pool by another printed figure, in the meaning of this version's "KV cache size"."""
    facts, rank = draft.facts, _fewest(draft.facts)
    tokens, concurrency = (_at(facts, name, rank) for name in ("pool.tokens", "limit.concurrency"))
    context, blocks, block = (draft.fact(n) for n in ("limit.context", "pool.blocks", "pool.block_tokens"))
    by_concurrency = concurrency * context if concurrency and context else None
    parallel = draft.values.get("args.decode_context_parallel_size", 1.0)
    if by_concurrency is not None and concurrency is not None:
        rounding = 0.006 / concurrency + 0.001
        one_group = tokens is not None and tokens > 0 and abs(by_concurrency / tokens - 1) <= rounding
        if one_group or at_least(draft.run, TOKENS_BY_CONCURRENCY):
            return by_concurrency, f"tokens = {concurrency:g} requests of {context:,.0f} tokens = {by_concurrency:,.0f}"
    return _tokens_by_blocks(draft, blocks, block, tokens, parallel) or (None, "")


def _tokens_by_blocks(
    draft: _Draft, blocks: float | None, block: float | None, tokens: float | None, parallel: float
) -> tuple[float, str] | None:
    """Tokens from blocks. More blocks than the tokens need: the layers form several groups (up to 0.20.0)."""
    facts = draft.facts
    if blocks and tokens:
        block = block or 16.0
        groups = round(blocks * block * parallel / tokens)
        if groups > 1 and abs(blocks * block * parallel / groups / tokens - 1) <= groups / blocks + 1e-3:
            draft.values["pool.groups"] = float(groups)
            draft.calibrated.append("pool.groups")
            known = blocks // groups * block * parallel
            return known, f"tokens = {blocks:,.0f} blocks // {groups} groups x {block:g} tokens = {known:,.0f}"
        if groups == 1 and "pool.block_tokens" in facts and facts.get("pool.tokens").origin != "derived":  # type: ignore[union-attr]
            known = blocks * block * parallel
            return known, f"tokens = {blocks:,.0f} blocks x {block:g} tokens = {known:,.0f}"
    return None


def _fewest(facts: Facts) -> str:
    fact = facts.get("pool.tokens")
    return min(fact.ranks, key=lambda r: (fact.ranks[r], r)) if fact is not None and fact.ranks else ""


def _at(facts: Facts, name: str, rank: str) -> float | None:
    fact = facts.get(name)
    value = None if fact is None else fact.ranks.get(rank, fact.value)
    return float(value) if isinstance(value, int | float) else None


def _per_token(draft: _Draft, known: float | None) -> str:
    """Bytes per token and how they were found: swap, model, needed, or the pool itself."""
    values, facts = draft.values, draft.facts
    block = values.get("pool.block_tokens")
    if (size := values.get("pool.block_bytes")) is not None and block:
        values["pool.bytes_per_token"] = size / block
        return "V0 swap blocks"
    if (cell := _model_cell(draft)) is not None:
        values["pool.bytes_per_token"] = cell
        values.setdefault("pool.block_tokens", 16.0)
        return "model folder"
    needed, context = draft.fact("pool.needed_bytes"), draft.fact("limit.context")
    available, estimate = values.get("pool.available_bytes"), draft.fact("limit.context_estimated")
    if needed and context and available is not None:
        by_share = available / needed * context
        if not estimate or abs(by_share / estimate - 1) <= SAME:
            values["pool.bytes_per_token"] = needed / context
            return "needed for one request"
        draft.notes.append(
            f"{by_share:,.0f} tokens would fit in proportion, the engine estimates {estimate:,.0f}: "
            "a part of each request has a fixed size (windowed or recurrent layers)"
        )
    if "pool.user_blocks" in values and not draft.fact("pool.profiled_blocks"):
        return ""
    tokens = known or facts.value("pool.tokens")
    if (profiled := draft.fact("pool.profiled_blocks")) and block:
        tokens = profiled * block
    size = values.get("pool.user_bytes") or values.get("pool.available_bytes")
    if tokens and size:
        values["pool.bytes_per_token"] = size / tokens
        if known is None:
            draft.calibrated.append("pool.bytes_per_token")
        return "the pool itself"
    return ""


def _model_cell(draft: _Draft) -> float | None:
    """Bytes per token by the model's config, drafter included, for models with one group of layers."""
    cell, layers = draft.fact("model.cell"), draft.fact("model.attention_layers")
    windows = draft.fact("model.window_layers") and not _manager_off(draft.run)
    if cell is None or windows or draft.fact("model.state_layers"):
        return None
    extra = draft.fact("draft.cell")
    if extra is None and draft.facts.value("spec.enabled") and layers and (own := draft.fact("draft.layers")):
        extra = cell / layers * own
    return cell + (extra or 0.0)


def _hybrid(draft: _Draft) -> HybridPlan | None:
    """The geometry of a model with windowed or recurrent layers, if the model folder gives it."""
    layers, cell = draft.fact("model.attention_layers"), draft.fact("model.cell")
    states, windows = draft.fact("model.state_layers") or 0.0, draft.fact("model.window_layers") or 0.0
    low, high = span(draft.run)
    if not layers or not cell or not (states or windows) or low[:2] != high[:2]:
        return None
    slot, window = draft.fact("model.state_slot_bytes"), draft.fact("model.window")
    if (states and not slot) or (windows and (not window or windows >= layers)) or _manager_off(draft.run):
        return None
    speculates = draft.facts.value("spec.enabled") is True
    draft.values["draft.layers"] = (draft.fact("draft.layers") or 0.0) if speculates else 0.0
    draft.values["spec.draft_tokens"] = (draft.fact("spec.draft_tokens") or 0.0) if speculates else 0.0
    draft.take("args.max_num_batched_tokens")
    block = draft.fact("pool.block_tokens")
    mode = draft.facts.value("state.mode") or ("align" if draft.facts.value("args.enable_prefix_caching") else "none")
    asynchronous = any(e.kind == "async_scheduling" and e.get("scheduling") == "enabled" for e in draft.run.events)
    return HybridPlan(
        full_layers=int(layers - windows),
        attention_bytes=cell / layers,
        version=low,
        window_layers=int(windows),
        window=int(window or 0),
        state_layers=int(states),
        state_bytes=slot / states if slot and states else 0.0,
        mode=str(mode),
        block_tokens=int(block) if block else None,
        batches=2 if asynchronous and low >= WINDOWS_COUNT_BATCHES else 1,
    )


def _manager_off(run: Run) -> bool:
    """Whether windowed layers are stored in full: then the model has one group of layers."""
    return any(event.kind in ("hybrid_manager_off", "hybrid_manager_off_chunked") for event in run.events)


def _complain(draft: _Draft, ledger: tuple[str, ...] | None, hybrid: bool) -> None:
    values = draft.values
    if "pool.bytes_per_token" not in values and not hybrid:
        draft.lacks("pool.bytes_per_token")
    if "pool.user_bytes" in values or ledger is not None:
        return
    if draft.facts.value("args.device") == "cpu":
        if "pool.available_bytes" not in values:
            draft.lacks("pool.available_bytes")
        return
    for name in ("gpu.total", "sizing.fraction"):
        if name not in values:
            draft.lacks(name)
    if "pool.available_bytes" not in values:
        draft.lacks("pool.available_bytes")
    if "activation.bytes" not in values or "activation.bytes" in draft.calibrated:
        draft.lacks("activation.bytes")


def _formula(run: Run, ledger: tuple[str, ...] | None, source: str, step: str) -> str:
    start = "budget - weights - activation - other" if ledger is not None else "available"
    if source and source != "the pool itself":
        return f"vllm {label(run)}: ({start}) / bytes per token ({source})"
    if not step:
        return f"vllm {label(run)}: ({start}) / bytes per token"
    tokens = "blocks // groups x block" if "blocks" in step else "concurrency x context"
    if ledger is not None:
        return f"vllm {label(run)}: {start}; {tokens}"
    unchecked = "" if "blocks" in step else ", both as printed, so this is no check of the memory"
    return f"vllm {label(run)}: {tokens}{unchecked}"


def _margin(draft: _Draft) -> float:
    """Relative error that rounding of the printed figures allows."""
    size = draft.values.get("pool.available_bytes") or draft.values.get("pool.user_bytes")
    margin = ROUNDING / size if size else 0.0
    if (concurrency := draft.fact("limit.concurrency")) is not None and concurrency > 0:
        margin += 0.005 / concurrency
    if swap := draft.fact("pool.swap_blocks"):
        margin += 1 / swap
    return margin


def _write_facts(draft: _Draft, model: VllmSizing) -> None:
    """Facts that only the formula gives."""
    facts, values = draft.facts, draft.values

    def add(name: str, value: float | str | None, proof: str) -> None:
        if value is not None and name not in facts:
            facts.add(name, value, facts.where(proof), rank=draft.rank, origin="derived")

    if "gpu.total" in values and "sizing.fraction" in values:
        add("sizing.requested", values["gpu.total"] * values["sizing.fraction"], "gpu.total")
    add("graphs.applied", values.get("graphs.applied"), "graphs.estimated")
    size = values.get("pool.user_bytes", values.get("pool.available_bytes"))
    add("sizing.budget", size, "pool.available_bytes")
    if "pool.tokens" in facts and "pool.user_blocks" not in values:
        add("pool.bytes", size, "pool.available_bytes")
    one_group = "pool.groups" not in values and (model.tokens_known is not None or "pool.swap_blocks" in facts)
    if one_group and "pool.bytes_per_token" in values:
        add("pool.bytes_per_token", values["pool.bytes_per_token"], "pool.tokens")
    add("pool.block_bytes", values.get("pool.block_bytes"), "pool.swap_blocks")
    add("pool.groups", values.get("pool.groups"), "pool.blocks")
    if "pool.tokens" in facts:
        given = "pool.user_bytes" in values or "pool.user_blocks" in values
        add("pool.bound_by", "user-cap" if given else "memory", "pool.tokens")
    if "limit.running_requested" in values:
        add("limit.running", values["limit.running_requested"], "limit.running_requested")
        add("limit.bound_by", "seqs", "limit.running_requested")
