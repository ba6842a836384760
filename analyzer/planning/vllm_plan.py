"""A planned vLLM launch as the facts that its log would print.

Estimated, because only a profile run gives them: the activation peak, memory outside the allocator, CUDA graphs. Their
formulas were set beside the few published ledgers there are, and are good to a factor of two (activation) and three
(graphs).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from analyzer.evidence.cache_bytes import Setup, version_key
from analyzer.evidence.components import Ranks
from analyzer.evidence.geometry import FULL, AttentionSpec
from analyzer.evidence.model_facts import model_facts, setup_of
from analyzer.planning.flags import speculation_of
from analyzer.planning.launch import SMALL_DEVICE, Estimate, Launch, planned
from analyzer.planning.vllm_pool import Ask, Pool, pool_of
from analyzer.run.facts import Fact, Facts
from analyzer.run.model import Run
from analyzer.sizing.vllm import VllmSizing, vllm_model
from analyzer.units import GIB, several, show_bytes

LOADING = 0.1 * GIB
NON_TORCH, NON_TORCH_TP = 0.25 * GIB, 0.5 * GIB
GRAPHS_PER_LAYER = 0.015 * GIB
HIDDEN_COPIES, WIDE_COPIES, LOGIT_BYTES = 6, 3, 16
"""Activation peak: copies of the hidden row and of the MLP's row that live at once, bytes per logit."""
NO_DRAFT = frozenset({"ngram", "suffix", "ngram_gpu"})
OWN_DRAFT_WORDS = ("mtp", "nextn")


@dataclass(slots=True)
class VllmPlan:
    """The parts of one planned launch."""

    launch: Launch
    run: Run
    model: VllmSizing | None
    pool: Pool
    available: float
    estimates: list[Estimate] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def resolved(launch: Launch) -> Launch:
    """The launch with vLLM's defaults by version and device (reference vllm 3.0)."""
    args: dict[str, Any] = dict(launch.args)
    key = version_key(launch.version)
    args.setdefault("gpu_memory_utilization", 0.92 if key >= (0, 20) else 0.90)
    small = launch.total < SMALL_DEVICE
    args.setdefault("max_num_seqs", 256 if small or key < (0, 7) else 1024)
    batched = 2048 if small else 16384 if key >= (0, 28) and launch.total >= 160 * GIB else 8192
    args.setdefault("max_num_batched_tokens", batched)
    return launch.changed(**args)


def plan_vllm(launch: Launch, scale: dict[str, float] | None = None) -> VllmPlan:
    """The plan of ``launch``. ``scale`` replaces estimates by name, for the bounds of the uncertainty."""
    launch = resolved(launch)
    speculative = speculation_of(launch.args)
    draft_tokens = int(speculative.get("tokens", 0))
    ranks = Ranks(launch.tp, launch.pp, launch.ep, launch.tp, "vllm")
    setup = setup_of(launch.folder, engine="vllm", version=launch.version, attention_tp=launch.tp,
                     kv_dtype=launch.text("kv_cache_dtype") or "auto", draft_tokens=draft_tokens,
                     ssm_dtype=launch.text("mamba_ssm_dtype") or "auto")  # fmt: skip
    notes: list[str] = []
    estimates = _estimates(launch)
    value = {e.name: (scale or {}).get(e.name, e.value) for e in estimates}
    weights, draft_layers = _weights(launch, ranks, speculative, notes)
    graphs = value["graphs"] if _graphs_applied(launch) else 0.0
    budget = launch.total * launch.number("gpu_memory_utilization")
    taken = weights + value["loading"] + value["activation"] + value["non_torch"] + graphs
    given = launch.number("kv_cache_memory_bytes")
    available = given or budget - taken
    ask = _ask(launch, draft_layers, notes)
    pool = pool_of(available, launch.folder.geometry, setup, ask)
    facts = Facts(_facts(launch, setup, speculative, value, weights, graphs, available, pool))
    run = Run(1, "plan", engine="vllm", version=launch.version or None, version_basis="argument", facts=facts)
    model = vllm_model(run)
    if launch.taken and launch.taken + budget > launch.total:
        notes.append(f"{show_bytes(launch.taken)} taken by others and a budget of {show_bytes(budget)} do not fit into "
                     f"{show_bytes(launch.total)}: the start will be refused (0.9.2 and later)")  # fmt: skip
    return VllmPlan(launch, run, model, pool, available, estimates, notes)


def _estimates(launch: Launch) -> list[Estimate]:
    config = launch.folder.config
    batched, seqs = launch.number("max_num_batched_tokens"), launch.number("max_num_seqs")
    hidden, vocab = config.number("hidden") or 4096, config.number("vocab") or 128_000
    wide = config.number("intermediate") or 4 * hidden
    if active := config.number("num_experts_per_tok"):
        wide = active * (config.number("moe_intermediate_size") or wide)
    activation = batched * 2 * (HIDDEN_COPIES * hidden + WIDE_COPIES * wide / launch.tp)
    activation += min(seqs, batched) * vocab * LOGIT_BYTES
    if config.vision:
        activation *= 1.3
    layers = config.number("layers") or 32
    graphs = 0.0 if launch.on("enforce_eager") else GRAPHS_PER_LAYER * layers
    return [
        launch.estimate("loading", LOADING, 2.0, "what loading takes beyond the tensors"),
        launch.estimate("activation", activation, 2.0, f"peak of a batch of {batched:,.0f} tokens, before profiling"),
        launch.estimate("non_torch", NON_TORCH_TP if launch.tp > 1 else NON_TORCH, 2.0, "outside the allocator"),
        launch.estimate("graphs", graphs, 3.0, "CUDA graphs"),
    ]


