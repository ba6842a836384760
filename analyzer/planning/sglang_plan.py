"""A planned SGLang launch as the facts that its log would print, first up to the sizing, then with what it gives.

Estimated, because no file gives it: what the device context takes before loading, what loading adds to the files, and
CUDA graphs. Everything else is arithmetic on the folder and the arguments (reference sglang 3).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from analyzer.evidence.cache_bytes import Setup, cell_bytes, slot_bytes, version_key
from analyzer.evidence.components import Ranks
from analyzer.evidence.model_facts import model_facts, setup_of
from analyzer.planning.launch import Estimate, Launch, planned
from analyzer.planning.sglang_draft import DEFAULT_48, Speculation, has_own_draft, speculation
from analyzer.run.facts import Fact, Facts
from analyzer.run.model import Run
from analyzer.sizing.base import Solution
from analyzer.sizing.sglang import SglangSizing, sglang_model
from analyzer.sizing.sglang_fraction import default_fraction, multimodal_factor
from analyzer.sizing.sglang_versions import Span
from analyzer.units import GIB, MIB, show_bytes

CONTEXT = 1.2 * GIB
"""Device memory gone before A0 is read: driver, CUDA context, libraries. Measured 1.21 GiB on an H200 (0.5.17)."""
CONTEXT_TP = 0.9 * GIB
"""More with several ranks: communicators."""
LOADING = 0.08 * GIB
"""What a load takes beyond its tensors (0.07 .. 0.08 GiB measured)."""
GRAPH_BYTES = 2 * MIB
"""Of one captured batch size, as the engine's own reserve counts it."""
WORKSPACE = 0.1 * GIB
TOKEN_OVERHEAD = 56
"""Bytes per pool token outside the cell from 0.5.15 on (reference 3.8)."""
DEFAULT_CHUNK = ((35, 2048), (60, 4096), (160, 8192))
DEFAULT_BATCH = ((20, 8, 8), (35, 24, 80), (60, 32, 160), (160, 256, 512))
"""Device size below (GiB) -> cuda_graph_max_bs with fewer than four ranks, with more."""


@dataclass(slots=True)
class SglangPlan:
    """The parts of one planned launch."""

    launch: Launch
    run: Run
    model: SglangSizing
    solution: Solution
    estimates: list[Estimate] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def resolved(launch: Launch) -> Launch:
    """The launch with the defaults that the engine fills in from device size and version."""
    total, args = launch.total / GIB, dict(launch.args)
    args.setdefault("chunked_prefill_size", next((c for size, c in DEFAULT_CHUNK if total < size), 16384))
    batch = next((few if launch.tp < 4 else many for size, few, many in DEFAULT_BATCH if total < size), 512)
    args.setdefault("cuda_graph_max_bs", int(batch))
    args.setdefault("max_prefill_tokens", 16384)
    args.setdefault("page_size", 1)
    if args.get("speculative_algorithm"):
        args.setdefault("speculative_num_steps", 3)
    strategy = args.get("mamba_radix_cache_strategy") or args.get("mamba_scheduler_strategy") or "auto"
    if launch.folder.geometry.states and strategy == "auto":
        args["mamba_radix_cache_strategy"] = _strategy(launch)
    return launch.changed(**args)


def _strategy(launch: Launch) -> str:
    """What ``auto`` becomes: no_buffer up to 0.5.13; extra_buffer from 0.5.14 where the architecture is listed."""
    text_only = launch.folder.config.architecture in ("Qwen3_5ForCausalLM", "Qwen3_5MoeForCausalLM")
    if version_key(launch.version) < (0, 5, 14) or text_only or launch.on("disable_overlap_schedule"):
        return "no_buffer"
    return "extra_buffer"


