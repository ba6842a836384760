"""Judges one run by a set of rules: findings in the order of the story, with their costs, and what stays open."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from analyzer.diagnosis.benign import BenignRules
from analyzer.diagnosis.decide import FIRES, UNDECIDED, Decision, chosen, confidence, decide, evidence, told
from analyzer.diagnosis.evaluate import Evaluator, Unknown, as_number
from analyzer.diagnosis.judgement import SEVERITIES, Finding, Judgement, Undecided
from analyzer.diagnosis.pricing import Healthy, Overrides, price
from analyzer.diagnosis.rule import Rule
from analyzer.diagnosis.supply import how_to_supply
from analyzer.diagnosis.templates import fill
from analyzer.diagnosis.view import RunView
from analyzer.run.model import Run
from analyzer.sizing.base import SizingModel


def judge(rules: Sequence[Rule], benign: BenignRules, run: Run, model: SizingModel | None) -> Judgement:
    """What ``rules`` and ``benign`` say of ``run``; ``model`` prices the findings where it reproduces the pool."""
    view = RunView(run, model)
    result = Judgement()
    fired: list[Decision] = []
    for rule in rules:
        if rule.failure:
            continue
        decision = decide(rule, view)
        if decision.status == FIRES:
            fired.append(decision)
        elif decision.status == UNDECIDED and decision.missing:
            result.undecided.append(_undecided(decision, run))
    findings = [_finding(d, view) for d in fired]
    _price(findings, fired, view, result)
    failure = _failure(rules, view)
    if failure is not None:
        result.failure_rule = failure.rule
        findings.append(failure)
    findings += _failed_requests(rules, run, model)
    by_id = {rule.id: rule for rule in rules}
    result.findings = ordered(_explained(findings, by_id))
    result.undecided.sort(key=lambda u: (not u.how, u.rule))
    result.benign, result.unknown_scary = benign.judge(view, proved=(w for f in findings for w in f.evidence))
    return result


def _finding(decision: Decision, view: RunView) -> Finding:
    rule, evaluator = decision.rule, decision.evaluator
    return Finding(
        rule=rule.id,
        cause=rule.cause,
        severity=chosen(rule.severity, evaluator),
        confidence=confidence(decision),
        title=fill(rule.title, evaluator),
        summary=told(rule.says, evaluator),
        fix=told(rule.fix, evaluator),
        see=tuple(rule.see),
        evidence=evidence(rule, view),
        failure=bool(rule.failure),
        rank=rule.rank,
        note="" if decision.version_sure else "for some versions only, and the log does not tell which version this is",
    )


def _undecided(decision: Decision, run: Run) -> Undecided:
    rule = decision.rule
    needs = tuple(sorted(decision.missing))
    ways = [rule.how.get(name) or how_to_supply(name, run) for name in needs]
    return Undecided(rule.id, needs, "; ".join(dict.fromkeys(w for w in ways if w)), rule.plain_title)


# costs


def _price(findings: list[Finding], fired: Sequence[Decision], view: RunView, result: Judgement) -> None:
    choices = [finding.severity == "info" for finding in findings]
    bill = price([_healthy(decision, view) for decision in fired], view.run, view.model, choices)
    per_token = _bytes_per_token(view)
    for finding, cost in zip(findings, bill.prices, strict=True):
        finding.lost_tokens, finding.pool_if_fixed = cost.lost_tokens, cost.pool_if_fixed
        if cost.lost_tokens is not None and per_token is not None:
            finding.lost_bytes = cost.lost_tokens * per_token
        finding.note = "; ".join(n for n in (finding.note, cost.note) if n)
    result.unexplained_tokens = bill.unexplained
    if bill.note:
        result.notes.append(bill.note)


def _healthy(decision: Decision, view: RunView) -> Healthy | None:
    """A finding's healthy inputs as a function of what is mended already, so that two of them compose."""
    rule = decision.rule
    if not rule.healthy:
        return None

    def overrides(mended: Mapping[str, float]) -> Overrides | None:
        evaluator = Evaluator(view.with_overrides(mended), rule.let)
        values: Overrides = {}
        for name, node in rule.healthy.items():
            value = as_number(evaluator(node))
            if isinstance(value, Unknown):
                return None
            values[name] = float(value)
        return values

    return overrides


