"""What a report says that an earlier one did not: CI should fail on what is new."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from analyzer.diagnosis.judgement import SEVERITIES
from analyzer.errors import UserError
from analyzer.report.model import Finding, Report, RunReport


def without_known(report: Report, baseline: Path) -> Report:
    """``report`` less the findings and failures that the saved JSON report ``baseline`` has as well.

    A finding is known if the earlier report has one of the same rule and cause for the same engine that was at least
    as severe; a failure, if it has one of the same cause and exception. Line numbers and figures may differ.
    Raises ``UserError`` if the file cannot be read or holds no report.
    """
    from analyzer.report.jsonform import from_json

    try:
        earlier = from_json(baseline.read_bytes())
    except OSError as error:
        raise UserError(f"{baseline} cannot be read: {error.strerror or error}") from None
    except UserError as error:
        raise UserError(f"{baseline}: {error}", status=error.status) from None
    findings = {key for run in earlier.runs for f in run.findings for key in _keys(run, f)}
    failures = {_failure(run) for run in earlier.runs if run.failure}
    runs = [
        replace(
            run,
            findings=[f for f in run.findings if (run.engine, f.rule, f.cause, f.severity) not in findings],
            failure=None if _failure(run) in failures else run.failure,
        )
        for run in report.runs
    ]
    return replace(report, runs=runs)


def _keys(run: RunReport, finding: Finding) -> list[tuple[str | None, str, str, str]]:
    rank = SEVERITIES.index(finding.severity) if finding.severity in SEVERITIES else 0
    return [(run.engine, finding.rule, finding.cause, severity) for severity in SEVERITIES[rank:]]


def _failure(run: RunReport) -> tuple[str | None, str, str] | None:
    return (run.engine, run.failure.cause, run.failure.exception) if run.failure else None
