"""Decides one rule on one run: fires, quiet, undecided, or not meant for this run at all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from analyzer.diagnosis.evaluate import Evaluator, Unknown
from analyzer.diagnosis.rule import Rule
from analyzer.diagnosis.templates import fill
from analyzer.diagnosis.versions import satisfies
from analyzer.diagnosis.view import RunView
from analyzer.run.facts import Where

FIRES, QUIET, UNDECIDED, NOT_MEANT = "fires", "quiet", "undecided", "not meant"
MAX_PROOF = 12
"""Lines of evidence of one finding."""


@dataclass(frozen=True, slots=True)
class Decision:
    """How one rule was decided. ``missing`` and ``why`` say what an undecided rule lacked."""

    rule: Rule
    status: str
    evaluator: Evaluator
    missing: frozenset[str] = frozenset()
    why: str = ""
    version_sure: bool = True
    """False: the rule is for some versions only and the log does not tell which version this is."""


def meant_for(rule: Rule, view: RunView) -> bool | None:
    """Whether ``rule`` is for the run's engine and version; None if the version cannot be told.

    A run whose engine is unknown is met only by rules that are for every engine, and by those on failures: what one
    engine says when it fails tells that it is this one.
    """
    engine = view.run.engine
    if engine is None:
        return (len(rule.engines) > 1 or bool(rule.failure)) and (None if rule.versions else True)
    if engine not in rule.engines:
        return False
    constraint = rule.versions.get(engine)
    return True if constraint is None else satisfies(view.run.version, view.run.version_range, constraint)


def decide(rule: Rule, view: RunView) -> Decision:
    """How ``rule`` stands to the run in ``view``.

    ``when`` decides first: a rule that is false without a missing fact is quiet. Where it is true, ``needs`` must be
    there, too. ``only_if`` silences a rule that has no business in this run, also when it cannot be told.
    """
    evaluator = Evaluator(view, rule.let)
    meant = meant_for(rule, view)
    if meant is False:
        return Decision(rule, NOT_MEANT, evaluator)
    if rule.only_if is not None and evaluator.truth(rule.only_if) is not True:
        return Decision(rule, NOT_MEANT, evaluator)
    held = evaluator.truth(rule.when) if rule.when is not None else True
    if held is False:
        return Decision(rule, QUIET, evaluator, version_sure=meant is True)
    lacking = frozenset(name for name in rule.needs if isinstance(view.value(name), Unknown))
    if isinstance(held, Unknown):
        return Decision(rule, UNDECIDED, evaluator, held.missing | lacking, held.why, meant is True)
    if lacking:
        return Decision(rule, UNDECIDED, evaluator, lacking, version_sure=meant is True)
    return Decision(rule, FIRES, evaluator, version_sure=meant is True)


def chosen(pairs: list[list[Any]], evaluator: Evaluator) -> str:
    """The value of the first case whose condition holds."""
    for condition, value in pairs:
        if condition is None or evaluator.truth(condition) is True:
            return str(value)
    return str(pairs[-1][1])


def told(pairs: list[list[Any]], evaluator: Evaluator) -> str:
    """The texts of all cases whose condition holds, filled and put together."""
    holding = (parts for condition, parts in pairs if condition is None or evaluator.truth(condition) is True)
    texts = [fill(parts, evaluator) for parts in holding]
    return " ".join(" ".join(texts).split("\n"))


_LESS_SURE: Mapping[str, str] = {"proved": "likely", "likely": "possible"}


def confidence(decision: Decision) -> str:
    """The confidence of a rule that fires; one step less where it is for some versions and the run's is unknown."""
    level = chosen(decision.rule.confidence, decision.evaluator)
    return level if decision.version_sure else _LESS_SURE.get(level, level)


def evidence(rule: Rule, view: RunView) -> tuple[Where, ...]:
    """The lines that prove a finding: those of its facts, those of its events, the failure's for a failure rule."""
    places: list[Where] = []
    failure = view.failure
    if failure is not None and (rule.failure or any(name.startswith("failure.") for name in rule.proof)):
        places += failure.where
    for name in rule.proof:
        places += view.run.facts.where(name)[:4]
    for kind in rule.proof_kinds:
        found = [event.record for event in view.run.events if event.kind == kind]
        places += [Where.of(record) for record in (found[:2] + found[-1:] if len(found) > 3 else found)]
    return tuple(dict.fromkeys(places))[:MAX_PROOF]