def plan_sglang(launch: Launch, scale: dict[str, float] | None = None) -> SglangPlan:
    """The plan of ``launch``. ``scale`` replaces estimates by name, for the bounds of the uncertainty."""
    launch = resolved(launch)
    attention_tp = max(1, launch.tp // launch.attention_dp)
    ranks = Ranks(launch.tp, launch.pp, launch.ep, attention_tp, "sglang")
    ratio = launch.number("swa_full_tokens_ratio", 0.0) or None
    spec_tokens = int(launch.number("speculative_num_draft_tokens", launch.number("speculative_num_steps", 3) + 1))
    setup = setup_of(
        launch.folder, engine="sglang", version=launch.version, attention_tp=attention_tp,
        kv_dtype=launch.text("kv_cache_dtype") or "auto", ssm_dtype=launch.text("mamba_ssm_dtype") or "auto",
        draft_tokens=spec_tokens, swa_ratio=ratio,
    )  # fmt: skip
    spec = speculation(launch, setup, ranks)
    estimates = _estimates(launch)
    value = {e.name: (scale or {}).get(e.name, e.value) for e in estimates}
    notes: list[str] = []
    facts = Facts(_before(launch, setup, ranks, spec, value, notes))
    run = Run(1, "plan", engine="sglang", version=launch.version or None, version_basis="argument", facts=facts)
    model = sglang_model(run)
    assert model is not None  # free memory after loading is always a fact here
    model.inputs["sizing.cell"] = _charged_cell(launch, setup, spec)
    solution = model.solve()
    after = Facts(_before(launch, setup, ranks, spec, value, []))
    for fact in _after(launch, setup, spec, facts, model, solution, value):
        after.put(fact)
    run.facts = after
    final = sglang_model(run) or model
    final.inputs["sizing.cell"] = model.inputs["sizing.cell"]
    final.calibrated = ()
    return SglangPlan(launch, run, final, solution, estimates, notes)


def _estimates(launch: Launch) -> list[Estimate]:
    context = CONTEXT + (CONTEXT_TP if launch.tp > 1 else 0.0)
    graphs = 0.0 if launch.on("disable_cuda_graph") else GRAPH_BYTES * launch.number("cuda_graph_max_bs") + WORKSPACE
    return [
        launch.estimate("context", context, 1.35, "driver, CUDA context and communicators before loading"),
        launch.estimate("loading", LOADING, 2.0, "what loading takes beyond the tensors"),
        launch.estimate("graphs", graphs, 3.0, "CUDA graphs, outside the pool's budget"),
    ]


def _charged_cell(launch: Launch, setup: Setup, spec: Speculation | None) -> float:
    target = cell_bytes(launch.folder.geometry, setup) or 0.0
    layers = len(launch.folder.geometry.attention)
    if spec is None or not spec.charge_cell or not layers:
        return target
    if spec.own or version_key(launch.version) < (0, 5, 18):
        return target * (1 + spec.charged / layers)
    return target + spec.stored_cell


def _fraction(launch: Launch, notes: list[str]) -> tuple[float, bool]:
    """(mem_fraction_static, whether it is the default)."""
    if given := launch.number("mem_fraction_static"):
        return given, False
    key = version_key(launch.version)
    known = key[0] < 1 << 20
    span = Span(key, key, True) if known else Span((0, 5, 23), (0, 5, 23), True)
    fraction = default_fraction(span, launch.args, launch.total) or 0.88
    vision = launch.folder.config.vision
    if vision and not launch.on("language_only"):
        depth, hidden = vision.get("num_hidden_layers", 24), vision.get("hidden_size", 1024)
        factor = multimodal_factor(float(depth) if isinstance(depth, int) else 24.0,
                                   float(hidden) if isinstance(hidden, int) else 1024.0)  # fmt: skip
        notes.append(f"default fraction {fraction:g} x {factor:.3f} for the vision tower = {fraction * factor:.4f}")
        fraction *= factor
    else:
        notes.append(f"default fraction of this version, device and arguments: {fraction:g}")
    return fraction, True


def _before(
    launch: Launch, setup: Setup, ranks: Ranks, spec: Speculation | None, value: dict[str, float], notes: list[str]
) -> Iterator[Fact]:
    """What is known when the pool is sized."""
    folder = launch.folder
    yield planned("engine.name", "sglang")
    yield from _arguments(launch)
    shown = [f for f in model_facts(
        folder, tp=launch.tp, pp=launch.pp, ep=launch.ep, dp_attention=launch.attention_dp, kv_dtype=setup.kv_dtype,
        ssm_dtype=setup.ssm_dtype, engine="sglang", version=launch.version,
        draft=None if has_own_draft(launch) else launch.draft,
        swa_ratio=setup.swa_ratio, package=False,
    ) if spec is not None or not f.name.startswith("draft.")]  # fmt: skip
    yield from shown
    weights = launch.target_bytes(ranks)
    free = launch.total - launch.taken - value["context"]
    loaded = weights + value["loading"]
    if launch.taken:
        yield planned("gpu.foreign", launch.taken, f"--taken {show_bytes(launch.taken)}")
    yield planned("gpu.total", launch.total, f"--gpu-memory {show_bytes(launch.total)}")
    yield planned("gpu.free_before_load", free, f"{show_bytes(launch.total)} less {show_bytes(value['context'])}")
    yield planned("gpu.free_least", free)
    yield planned("weights.loaded", loaded, f"{show_bytes(weights)} in the files and {show_bytes(value['loading'])}")
    taken = loaded
    if spec is not None:
        yield planned("draft.weights.loaded", spec.weights, f"{show_bytes(spec.duplicate)} of it its own vocabulary")
        if spec.charge_weights:
            taken += spec.weights
            yield planned("draft.duplicate_vocab", spec.duplicate)
    yield planned("gpu.free_after_load", free - taken)
    fraction, default = _fraction(launch, notes)
    yield planned("sizing.fraction", fraction, "default of the version" if default else "--mem-fraction-static")
    yield planned("sizing.fraction_default", default)
    yield from _limits(launch, spec)
    if folder.geometry.states:
        yield planned("state.bytes", 0.0)
        yield planned("state.slot_bytes", slot_bytes(folder.geometry, setup))
        yield planned("state.dtype", setup.ssm_dtype)


def _arguments(launch: Launch) -> Iterator[Fact]:
    for name, value in launch.args.items():
        flag = launch.spelled.get(name)
        yield planned(f"args.{name}", value, f"{flag} {value}" if flag else f"{name} = {value} by default",
                      origin="argument")  # fmt: skip


def _limits(launch: Launch, spec: Speculation | None) -> Iterator[Fact]:
    context = launch.number("context_length") or float(launch.folder.config.context or 0)
    if context:
        yield planned("limit.context", int(context))
    requested = launch.number("max_running_requests")
    algorithm = launch.text("speculative_algorithm").upper()
    if requested:
        yield planned("limit.running_requested", int(requested))
    elif algorithm in DEFAULT_48:
        yield planned("limit.running_requested", 48, "48 by default under speculation")
        yield planned("limit.running_default", True)
    if cap := launch.number("max_total_tokens"):
        yield planned("pool.user_cap", int(cap))
    yield planned("pool.block_tokens", int(launch.number("page_size", 1)))
    yield planned("spec.enabled", bool(algorithm))
    if algorithm:
        yield planned("spec.method", "EAGLE" if algorithm == "NEXTN" else algorithm)
    if spec is not None:
        yield planned("spec.draft_tokens", spec.draft_tokens)
        if spec.charge_cell:
            yield planned("draft.layers_counted", spec.charged, spec.why or "by the draft's config")


def _after(
    launch: Launch, setup: Setup, spec: Speculation | None, facts: Facts, model: SglangSizing, solution: Solution,
    value: dict[str, float],
) -> Iterator[Fact]:  # fmt: skip
    """What the log would print once the pool is allocated."""
    tokens = solution.tokens or 0.0
    target = cell_bytes(launch.folder.geometry, setup) or 0.0
    stored = spec.stored_cell if spec is not None else 0.0
    yield planned("pool.tokens", int(tokens))
    yield planned("pool.bytes", tokens * target)
    free = float(facts.value("gpu.free_after_load")) - tokens * target
    if stored:
        yield planned("draft.pool.bytes", tokens * stored)
        free -= tokens * stored
        if spec is not None and not spec.charge_weights:
            free -= spec.weights - spec.duplicate
    if solution.slots is not None:
        yield from _state(launch, setup, spec, model, solution)
        free -= _state_bytes(setup, launch, spec, model, solution)[0]
    running = int(solution.running or 0)
    yield planned("limit.running", running)
    context = float(facts.value("limit.context") or 0)
    free -= (running + 1) * (context + 4 + (spec.draft_tokens if spec else 0)) * 4
    yield planned("free.after_pool", free)
    freed = spec.duplicate if spec is not None and spec.charge_weights else 0.0
    free += freed - WORKSPACE - (TOKEN_OVERHEAD * tokens if version_key(launch.version) >= (0, 5, 15) else 0.0)
    yield planned("free.before_graphs", free)
    yield planned("graphs.bytes", value["graphs"])
    yield planned("free.after_graphs", free - value["graphs"])


def _state_bytes(
    setup: Setup, launch: Launch, spec: Speculation | None, model: SglangSizing, solution: Solution
) -> tuple[float, float]:
    """(state bytes in all, of them intermediate states for verification)."""
    size = slot_bytes(launch.folder.geometry, setup)
    slots = solution.slots or 0.0
    per_request = model.inputs.get("state.slots_per_request", 1.0)
    requested = model.inputs.get("limit.running_requested", float("inf"))
    depth = spec.draft_tokens if spec is not None else 0
    extra = (min(requested, slots // per_request) + 1) * depth * size if depth else 0.0
    return (slots + 1) * size + extra, extra


def _state(
    launch: Launch, setup: Setup, spec: Speculation | None, model: SglangSizing, solution: Solution
) -> Iterator[Fact]:
    total, extra = _state_bytes(setup, launch, spec, model, solution)
    slots, per_request = int(solution.slots or 0), model.inputs.get("state.slots_per_request")
    yield planned("state.slots", slots)
    yield planned("state.bytes", total)
    if extra:
        yield planned("state.intermediate_bytes", extra)
    if per_request:
        yield planned("state.slots_per_request", int(per_request))
        if solution.running == slots // per_request:
            yield planned("limit.running_by_state", int(solution.running))
