"""The report as JUnit XML for CI: one suite a run, one test case a finding, failed unless it is mere information."""

from __future__ import annotations

import re
from collections.abc import Sequence

from analyzer.report.markup import Html, el, join
from analyzer.report.model import Finding, Report, RunReport

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def to_junit(report: Report) -> str:
    """``report`` as JUnit XML with a final line feed."""
    suites = [_suite(run, report.notes) for run in report.runs]
    body = el("testsuites", *suites, name=_text(report.tool.get("name", "kvautopsy")))
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{body}\n'


def _text(text: str) -> str:
    """``text`` without the characters that XML cannot hold at all."""
    return _NOT_XML.sub("\ufffd", text)


def _suite(run: RunReport, notes: Sequence[str]) -> Html:
    cases = [_case(run, finding) for finding in run.findings]
    failures = sum(f.severity != "info" for f in run.findings)
    if run.failure and not run.failure.rule:
        message = _text(f"{run.failure.exception}: {run.failure.message}"[:1000])
        failure = el("failure", message, message=message.split("\n", 1)[0], type=run.failure.cause)
        cases.append(
            el("testcase", failure, name=_text(run.failure.exception or "failure"), classname=run.failure.cause)
        )
        failures += 1
    cases += [
        el("testcase", el("skipped", message=_text(u.how)), name=_text(f"{u.rule} {u.title}"), classname="undecided")
        for u in run.undecided
    ]
    if not cases:
        cases.append(el("testcase", name="nothing wrong found", classname="no-finding"))
    return el(
        "testsuite",
        *cases,
        el("system-out", _text("\n".join([run.verdict, *notes]))),
        name=_text(f"{run.source} run {run.id}"),
        tests=len(cases),
        failures=failures,
        skipped=len(run.undecided),
        errors=0,
    )


def _case(run: RunReport, finding: Finding) -> Html:
    proof = "\n".join(
        f"{e.source} l. {e.line}: {e.text}" if e.line else f"{e.source}: {e.text}" for e in finding.evidence
    )
    parts = [finding.summary, f"Fix: {finding.fix}" if finding.fix else "", proof]
    detail = _text("\n".join(p for p in parts if p))
    failed = finding.severity != "info"
    inner = (
        el("failure", detail, message=_text(finding.title), type=finding.severity)
        if failed
        else el("system-out", detail)
    )
    line = str(finding.evidence[0].line) if finding.evidence and finding.evidence[0].line else None
    return el(
        "testcase",
        join(inner),
        name=_text(f"{finding.rule} {finding.title}"),
        classname=_text(finding.cause),
        file=_text(run.source),
        line=line,
    )