def _graphs_applied(launch: Launch) -> bool:
    """Whether the estimate of graph memory is taken from the budget: by default from 0.20 on (reference 3.3)."""
    return version_key(launch.version) >= (0, 20) and not launch.on("enforce_eager")


def _weights(
    launch: Launch, ranks: Ranks, speculative: dict[str, Any], notes: list[str]
) -> tuple[float, tuple[AttentionSpec, ...]]:
    """(bytes of target and drafter on the largest rank, the drafter's layers with KV)."""
    folder = launch.folder
    stages = folder.rank_bytes(ranks)
    target = launch.target_bytes(ranks)
    method = str(speculative.get("method") or "").lower()
    if not speculative or method in NO_DRAFT:
        return target, ()
    if launch.draft is not None:
        draft = launch.draft
        files = draft.rank_bytes(ranks)
        return target + max(files.target, default=0) + files.mtp, draft.geometry.attention
    if any(word in method for word in OWN_DRAFT_WORDS) or not speculative.get("model"):
        layers = folder.mtp_layers or folder.config.mtp_layers or 1
        full = next((a for a in folder.geometry.attention if a.span == FULL), None)
        if speculative["tokens"] > layers:
            held = several(layers, "MTP layer")
            notes.append(
                f"{speculative['tokens']} draft tokens on {held}: "
                "the layer is used again, acceptance falls with each use"
            )
        return target + stages.mtp, (full,) * layers if full else ()
    notes.append("the drafter's folder was not given (--draft-dir): its weights and KV layers are not counted")
    return target, ()


def _ask(launch: Launch, draft_layers: tuple[AttentionSpec, ...], notes: list[str]) -> Ask:
    context = int(launch.number("max_model_len") or launch.folder.config.context or 4096)
    mode = launch.text("mamba_cache_mode")
    if not mode and launch.folder.geometry.states:
        cached = version_key(launch.version) >= (0, 15) and not launch.on("no_enable_prefix_caching")
        mode = "align" if cached else "none"
        notes.append(f"mamba_cache_mode {mode} assumed ({'prefix caching on' if cached else 'prefix caching off'})")
    return Ask(
        context,
        int(launch.number("block_size")),
        mode or "none",
        int(launch.number("max_num_batched_tokens")),
        max(1, int(launch.number("decode_context_parallel_size", 1))),
        draft_layers,
        int(launch.number("num_gpu_blocks_override")),
    )


def _facts(
    launch: Launch, setup: Setup, speculative: dict[str, Any], value: dict[str, float], weights: float, graphs: float,
    available: float, pool: Pool,
) -> Iterator[Fact]:  # fmt: skip
    yield planned("engine.name", "vllm")
    for name, argument in launch.args.items():
        flag = launch.spelled.get(name)
        text = f"{flag} {argument}" if flag else f"{name} = {argument} by default"
        yield planned(f"args.{name}", argument, text, origin="argument")
    for fact in model_facts(
        launch.folder, tp=launch.tp, pp=launch.pp, ep=launch.ep, kv_dtype=setup.kv_dtype, ssm_dtype=setup.ssm_dtype,
        engine="vllm", version=launch.version, draft=launch.draft, draft_tokens=setup.draft_tokens,
        package=False,
    ):  # fmt: skip
        if speculative or not fact.name.startswith("draft."):
            yield fact
    fraction = launch.number("gpu_memory_utilization")
    yield planned("gpu.total", launch.total, f"--gpu-memory {show_bytes(launch.total)}")
    if launch.taken:
        yield planned("gpu.foreign", launch.taken)
    yield planned("sizing.fraction", fraction)
    yield planned("sizing.fraction_default", "gpu_memory_utilization" not in launch.spelled)
    if given := launch.number("kv_cache_memory_bytes"):
        yield planned("pool.user_bytes", given)
    else:
        yield planned("weights.loaded", weights + value["loading"])
        yield planned("activation.bytes", value["activation"])
        yield planned("non_torch.bytes", value["non_torch"])
        yield planned("graphs.applied", graphs)
    yield planned("graphs.bytes", value["graphs"])
    context = int(launch.number("max_model_len") or launch.folder.config.context or 0)
    if context:
        yield planned("limit.context", context)
    yield planned("limit.running_requested", int(launch.number("max_num_seqs")))
    yield planned("limit.running_default", "max_num_seqs" not in launch.spelled)
    yield planned("spec.enabled", bool(speculative))
    if speculative:
        yield planned("spec.method", speculative["method"])
        yield planned("spec.draft_tokens", speculative["tokens"])
    yield planned("pool.available_bytes", available)
    yield planned("pool.blocks", pool.blocks)
    yield planned("pool.block_tokens", pool.block_tokens)
    yield planned("pool.block_bytes", pool.block_bytes)
    yield planned("pool.tokens", int(pool.tokens))
    yield planned("limit.concurrency", round(pool.concurrency, 4))
    yield planned("limit.running", max(0, min(int(launch.number("max_num_seqs")), math.floor(pool.tokens))))
    if launch.number("num_gpu_blocks_override"):
        yield planned("pool.user_blocks", int(launch.number("num_gpu_blocks_override")))
