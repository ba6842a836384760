"""A run as expressions see it: its facts, what follows from the run itself, and the sizing model's inputs.

Looked up in this order: overrides (a counterfactual that is being priced), facts, what the run says of itself
(engine, version, outcome, failure), inputs of the sizing model. The view notes which facts were read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import cached_property
from typing import Any

from analyzer.diagnosis.evaluate import Unknown
from analyzer.diagnosis.versions import compare
from analyzer.events import Event
from analyzer.run.model import Failure, Run
from analyzer.sizing.base import SizingModel

_FAILURE_TEXTS = (
    "failure.exception", "failure.message", "failure.frames", "failure.origin", "failure.stage", "failure.text",
    "failure.kind", "failure.headline", "failure.engine_frame", "failure.raised_in",
)  # fmt: skip


class RunView:
    """What one run answers to expressions. ``failure`` binds ``failure.*`` to another failure than the run's first."""

    def __init__(
        self,
        run: Run,
        model: SizingModel | None = None,
        *,
        failure: Failure | None = None,
        overrides: Mapping[str, float] | None = None,
        event: Event | None = None,
    ) -> None:
        self.run, self.model = run, model
        self.overrides = overrides or {}
        self.event = event
        self._bound = failure is not None
        self._failure = failure or run.failure
        self.used: set[str] = set()

    def with_overrides(self, overrides: Mapping[str, float]) -> RunView:
        """The same run with ``overrides`` in place of facts of the same name."""
        return RunView(self.run, self.model, failure=self._failure if self._bound else None, overrides=overrides)

    @property
    def failure(self) -> Failure | None:
        """The failure that ``failure.*`` speaks of."""
        return self._failure

    def value(self, name: str) -> Any:
        """The value of fact ``name``, or ``Unknown``."""
        self.used.add(name)
        if name in self.overrides:
            return self.overrides[name]
        if self._bound and name.startswith("failure."):
            return self._derived(name)
        fact = self.run.facts.get(name)
        if fact is not None:
            return fact.value
        return self._derived(name)

    def ranks(self, name: str) -> Mapping[str, Any]:
        """The values of fact ``name`` by rank."""
        self.used.add(name)
        fact = self.run.facts.get(name)
        return {} if fact is None else fact.ranks

    def version(self, sign: str, bound: str) -> bool | Unknown:
        """Whether the engine's version satisfies ``sign bound``; unknown where its bracket cannot tell."""
        held = compare(self.run.version, self.run.version_range, sign, bound)
        return Unknown(frozenset({"engine.version"})) if held is None else held

    def kind_count(self, kind: str) -> int:
        """How many events of ``kind`` the run has."""
        return self._kinds.get(kind, 0)

    def event_field(self, kind: str, name: str) -> Any:
        """Field ``name`` of the last event of ``kind`` that has it."""
        for event in reversed(self.run.events):
            if event.kind == kind and name in event.fields:
                return event.fields[name]
        return Unknown(why=f"no line of kind {kind} gives {name}")

    def series(self, path: str) -> Any:
        """A value of the run's runtime summaries, by its dotted path."""
        value: Any = self.run.series
        for part in path.split("."):
            if not isinstance(value, Mapping) or part not in value:
                return Unknown(why=f"the log has no series {path}")
            value = value[part]
        return Unknown(why=f"the log has no series {path}") if value is None else value

    def calibrated(self, name: str) -> bool:
        """Whether the value of ``name`` was derived from the observed pool (no independent proof)."""
        return name not in self.run.facts and self.model is not None and name in self.model.calibrated

    @cached_property
    def _kinds(self) -> Mapping[str, int]:
        return self.run.kinds or Counter(event.kind for event in self.run.events)

    def _derived(self, name: str) -> Any:
        value: Any = None
        if name.startswith("failure."):
            value = self._of_failure(name)
        elif name.startswith("event.") and self.event is not None:
            part = name.removeprefix("event.")
            value = self.event.record.text if part == "text" else self.event.fields.get(part)
        else:
            match name:
                case "engine.name":
                    value = self.run.engine
                case "engine.version":
                    value = self.run.version
                case "outcome":
                    value = self.run.outcome
                case "stage":
                    value = self.run.stage
                case _:
                    value = self.model.inputs.get(name) if self.model is not None else None
        return Unknown(frozenset({name})) if value is None else value

    def _of_failure(self, name: str) -> Any:
        """``failure.*`` of the bound failure. A run without a failure has empty texts: that is known, not unknown."""
        failure = self._failure
        if failure is None:
            return "" if name in _FAILURE_TEXTS else False if name in ("failure.cut", "failure.startup") else None
        match name:
            case "failure.exception":
                return failure.exception
            case "failure.message":
                return failure.message
            case "failure.headline":
                return failure.headline
            case "failure.frames":
                return "\n".join(f"{f.file}:{f.function}" for f in failure.frames)
            case "failure.raised_in":
                return f"{failure.frames[-1].file}:{failure.frames[-1].function}" if failure.frames else ""
            case "failure.engine_frame":
                frames = [f for f in failure.frames if "sglang" in f.file or "vllm" in f.file]
                return f"{frames[-1].file}:{frames[-1].function}" if frames else ""
            case "failure.text":
                return failure.text or f"{failure.exception}: {failure.message}"
            case "failure.kind":
                return failure.kind
            case "failure.origin":
                return failure.process
            case "failure.stage":
                return failure.stage
            case "failure.cut":
                return failure.cut
            case "failure.startup":
                return failure.stage not in ("serving", "shutdown") and "ready" not in self.run.stages
        return None
