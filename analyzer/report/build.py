"""From judged runs to the report: a thin layer of copying, with the ledger and the verdict made on the way."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from analyzer import __version__
from analyzer.report.chain import chain
from analyzer.report.ledger import ledger, lines_of
from analyzer.report.model import (
    BenignRow,
    Evidence,
    FactRow,
    FailureRow,
    Finding,
    InputSummary,
    Report,
    RunReport,
    SizingRow,
    UndecidedRow,
)
from analyzer.report.scrub import scrub
from analyzer.report.verdict import verdict
from analyzer.run.facts import Fact, Where
from analyzer.run.model import Failure, Run
from analyzer.sizing.base import Check, SizingModel

if TYPE_CHECKING:
    from analyzer.diagnosis import Finding as Found
    from analyzer.diagnosis import Judgement

Judged: TypeAlias = "tuple[Run, SizingModel | None, Check | None, Judgement]"
_LOOPS = ("event_loop", "run_event_loop", "dispatch_event_loop")
"""SGLang's loop over requests: a server that is not yet ready runs it for its warm-up's requests."""
_CAPTURES = ("capture_model", "init_device_graphs", "init_cuda_graphs", "capture_one_batch_size")
CONTEXT = 3
"""Recognised records shown before and after a proof line."""


def build(
    judged: Sequence[Judged], inputs: Sequence[InputSummary], *, notes: Sequence[str] = (), seconds: float = 0.0
) -> Report:
    """The report on ``judged`` runs (run, sizing model, its check, the rules' judgement), cleaned of secrets."""
    tool = {"name": "kvautopsy", "version": __version__}
    report = Report(list(inputs), tool=tool, notes=list(notes), seconds=seconds)
    for run, _, check, judgement in judged:
        report.runs.append(_run(run, check, judgement))
    return scrub(report)


def _run(run: Run, check: Check | None, judgement: Judgement) -> RunReport:
    row = RunReport(
        id=run.id,
        source=run.source,
        first_line=run.first_line,
        last_line=run.last_line,
        engine=run.engine,
        version=run.version,
        version_range=list(run.version_range) if run.version_range else None,
        version_basis=run.version_basis,
        outcome=run.outcome,
        outcome_basis=_evidence(run.outcome_basis),
        facts={fact.name: _fact(fact) for fact in run.facts},
        ledger=ledger(run),
        sizing=_sizing(check),
        series=run.series,
        notes=[*run.notes, *judgement.notes],
    )
    row.findings = [_finding(found, run) for found in judgement.findings]
    row.failure = _failure(run, judgement)
    row.benign = [BenignRow(b.line, b.rule, b.why, b.source, b.text) for b in judgement.benign]
    row.undecided = [UndecidedRow(u.rule, list(u.needs), u.how, u.title) for u in judgement.undecided]
    row.unknown_scary = _evidence(judgement.unknown_scary)
    row.unexplained_tokens = judgement.unexplained_tokens
    row.chain = chain(row)
    row.verdict = verdict(row, run.stage)
    return row


def _evidence(places: Iterable[Where]) -> list[Evidence]:
    return [Evidence(w.source, w.line, w.text) for w in places]


def _fact(fact: Fact) -> FactRow:
    return FactRow(fact.value, fact.unit, lines_of(fact), dict(fact.ranks), fact.origin)


def _sizing(check: Check | None) -> SizingRow | None:
    if check is None:
        return None
    return SizingRow(
        check.predicted_tokens, check.observed_tokens, check.error, check.formula,
        list(check.missing), list(check.calibrated), check.margin, list(check.steps),
    )  # fmt: skip


def _finding(found: Found, run: Run) -> Finding:
    finding = Finding(
        rule=found.rule,
        cause=found.cause,
        severity=found.severity,
        confidence=found.confidence,
        title=found.title,
        summary=found.summary,
        fix=found.fix,
        see=list(found.see),
        evidence=_evidence(found.evidence),
        lost_tokens=found.lost_tokens,
        lost_bytes=found.lost_bytes,
        pool_if_fixed=found.pool_if_fixed,
        explained_by=found.explained_by,
        note=found.note,
    )
    for proof in finding.evidence:
        proof.context = _context(proof, run)
    return finding


def _context(proof: Evidence, run: Run) -> list[tuple[int, str]]:
    """The recognised lines around ``proof`` in its source; their numbers show what lies between."""
    if not proof.line:
        return []
    records = [e.record for e in run.events if e.record.source == proof.source]
    before = [r for r in records if r.line < proof.line][-CONTEXT:]
    after = [r for r in records if r.line > proof.line][:CONTEXT]
    lines = [(r.line, r.text.split("\n", 1)[0][:400]) for r in before]
    lines.append((proof.line, proof.text))
    return lines + [(r.line, r.text.split("\n", 1)[0][:400]) for r in after]


def _failure(run: Run, judgement: Judgement) -> FailureRow | None:
    failure = run.failure
    if failure is None:
        return None
    rule = judgement.failure_rule
    found = next((f for f in judgement.findings if f.rule == rule), None)
    return FailureRow(
        cause=found.cause if found else _unnamed(failure, run),
        exception=failure.exception,
        message=failure.message,
        lines=list(dict.fromkeys(w.line for w in failure.where if w.line)),
        first_line=failure.first_line,
        process=failure.process,
        ranks=list(failure.ranks or ((failure.rank,) if failure.rank else ())),
        stage=_step(failure, run),
        frame=_frame(failure),
        rule=rule or "",
    )


def _step(failure: Failure, run: Run) -> str:
    """The stage that had been reached; of a start that fails, the one that its functions tell comes first."""
    if run.outcome != "crashed at startup":
        return failure.stage
    if any(frame.function in _CAPTURES for frame in failure.frames):
        return "graphs"
    if any(frame.function.startswith(_LOOPS) for frame in failure.frames):
        return "warm-up"
    up = next((event for event in run.events if event.kind == "engine_ready"), None)
    if failure.stage == "graphs" and up is not None and up.line < failure.first_line:
        return "engine-up"
    return failure.stage


def _unnamed(failure: Failure, run: Run) -> str:
    """The cause code of a failure that no rule knows."""
    if failure.kind == "elsewhere":
        return "elsewhere"
    return "crash-unknown" if run.outcome == "crashed at runtime" else "fail-unknown"


def _frame(failure: Failure) -> str:
    """The innermost frame: where the exception was raised."""
    if not failure.frames:
        return ""
    last = failure.frames[-1]
    return f"{_module_path(last.file)}:{last.line} in {last.function}"


def _module_path(file: str) -> str:
    """``file`` from its package on: where it was installed tells nothing."""
    for mark in ("/site-packages/", "/dist-packages/"):
        if mark in file:
            return file.rsplit(mark, 1)[1]
    found = re.search(r"/((?:sglang|vllm)/(?!.*/(?:sglang|vllm)/).*)", file)
    return found[1] if found else file
