"""The head of a page of many logs: nothing is cut off, and files without a log do not bury the others."""

from __future__ import annotations

from dataclasses import replace

import pytest

from analyzer.report.html import to_html
from analyzer.report.markdown import to_markdown
from analyzer.report.model import InputSummary, Report
from analyzer.report.overview import FEW, MOST, listed, name_of
from analyzer.report.sheet import Sheet, cells
from analyzer.report.terminal import write
from analyzer.report.view import engine_of


def log(number: int, known: int = 5, note: str = "") -> InputSummary:
    return InputSummary(f"logs/{number:03}.log", 100, 10, known, 10 - known, note)


def page(report: Report, width: int = 80) -> list[str]:
    sheet = Sheet(width)
    write(report, sheet)
    return ["".join(piece[0] for piece in line) for line in sheet.lines]


def test_a_few_inputs_are_listed_whatever_they_hold() -> None:
    inputs = [log(n, 0) for n in range(FEW)]
    assert listed(inputs) == (inputs, "")


def test_of_many_those_without_a_log_are_counted() -> None:
    telling, damaged = [log(n) for n in range(10)], log(99, 0, "not read: damaged")
    inputs = [*telling, *[log(n, 0) for n in range(20, 40)], damaged]
    assert listed(inputs) == ([*telling, damaged], "and 20 more files with 200 lines, none of them recognised")


def test_the_rest_of_very_many_is_counted_with_what_it_held() -> None:
    shown, rest = listed([log(n) for n in range(MOST + 1)])
    assert len(shown) == MOST and rest == "and 1 more file with 10 lines, 5 of them recognised"
    shown, rest = listed([log(n, 0) for n in range(MOST + 2)])
    assert len(shown) == MOST and rest == "and 2 more files with 20 lines, none of them recognised"


def test_the_pages_say_it_alike(report: Report) -> None:
    report.inputs = [*[log(n) for n in range(13)], *[log(n, 0) for n in range(50, 57)]]
    said = "and 7 more files with 70 lines, none of them recognised"
    for text in ("\n".join(page(report)), to_markdown(report), to_html(report)):
        assert said in text and "012.log" in text and "056.log" not in text
    assert name_of(report.inputs) == "logs/000.log, logs/001.log, logs/002.log and 17 more files"
    assert name_of([]) == "no input"


@pytest.mark.parametrize("width", [40, 80, 110])
def test_the_outcomes_of_many_runs_are_all_counted(report: Report, width: int) -> None:
    outcomes = ["serving", "stopped", "degraded", "starting", "unknown", "crashed at startup", "crashed at runtime"]
    one = report.runs[0]
    report.runs = [replace(one, id=n, source=f"a/{n}.log", outcome=o) for n, o in enumerate(outcomes, 1)]
    lines = page(report, width)
    told = " ".join(" ".join(lines).split())
    assert all(f"1 {outcome}" in told for outcome in outcomes)
    assert max(map(cells, lines)) <= width
    if width == 110:
        assert any(line.endswith(" 3.log") and "degraded" in line for line in lines)
    assert "a/3.log 1-78" in to_markdown(report).replace("\\", "")


def test_a_bracket_with_one_version_in_it_is_that_version(report: Report) -> None:
    run = replace(report.runs[0], version=None, version_range=[">=0.5.13", "<=0.5.13"], version_basis="shapes")
    assert engine_of(run) == "SGLang 0.5.13 (from line shapes)"
