"""Reports on real logs: every quoted line is in the log at its number, every page renders, the ledger adds up."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from analyzer.pipeline import explain
from analyzer.report import from_json, render, to_terminal
from analyzer.report.model import Evidence, Report
from analyzer.report.sheet import cells
from analyzer.report.view import ledger_total
from analyzer.resources import data_dir
from analyzer.units import GIB

SAMPLES = sorted(data_dir("samples").rglob("*.log"))


@pytest.fixture(scope="module", params=SAMPLES, ids=[path.stem for path in SAMPLES])
def sample(request: pytest.FixtureRequest) -> tuple[Path, Report]:
    return request.param, explain([str(request.param)])


def quoted(report: Report) -> list[Evidence]:
    proofs = [e for run in report.runs for f in run.findings for e in f.evidence]
    proofs += [e for run in report.runs for e in run.outcome_basis]
    proofs += [Evidence(b.source, b.line, b.text) for run in report.runs for b in run.benign]
    return [e for e in proofs if e.line]


def test_every_quoted_line_is_in_the_log_at_its_number(sample: tuple[Path, Report]) -> None:
    path, report = sample
    lines = path.read_bytes().decode("utf-8", "replace").split("\n")
    for proof in quoted(report):
        words = [w for w in proof.text.split() if w.isalnum()][:6]
        there = lines[proof.line - 1]
        assert all(word in there for word in words), f"l. {proof.line}: {proof.text!r} is not in {there!r}"


def test_every_page_renders_within_its_width(sample: tuple[Path, Report]) -> None:
    _, report = sample
    out = io.StringIO()
    to_terminal(report, Console(file=out, width=80), noise=True)
    assert max(cells(line) for line in out.getvalue().splitlines()) <= 80
    for format in ("markdown", "html", "sarif", "junit"):
        assert len(render(report, format)) > 100
    text = render(report, "json")
    assert json.loads(text)["runs"] and render(from_json(text), "json") == text


def test_the_ledger_adds_up_to_what_the_device_had(sample: tuple[Path, Report]) -> None:
    for run in sample[1].runs:
        device = run.facts.get("gpu.free_before_load" if run.engine == "sglang" else "gpu.total")
        if run.ledger and device is not None:
            assert ledger_total(run.ledger) / GIB == pytest.approx(device.value / GIB, abs=0.3)


def test_every_run_has_a_verdict_that_ends_as_a_sentence(sample: tuple[Path, Report]) -> None:
    for run in sample[1].runs:
        assert run.verdict.endswith((".", '"')) and ".." not in run.verdict.removesuffix('..".')