def _bytes_per_token(view: RunView) -> float | None:
    """Bytes of the target's store for one token and rank."""
    cell = as_number(view.value("pool.bytes_per_token"))
    if not isinstance(cell, Unknown):
        return cell
    size, tokens = as_number(view.value("pool.bytes")), as_number(view.value("pool.tokens"))
    if isinstance(size, Unknown) or isinstance(tokens, Unknown) or tokens <= 0:
        return None
    return size / tokens


# failures


def _failure(rules: Iterable[Rule], view: RunView) -> Finding | None:
    """The finding that names the cause of the run's failure: of all that hold, the rule of the highest rank."""
    if view.run.failure is None:
        return None
    decision = _best(rules, "run", view)
    if decision is None:
        return None
    if view.run.engine is None and len(decision.rule.engines) == 1:
        view.run.engine = decision.rule.engines[0]
    return _finding(decision, view)


def _failed_requests(rules: Sequence[Rule], run: Run, model: SizingModel | None) -> list[Finding]:
    """Findings on requests that failed while the server went on; one for each rule."""
    wanted = [rule for rule in rules if rule.failure == "request"]
    found: dict[str, Finding] = {}
    for failure in run.failures if wanted else ():
        if not failure.request_level:
            continue
        view = RunView(run, model, failure=failure)
        decision = _best(wanted, "request", view)
        if decision is None:
            continue
        finding = _finding(decision, view)
        finding.failure = False
        earlier = found.setdefault(finding.rule, finding)
        if earlier is not finding:
            earlier.evidence = tuple(dict.fromkeys(earlier.evidence + finding.evidence))[:12]
    return list(found.values())


def _best(rules: Iterable[Rule], failure: str, view: RunView) -> Decision | None:
    held = [d for d in (decide(rule, view) for rule in rules if rule.failure == failure) if d.status == FIRES]
    return max(held, key=lambda d: (d.rule.rank, d.version_sure, _reverse(d.rule.id)), default=None)


def _reverse(text: str) -> tuple[int, ...]:
    """A key that sorts texts backwards, so that the lowest id wins a tie."""
    return tuple(-ord(c) for c in text)


# the story


def _explained(findings: list[Finding], rules: Mapping[str, Rule]) -> list[Finding]:
    """Marks findings that another finding's rule explains. The gravest explainer counts; no circle arises."""
    for cause in sorted(findings, key=_weight):
        for name in rules[cause.rule].explains:
            for finding in findings:
                if name not in (finding.rule, finding.cause) or finding.explained_by:
                    continue
                if finding.rule not in _chain(cause, findings) and not (name == finding.cause == cause.cause):
                    finding.explained_by = cause.rule
    return findings


def _chain(finding: Finding, findings: Sequence[Finding]) -> set[str]:
    """The rules that explain ``finding``, directly or through others, itself included."""
    by_rule = {f.rule: f for f in findings}
    chain = {finding.rule}
    while finding.explained_by and finding.explained_by not in chain:
        finding = by_rule[finding.explained_by]
        chain.add(finding.rule)
    return chain


def _weight(finding: Finding) -> tuple[Any, ...]:
    """Failure first, then severity, cost, rank, id."""
    cost = finding.lost_tokens or 0.0
    return not finding.failure, SEVERITIES.index(finding.severity), -cost, -finding.rank, finding.rule


def ordered(findings: Iterable[Finding]) -> list[Finding]:
    """The order in which findings are told: by weight, but a cause before what it explains; a failure always first."""
    waiting = sorted(findings, key=_weight)
    by_rule = {f.rule: f for f in waiting}
    told_already: dict[str, Finding] = {}

    def tell(finding: Finding) -> None:
        path = []
        while finding.rule not in told_already and finding not in path:
            path.append(finding)
            cause = by_rule.get(finding.explained_by)
            if cause is None or finding.failure:
                break
            finding = cause
        for one in reversed(path):
            told_already.setdefault(one.rule, one)

    for finding in waiting:
        tell(finding)
    return list(told_already.values())
