"""Context of proof lines is read from the very lines of the input, cleaned and bounded."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from analyzer.report.context import AROUND, _lines, add_context
from analyzer.report.model import Evidence, Report


def proof_of(report: Report) -> Evidence:
    return report.runs[0].findings[0].evidence[0]


def pointed_at(report: Report, source: str, line: int) -> Report:
    for run in report.runs:
        run.unknown_scary = []
        for finding in run.findings:
            finding.evidence = [Evidence(source, line, f"line {line}", [(line, "old")])]
    return report


@pytest.mark.parametrize("packed", [False, True])
def test_the_true_neighbours_are_shown(report: Report, tmp_path: Path, packed: bool) -> None:
    text = b"".join(b"line %d\r\n" % n for n in range(1, 101))
    path = tmp_path / ("run.log.gz" if packed else "run.log")
    path.write_bytes(gzip.compress(text) if packed else text)
    add_context(pointed_at(report, str(path), 50), [str(path)])
    numbers = range(50 - AROUND, 50 + AROUND + 1)
    assert proof_of(report).context == [(n, f"line {n}") for n in numbers]


def test_at_the_ends_of_a_file_there_is_less(report: Report, tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    path.write_text("api_key='hunter2'\nlast \x1b[2J")
    add_context(pointed_at(report, str(path), 2), [str(path)])
    assert proof_of(report).context == [(1, "api_key='[redacted]'"), (2, "last \\x1b[2J")]


def test_what_cannot_be_read_again_keeps_what_it_has(report: Report, tmp_path: Path) -> None:
    add_context(pointed_at(report, "<stdin>", 5), ["-"])
    add_context(report, [str(tmp_path / "gone.log")])
    assert proof_of(report).context == [(5, "old")]


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_chunk_boundaries_do_not_matter(size: int) -> None:
    data = "eins\n\nzwei äöü\n".encode() + b"x" * 50_000 + b"\nend"
    chunks = [data[i : i + size] for i in range(0, len(data), size)]
    lines = _lines(chunks, {2, 3, 4, 5, 9})
    assert lines == {2: "", 3: "zwei äöü", 4: "x" * 400, 5: "end"}
