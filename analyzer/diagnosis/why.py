"""Shows how a rule was decided: every part of its conditions with its value, and the facts that were missing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from analyzer.diagnosis.benign import BenignRules
from analyzer.diagnosis.decide import FIRES, NOT_MEANT, QUIET, decide, meant_for
from analyzer.diagnosis.evaluate import Evaluator, Unknown
from analyzer.diagnosis.expression import render
from analyzer.diagnosis.nodes import Node, children
from analyzer.diagnosis.rule import Rule
from analyzer.diagnosis.supply import how_to_supply
from analyzer.diagnosis.view import RunView
from analyzer.run.facts import Where
from analyzer.run.model import Run
from analyzer.run.vocabulary import spec_of
from analyzer.sizing.base import SizingModel
from analyzer.units import show

MAX_VALUE = 200
_QUIET_PARTS = ("n", "s", "b", "none")


@dataclass(frozen=True, slots=True)
class Step:
    """One part of a condition: its text, its value in words, and the lines behind a fact."""

    place: str
    """``only_if``, ``let.<name>``, ``when`` or ``needs``."""
    depth: int
    text: str
    value: str
    where: tuple[Where, ...] = ()


@dataclass(frozen=True, slots=True)
class WhyNot:
    """How one rule was decided on one run."""

    rule: str
    title: str
    status: str
    """``fires``, ``quiet``, ``undecided`` or ``not meant``."""
    reason: str
    """One sentence."""
    steps: tuple[Step, ...] = ()
    missing: tuple[tuple[str, str], ...] = ()
    """Facts that were missing, each with how it can be supplied (empty if only the log could hold it)."""

    def lines(self) -> list[str]:
        """The whole answer as text."""
        out = [f"{self.rule}  {self.title}", f"{self.status}: {self.reason}"]
        for step in self.steps:
            proof = ", ".join(f"l. {w.line}" for w in step.where if w.line)
            name = f"{step.place}: " if step.depth == 0 else ""
            out.append(f"  {'  ' * step.depth}{name}{step.text}  ->  {step.value}" + (f"   ({proof})" if proof else ""))
        out += [f"  missing {name}" + (f": {way}" if way else "") for name, way in self.missing]
        return out


def why_not(rule: Rule, rules: Iterable[Rule], run: Run, model: SizingModel | None = None) -> WhyNot:
    """How ``rule`` was decided on ``run``; ``rules`` are all rules, one of which may have taken precedence."""
    view = RunView(run, model)
    if rule.benign is not None:
        hits, _ = BenignRules([rule]).judge(view)
        shown = tuple(Step("line", 0, h.text, "harmless", (Where(h.source, h.line, h.text),)) for h in hits[:20])
        if hits:
            return WhyNot(rule.id, rule.plain_title, FIRES, f"{len(hits)} lines are of its kind", shown)
        kinds = [*rule.benign["events"], *rule.benign["lines_text"]]
        return WhyNot(rule.id, rule.plain_title, QUIET, f"no line is of its kind ({', '.join(kinds)})")
    if rule.failure == "request":
        failure = next((f for f in run.failures if f.request_level), None)
        if failure is None:
            return WhyNot(rule.id, rule.plain_title, QUIET, "no request failed while the server went on")
        view = RunView(run, model, failure=failure)
    decision = decide(rule, view)
    missing = tuple((name, rule.how.get(name) or how_to_supply(name, run)) for name in sorted(decision.missing))
    steps = tuple(_steps(rule, decision.evaluator, view))
    return WhyNot(rule.id, rule.plain_title, decision.status, _reason(rule, rules, view), steps, missing)


def _reason(rule: Rule, rules: Iterable[Rule], view: RunView) -> str:
    decision = decide(rule, view)
    run = view.run
    if decision.status == NOT_MEANT:
        if meant_for(rule, view) is False:
            known = run.version or " ".join(run.version_range or ()) or "unknown"
            wanted = f"{' and '.join(rule.engines)}" + (f" {rule.versions_text}" if rule.versions_text else "")
            return f"it is for {wanted}; this run is {run.engine or 'of an unknown engine'}, version {known}"
        return "its only_if does not hold here"
    if decision.status == QUIET:
        return "its condition is false"
    if decision.status == FIRES:
        if rule.failure == "run" and run.failure is None:
            return "its condition holds, but it names the cause of a failure and this run has none"
        if rule.failure:
            rivals = [r for r in rules if r.failure == rule.failure and (-r.rank, r.id) < (-rule.rank, rule.id)]
            winner = next((r for r in rivals if decide(r, view).status == FIRES), None)
            if winner is not None:
                return f"its condition holds, but {winner.id} is more specific"
        return "its condition holds"
    return decision.why or f"it lacks {', '.join(sorted(decision.missing))}"


def _steps(rule: Rule, evaluator: Evaluator, view: RunView) -> Iterator[Step]:
    if rule.only_if is not None:
        yield from _of("only_if", rule.only_if, evaluator, view)
    for name, node in rule.let.items():
        yield from _of(f"let.{name}", node, evaluator, view)
    if rule.when is not None:
        yield from _of("when", rule.when, evaluator, view)
    for name in rule.needs:
        value = view.value(name)
        if isinstance(value, Unknown):
            yield Step("needs", 0, name, "unknown")


def _of(place: str, node: Node, evaluator: Evaluator, view: RunView, depth: int = 0) -> Iterator[Step]:
    if node[0] in _QUIET_PARTS and depth:
        return
    where = view.run.facts.where(node[1]) if node[0] == "f" else ()
    yield Step(place, depth, render(node), _words(evaluator(node), node), where[:4])
    for child in children(node):
        yield from _of(place, child, evaluator, view, depth + 1)


def _words(value: Any, node: Node) -> str:
    if isinstance(value, Unknown):
        return "unknown" + (f" ({value.why})" if value.why else "")
    unit = ""
    if node[0] == "f":
        try:
            unit = spec_of(node[1]).unit
        except KeyError:
            unit = "any"
    if isinstance(value, bool):
        return "true" if value else "false"
    text = show(value, unit) if unit else f"{value:,.6g}" if isinstance(value, float) else str(value)
    return text if len(text) <= MAX_VALUE else text[: MAX_VALUE - 1] + "…"
