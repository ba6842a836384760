"""The terminal page: fits 80 columns, needs neither colour nor blocks, and tells the story in order."""

from __future__ import annotations

import io
import subprocess
import sys

import pytest
from rich.console import Console

from analyzer.report import view
from analyzer.report.model import Evidence, FactRow, Report
from analyzer.report.sheet import bar, cells, clip, sparkline, wrap
from analyzer.report.terminal import to_terminal
from tests.report import examples


def shown(report: Report, width: int = 80, *, noise: bool = False, **console: object) -> str:
    """The page as a pipe receives it."""
    out = io.StringIO()
    to_terminal(report, Console(file=out, width=width, **console), noise=noise)  # type: ignore[arg-type]
    return out.getvalue()


@pytest.mark.parametrize("width", [60, 80, 100, 132])
def test_no_line_is_wider_than_the_console(report: Report, width: int) -> None:
    assert max(cells(line) for line in shown(report, width).splitlines()) <= width


@pytest.mark.parametrize("width", [40, 60, 80, 110])
def test_no_statement_is_cut_off(report: Report, width: int) -> None:
    words = " ".join(shown(report, width).split())
    for number, run in enumerate(report.runs):
        for said in [*view.pool_said(run), *view.limits_said(run)]:
            for word in said.text.split():
                assert word in words, (number, said)
    assert f"{report.inputs[0].unrecognised_lines} not" in words


def test_hostile_text_keeps_the_width_and_the_line_structure(hostile: Report) -> None:
    lines = shown(hostile).splitlines()
    assert max(cells(line) for line in lines) <= 80
    assert "<script>" in "\n".join(lines)  # text is text here: nothing interprets it


def test_a_pipe_gets_no_colour_codes_and_a_terminal_does(report: Report) -> None:
    assert "\x1b" not in shown(report)
    assert "\x1b[" in shown(report, force_terminal=True, color_system="standard")


def test_rich_markup_in_a_log_is_not_obeyed(report: Report) -> None:
    report.runs[0].verdict = "[red]not red[/red] [link=http://x]y[/link] :smile:"
    assert "[red]not red[/red] [link=http://x]y[/link] :smile:" in shown(report)


def test_the_verdict_comes_before_the_figures_and_the_causes_after_them(report: Report) -> None:
    report.runs = report.runs[:1]
    page = shown(report)
    order = ["The pool holds", "POOL", "LIMITS", "WHERE 139.13 GiB WENT", "WHY", "WHAT IF", "NOT DECIDED", "NOISE"]
    places = [page.index(word) for word in order]
    assert places == sorted(places)


def test_costs_add_up_to_the_gap_with_the_remainder(report: Report) -> None:
    page = shown(report)
    assert "203,707" in page and "99 %" in page
    assert "not explained by any of these" in page and "1,203" in page


def test_every_proof_line_is_quoted_with_its_number(report: Report) -> None:
    page = shown(report, 100)
    assert "l. 36  Memory pool end. avail mem=27.81 GB" in page
    assert "l. 44  Capture target verify CUDA graph begin." in page


def test_a_failed_run_says_what_died_and_the_cause_once(report: Report) -> None:
    report.runs = report.runs[1:]
    page = shown(report)
    assert "WHAT FAILED" in page and "ValueError" in page and "EngineCore_DP0" in page
    assert page.count("SF003") == 1 and "WHY" not in page
    assert "The advice printed" in page


def test_a_process_that_is_its_own_rank_is_named_once(report: Report) -> None:
    report.runs = report.runs[1:]
    failure = report.runs[0].failure
    assert failure is not None
    failure.process, failure.ranks, failure.stage = "Worker_TP3", ["Worker_TP3", "Worker_TP1"], "weights"
    assert "ValueError   Worker_TP3, Worker_TP1, weights" in shown(report)


def test_an_exception_is_quoted_in_rows_and_a_dump_of_arguments_in_one(report: Report) -> None:
    run = report.runs[0]
    report.runs = [run]
    said = "CUDA out of memory. Tried to allocate 896.00 MiB. " + "The process has much memory in use. " * 10
    dump = "ServerArgs(" + ", ".join(f"option_{n}='value'" for n in range(60)) + ")"
    run.findings[0].evidence = [Evidence("x.log", 3, said), Evidence("x.log", 4, dump)]
    rows = shown(report).splitlines()
    at = next(n for n, row in enumerate(rows) if "CUDA out of memory" in row)
    assert rows[at + 1].strip().startswith("│") and rows[at + 2].rstrip().endswith("..")
    assert "option_0" not in "\n".join(rows) and "and l. 4" in "\n".join(rows)


