"""The report as SARIF 2.1.0, which code hosts show beside the file: one result a finding, one rule a rule id."""

from __future__ import annotations

import json
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import quote

from analyzer.report.jsonform import plain
from analyzer.report.model import Evidence, Finding, Report, RunReport

_LEVELS = {"critical": "error", "warning": "warning", "info": "note"}
_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def to_sarif(report: Report) -> str:
    """``report`` as a SARIF document with a final line feed."""
    found = [(run, finding) for run in report.runs for finding in run.findings]
    rules: dict[str, Finding] = {}
    for _, finding in found:
        rules.setdefault(finding.rule, finding)
    index = {rule: number for number, rule in enumerate(rules)}
    results = [_result(run, finding, index[finding.rule]) for run, finding in found]
    results += [_unnamed(run) for run in report.runs if run.failure and not run.failure.rule]
    driver = {
        "name": report.tool.get("name", "kvautopsy"),
        "version": report.tool.get("version", "0"),
        "rules": [_rule(finding) for finding in rules.values()],
    }
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    notes = [f"{item.source}: {item.note}" for item in report.inputs if item.note] + report.notes
    if notes:  # what the results do not rest on: an input that was not read to its end, metrics that were not had
        told = [{"level": "warning", "message": {"text": note}} for note in notes]
        run["invocations"] = [{"executionSuccessful": True, "toolExecutionNotifications": told}]
    document = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(plain(document), ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def _rule(finding: Finding) -> dict[str, Any]:
    rule: dict[str, Any] = {
        "id": finding.rule,
        "name": finding.cause,
        "shortDescription": {"text": finding.title},
        "defaultConfiguration": {"level": _LEVELS.get(finding.severity, "note")},
    }
    if finding.fix:
        rule["help"] = {"text": finding.fix}
    if finding.see and finding.see[0].startswith(("https://", "http://")):
        rule["helpUri"] = finding.see[0]
    return rule


def _result(run: RunReport, finding: Finding, index: int) -> dict[str, Any]:
    text = " ".join(t for t in (finding.summary or finding.title, f"Fix: {finding.fix}" if finding.fix else "") if t)
    properties = {
        "cause": finding.cause, "confidence": finding.confidence, "run": run.id,
        "lost_tokens": finding.lost_tokens, "pool_if_fixed": finding.pool_if_fixed,
    }  # fmt: skip
    return {
        "ruleId": finding.rule,
        "ruleIndex": index,
        "level": _LEVELS.get(finding.severity, "note"),
        "message": {"text": text},
        "locations": [_location(e, run) for e in finding.evidence[:1]] or [_place(run.source, run.first_line)],
        "relatedLocations": [{"id": i, **_location(e, run)} for i, e in enumerate(finding.evidence[1:10], 1)],
        "partialFingerprints": {"kvautopsy/v1": f"{finding.rule}:{finding.cause}"},
        "properties": {key: value for key, value in properties.items() if value is not None},
    }


def _unnamed(run: RunReport) -> dict[str, Any]:
    """A failure whose cause no rule knows is a result all the same."""
    failure = run.failure
    assert failure is not None
    text = ": ".join(t for t in (failure.exception or failure.cause, failure.message[:500]) if t)
    return {
        "ruleId": failure.cause,
        "level": "error",
        "message": {"text": text},
        "locations": [_place(run.source, failure.lines[0] if failure.lines else failure.first_line)],
        "properties": {"cause": failure.cause, "run": run.id},
    }


def _location(proof: Evidence, run: RunReport) -> dict[str, Any]:
    if not proof.line:  # another witness than a line: the run stands for it, the text says what it was
        return {**_place(run.source, run.first_line), "message": {"text": f"{proof.source}: {proof.text}"}}
    location = _place(proof.source or run.source, proof.line)
    location["physicalLocation"]["region"]["snippet"] = {"text": proof.text}
    location["message"] = {"text": proof.text or f"line {proof.line}"}
    return location


def _place(source: str, line: int) -> dict[str, Any]:
    uri = quote(str(PurePosixPath(source)), safe="/!._-~")
    region = {"startLine": max(line, 1)}
    return {"physicalLocation": {"artifactLocation": {"uri": uri}, "region": region}}
