"""Why is this pool smaller than that one: the difference in tokens, changed input by changed input.

The inputs of the first run are replaced one by one by the second's in the sizing model; each step's change in tokens
is that input's share, the greatest first, so that the shares add up to what the models explain. The rest is stated.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from analyzer.fleet.versions import comparable, span_of
from analyzer.redact import clean_value
from analyzer.run.model import Run
from analyzer.run.vocabulary import spec_of
from analyzer.sizing import SizingModel, check, model_for

LEDGER = (
    "gpu.total", "gpu.free_before_load", "weights.loaded", "draft.weights.loaded", "state.bytes",
    "pool.available_bytes", "pool.bytes", "draft.pool.bytes", "graphs.bytes", "graphs.estimated", "free.after_pool",
    "free.after_graphs", "pool.tokens", "pool.blocks", "pool.bytes_per_token", "limit.running", "limit.context",
    "limit.concurrency", "sizing.fraction", "spec.method", "spec.draft_tokens", "model.arch", "draft.arch",
)  # fmt: skip
QUIET_ARGS = {"args.host", "args.port", "args.random_seed", "args.seed", "args.nccl_port", "args.dist_init_addr"}
RESULTS = {"pool.tokens", "pool.blocks", "limit.concurrency"}
"""What a model may read from the log but what is the outcome: no cause of a difference."""
SAME = 1e-6


@dataclass(slots=True)
class Difference:
    """One fact or argument that is not the same."""

    name: str
    before: Any
    after: Any
    unit: str


@dataclass(slots=True)
class Share:
    """What one changed input did to the pool. ``tokens`` is negative for a loss."""

    name: str
    before: float | None
    after: float | None
    tokens: float
    unit: str = "any"


@dataclass(slots=True)
class Comparison:
    """Two runs: what differs, and what each difference did to the pool."""

    before: Run
    after: Run
    pool_before: float | None
    pool_after: float | None
    arguments: list[Difference] = field(default_factory=list)
    facts: list[Difference] = field(default_factory=list)
    shares: list[Share] = field(default_factory=list)
    remainder: float | None = None
    warnings: list[str] = field(default_factory=list)

    @property
    def change(self) -> float | None:
        """Tokens gained (or lost, below 0) from the first to the second run."""
        if self.pool_before is None or self.pool_after is None:
            return None
        return self.pool_after - self.pool_before


def compare(before: Run, after: Run) -> Comparison:
    """Compares two runs."""
    result = Comparison(before, after, before.facts.value("pool.tokens"), after.facts.value("pool.tokens"))
    result.arguments = _differences(before, after, [n for n in _names(before, after) if n.startswith("args.")])
    result.arguments = [d for d in result.arguments if d.name not in QUIET_ARGS]
    result.facts = _differences(before, after, LEDGER)
    result.warnings = _warnings(before, after)
    _attribute(result)
    return result


def _names(*runs: Run) -> list[str]:
    return list(dict.fromkeys(fact.name for run in runs for fact in run.facts))


def _differences(before: Run, after: Run, names: Any) -> list[Difference]:
    found = []
    for name in names:
        old, new = before.facts.get(name), after.facts.get(name)
        a, b = (old.value if old else None), (new.value if new else None)
        if a != b and not _about_equal(a, b):
            unit = old.unit if old else new.unit if new else "any"
            # A secret never gets any further, whatever the form.
            found.append(Difference(name, clean_value(a, name), clean_value(b, name), unit))
    return found


def _about_equal(a: Any, b: Any) -> bool:
    if not (isinstance(a, int | float) and isinstance(b, int | float)):
        return False
    return abs(a - b) <= SAME * max(abs(a), abs(b))


def _warnings(before: Run, after: Run) -> list[str]:
    found = []
    if before.engine != after.engine:
        found.append(
            f"One run is {before.engine}, the other {after.engine}: SGLang counts the tokens of one rank's pool, vLLM "
            "those that requests can use. The tokens are not attributed."
        )
    if before.engine == after.engine == "vllm":
        spans = [span_of(run.version, *(run.version_range or ())) for run in (before, after)]
        if not comparable("vllm", *spans):
            found.append(
                "The token count that vLLM prints changed its meaning at 0.20.1 (for hybrid models several-fold for "
                "the same bytes), and these runs are not surely on the same side of it: compare bytes or blocks."
            )
        lengths = [r.facts.value("limit.context") for r in (before, after)]
        if None not in lengths and lengths[0] != lengths[1]:
            found.append(
                f"max_model_len differs ({lengths[0]:,} and {lengths[1]:,}): from 0.20.1 the printed tokens depend on "
                "it where layers are windowed or recurrent."
            )
    sizes = [_ranks(r) for r in (before, after)]
    if sizes[0] != sizes[1]:
        found.append(
            f"The runs are split over {sizes[0]} and {sizes[1]} ranks: bytes are those of one rank, not of the server."
        )
    return found


def _ranks(run: Run) -> int:
    count = 1
    for name in ("args.tensor_parallel_size", "args.pipeline_parallel_size"):
        value = run.facts.value(name)
        count *= value if isinstance(value, int) and value > 0 else 1
    return count


def _attribute(result: Comparison) -> None:
    before, after = result.before, result.after
    if result.change is None or before.engine != after.engine:
        return
    first, second = model_for(before), model_for(after)
    if first is None or second is None:
        result.warnings.append("The sizing could not be rebuilt for both runs: the difference is not attributed.")
        return
    for run, model, name in ((before, first, "first"), (after, second, "second")):
        outcome = check(model, run)
        if outcome.error is None or abs(outcome.error) > max(0.01, model.margin):
            what = ", ".join(model.missing) or "the formula does not give the printed pool"
            result.warnings.append(f"The {name} run's pool is not reproduced ({what}): shares are approximate.")
    shares, end = _walk(first, dict(second.inputs))
    if end is None:
        result.warnings.append("The sizing lacks inputs in one of the runs: the difference is not attributed.")
        return
    target = second.solve().tokens
    if target is not None and abs(target - end) >= 1:
        only = sorted((set(first.inputs) ^ set(second.inputs)) - RESULTS)
        name = "inputs of one run only: " + ", ".join(only) if only else "inputs that work together"
        if first.formula != second.formula:
            name = f"formula: {first.formula} -> {second.formula}"
        shares.append(Share(name, None, None, target - end))
        end = target
    start = first.solve().tokens
    result.shares = sorted(shares, key=lambda s: -abs(s.tokens))
    if start is not None:
        result.remainder = result.change - (end - start)


def _walk(model: SizingModel, target: Mapping[str, float]) -> tuple[list[Share], float | None]:
    """Replaces inputs one by one, the one that changes the pool most first; the shares and the last pool."""
    inputs = dict(model.inputs)
    todo = {k for k, v in target.items() if k in inputs and inputs[k] != v and k not in RESULTS}
    overrides: dict[str, float] = {}
    tokens = model.solve().tokens
    shares: list[Share] = []
    while todo and tokens is not None:
        tried: list[tuple[float, str, float]] = []
        for name in sorted(todo):
            outcome = model.solve({**overrides, name: target[name]}).tokens
            if outcome is not None:
                tried.append((abs(outcome - tokens), name, outcome))
        if not tried:
            break
        _, name, outcome = max(tried)
        overrides[name] = target[name]
        todo.discard(name)
        if abs(outcome - tokens) >= 0.5:
            shares.append(Share(name, inputs[name], target[name], outcome - tokens, _unit(name)))
        tokens = outcome
    return shares, tokens


def _unit(name: str) -> str:
    try:
        return spec_of(name).unit
    except KeyError:
        return "any"