def test_a_message_whose_first_line_the_finding_quotes_is_not_repeated(report: Report) -> None:
    run = report.runs[1]
    assert run.failure is not None
    finding = view.blamed(run)
    assert finding is not None
    run.failure.message = "Ninja build failed. Output:\n[1/4] nvcc -x\nFAILED"
    finding.summary = "The compiler refused it: Ninja build failed. Output."
    assert view.message_of(run) == ""
    finding.summary = "The compiler refused it."
    assert view.message_of(run) == run.failure.message


def test_several_runs_begin_with_a_table(report: Report) -> None:
    page = shown(report)
    assert page.index("2 runs: 1 crashed at startup, 1 stopped") < page.index("RUN 1") < page.index("RUN 2")


def test_a_run_that_failed_like_an_earlier_one_is_told_briefly(report: Report) -> None:
    again = examples.failed_run()
    again.id = 3
    report.runs.append(again)
    page = shown(report)
    assert page.count("WHAT FAILED") == 1 and "As run 2: The server did not start" in page


def test_a_line_that_every_rank_prints_is_quoted_once(report: Report) -> None:
    finding = report.runs[0].findings[1]
    finding.evidence = [Evidence("server.log", n, "same text") for n in (4, 5, 6)]
    assert "l. 4 5 6  same text" in shown(report) and shown(report).count("same text") == 1


def test_noise_is_counted_or_listed(report: Report) -> None:
    assert "BN009" not in shown(report) and "2 lines that look like errors and are not" in shown(report)
    listed = shown(report, noise=True)
    assert "l. 77  destroy_process_group() was not called" in listed and "BN009: printed at every" in listed


def test_an_encoding_without_blocks_gets_ascii(report: Report) -> None:
    report.runs[0].verdict = "naïve 中文"
    raw = io.BytesIO()
    out = io.TextIOWrapper(raw, encoding="ascii")
    to_terminal(report, Console(file=out, width=80))
    out.flush()
    page = raw.getvalue().decode("ascii")
    assert "####" in page and "na\\xefve" in page


def test_nothing_recognised_is_said(report: Report) -> None:
    report.runs = []
    assert "Nothing in the input was recognised" in shown(report)


def test_importing_the_page_is_cheap_and_pulls_no_heavy_library() -> None:
    code = (
        "import sys, analyzer.report.terminal, rich.console\n"
        "heavy = {'pydantic', 'jinja2', 'polars', 'lark', 'yaml'} & set(sys.modules)\n"
        "print(sorted(heavy))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_bars_are_to_scale_and_freed_parts_lighter() -> None:
    assert bar(10, 10, 8) == "████████"
    assert bar(5, 10, 8) == "████"
    assert bar(0.01, 10, 8) == "▏"
    assert bar(10, 10, 8, freed=5) == "████░░░░"
    assert bar(10, 10, 8, blocks=False, freed=5) == "####----"
    assert bar(0, 10, 8) == "" and bar(5, 0, 8) == ""


def test_a_sparkline_shows_shape_and_skips_gaps() -> None:
    assert sparkline([0, None, 1, 2, 3], 4) == "▁▃▆█"
    assert sparkline([None], 4) == ""
    assert len(sparkline(list(range(1000)), 30)) == 30
    assert sparkline([5, 5], 4, blocks=False) == "@@"


def test_wide_characters_count_double() -> None:
    assert cells("中文") == 4 and cells("e\u0301") == 1
    assert cells(clip("中" * 50, 21)) <= 21
    assert all(cells(line) <= 20 for line in wrap("中" * 50 + " short " + "x" * 70, 20))
    assert "".join(wrap("x" * 70, 20)) == "x" * 70


def test_ranks_that_the_log_does_not_show_are_said(report: Report) -> None:
    run = report.runs[0]
    run.engine = "vllm"
    run.facts["args.tensor_parallel_size"] = FactRow(4, "count", [1])
    run.facts["args.data_parallel_size"] = FactRow(2, "count", [1])
    assert view.ranks_said(run) == "8 ranks"  # no line is of one rank: the arguments alone tell
    run.facts["pool.available_bytes"] = FactRow(1, "bytes", [1], ranks={"TP0": 1})
    assert view.ranks_said(run) == "1 of 8 ranks"
    run.engine = "sglang"  # its data parallelism lies within the tensor ranks
    assert view.ranks_said(run) == "1 of 4 ranks"
    run.facts["weights.loaded"] = FactRow(1, "bytes", [1], ranks={"": 1, "W 1": 1, "W 2": 1, "W 3": 1})
    assert view.ranks_said(run) == "4 ranks"
