"""A planned launch carried through the same sizing model and the same rules as a log, with its uncertainty."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from analyzer.evidence.model_facts import package_facts
from analyzer.planning.launch import Estimate, Launch
from analyzer.run.model import Run
from analyzer.sizing.base import SizingModel
from analyzer.units import GIB

if TYPE_CHECKING:
    from analyzer.diagnosis import Judgement
    from analyzer.report.model import Report

SCHEMA = "kvautopsy.plan/1"
_LONGER = {"vllm": "VLLM_ALLOW_LONG_MAX_MODEL_LEN", "sglang": "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN"}
"""What makes an engine take a context that the model's config does not allow."""


@dataclass(slots=True)
class Forecast:
    """What a launch will give. ``low`` and ``high`` are the pool where every estimate is at its worst and best."""

    launch: Launch
    run: Run
    model: SizingModel | None
    tokens: float
    low: float
    high: float
    running: float
    concurrency: float
    """Requests of the full context that fit at once."""
    context: float
    estimates: list[Estimate] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    steps: tuple[str, ...] = ()
    trouble: str = ""
    """Why the launch cannot be sized, or why the start will fail; empty if it will start."""
    at_worst: str = ""
    at_best: str = ""
    """The trouble where every estimate is at its worst, and at its best."""

    @property
    def fits(self) -> bool:
        """Whether one request of the context length fits."""
        return self.concurrency >= 1


def forecast(launch: Launch) -> Forecast:
    """The forecast of ``launch``: middle, worst and best case."""
    middle = _one(launch, None)
    if launch.weights_total:
        source = "--weights" if launch.weights_given else "the shard index"
        middle.notes.append(
            f"weights of {launch.weights_total / GIB:.2f} GiB as {source} says, spread evenly over ranks"
        )
    if middle.model is None:
        return middle
    worst = _one(launch, {e.name: e.high for e in middle.estimates})
    best = _one(launch, {e.name: e.low for e in middle.estimates})
    middle.at_worst, middle.at_best = worst.trouble, best.trouble
    ends = (worst.tokens, best.tokens, middle.tokens)
    middle.low, middle.high = max(0.0, min(ends)), max(ends)
    return middle


def middle(launch: Launch) -> Forecast:
    """The forecast without its range: a third of the work."""
    return _one(launch, None)


def _one(launch: Launch, scale: dict[str, float] | None) -> Forecast:
    if unknown := launch.folder.geometry.unknown:
        return _untold(launch, f"the cache sizes of this model are not known: {unknown}")
    if not launch.folder.tensors and not launch.weights_total:
        return _untold(launch, "the folder holds no readable weights: give their size (--weights 16GiB)")
    if launch.folder.problems_with_weights and not launch.weights_total:
        return _untold(launch, "weight files are missing, cut off or refused (kvautopsy inspect names them)")
    return _sglang(launch, scale) if launch.engine == "sglang" else _vllm(launch, scale)


def beyond_model(found: Forecast) -> str:
    """What to say of a context that is longer than the model's own, which the engines refuse; "" for a shorter one."""
    launch, own = found.launch, found.launch.folder.config.context
    if not own or found.context <= own or any("override" in word for word in launch.other):
        return ""
    return (
        f"The model's config allows {own:,} tokens: a context of {found.context:,.0f} is refused at the start, unless "
        f"the config gets a RoPE scaling or the environment holds {_LONGER[launch.engine]}=1 (answers may be poor then)"
    )


def _untold(launch: Launch, trouble: str) -> Forecast:
    return Forecast(launch, Run(1, "plan", engine=launch.engine), None, 0, 0, 0, 0, 0, 0, trouble=trouble)


def _sglang(launch: Launch, scale: dict[str, float] | None) -> Forecast:
    from analyzer.planning.sglang_plan import plan_sglang

    plan = plan_sglang(launch, scale)
    facts, tokens = plan.run.facts, plan.solution.tokens or 0.0
    context = float(facts.value("limit.context") or 0)
    trouble = ""
    if tokens <= 0:
        trouble = "nothing is left for KV after the weights: the start will fail"
    elif float(facts.value("free.after_graphs") or 0) < 0:
        trouble = "what stays outside the pool's budget (graphs, tables) does not fit: out of memory after the pool"
    return Forecast(
        plan.launch, plan.run, plan.model, tokens, tokens, tokens, plan.solution.running or 0.0,
        tokens / context if context else 0.0, context, plan.estimates, plan.notes, plan.solution.steps, trouble,
    )  # fmt: skip


def _vllm(launch: Launch, scale: dict[str, float] | None) -> Forecast:
    from analyzer.planning.vllm_plan import plan_vllm

    plan = plan_vllm(launch, scale)
    facts, pool = plan.run.facts, plan.pool
    context = float(facts.value("limit.context") or 0)
    trouble = ""
    if plan.available <= 0:
        trouble = "no available memory for the cache blocks: the start will fail"
    elif 0 < pool.concurrency < 1:
        trouble = f"one request of {context:,.0f} tokens does not fit: the start will be refused"
    steps = (*(plan.model.solve().steps[:2] if plan.model is not None else ()), *pool.steps)
    running = min(float(facts.value("limit.running_requested") or 0), max(pool.tokens, 0.0))
    return Forecast(
        plan.launch, plan.run, plan.model, max(0.0, pool.tokens), pool.tokens, pool.tokens, running,
        pool.concurrency, context, plan.estimates, plan.notes, steps, trouble,
    )  # fmt: skip


def judge(found: Forecast) -> Judgement:
    """What the rules say of the launch before it is made. Rules on the end of a log do not apply and stay silent."""
    from analyzer.diagnosis import RuleSet

    for fact in package_facts(found.launch.folder, found.launch.draft):
        found.run.facts.put(fact)
    judgement = RuleSet.load().judge(found.run, found.model)
    judgement.findings = [f for f in judgement.findings if not f.failure]
    return judgement


def as_report(found: Forecast, judgement: Judgement) -> Report:
    """The forecast as a report of one run, for every output that knows reports."""
    from analyzer.report.build import build

    return build([(found.run, found.model, None, judgement)], [])


def document(found: Forecast, judgement: Judgement) -> dict[str, Any]:
    """The forecast as JSON-ready values; sizes in bytes."""
    from analyzer.report import to_json

    return {
        "schema": SCHEMA,
        "engine": found.launch.engine,
        "version": found.launch.version or None,
        "model": found.launch.folder.config.architecture,
        "gpu_memory": found.launch.total,
        "arguments": found.launch.args,
        "not_modelled": list(found.launch.other),
        "pool_tokens": found.tokens,
        "pool_tokens_low": found.low,
        "pool_tokens_high": found.high,
        "running": found.running,
        "context": found.context,
        "concurrency": found.concurrency,
        "trouble": found.trouble or None,
        "trouble_at_worst": found.at_worst or None,
        "trouble_at_best": found.at_best or None,
        "steps": list(found.steps),
        "notes": [*found.notes, *filter(None, [beyond_model(found)])],
        "estimates": [
            {"name": e.name, "bytes": e.value, "low": e.low, "high": e.high, "basis": e.basis} for e in found.estimates
        ],
        "report": to_json(as_report(found, judgement)),
    }
