"""From judged runs to a report: copied whole, cleaned, with a verdict that claims no more than is known."""

from __future__ import annotations

import pytest

from analyzer.diagnosis import BenignHit, Finding, Judgement, Undecided
from analyzer.events import Event
from analyzer.framing.record import Record
from analyzer.report.build import build
from analyzer.report.model import InputSummary, RunReport
from analyzer.run.facts import Where
from analyzer.run.model import Failure, Frame, Run
from analyzer.sizing.base import Check

PROOF = Where("log", 20, "max_total_num_tokens=1000, api_key='hunter2'")


def served(**facts: object) -> Run:
    run = Run(1, "log", 1, 99, "sglang", outcome="serving", stages={"serving": Where("log", 90)})
    for name, value in facts.items():
        run.facts.add(name.replace("__", "."), value, PROOF)
    return run


def died(message: str = "boom", **fields: object) -> Run:
    run = Run(1, "log", 1, 99, "vllm", outcome="crashed at startup", stages={"weights": Where("log", 10)})
    where = (Where("log", 30, f"RuntimeError: {message}"), Where("log", 25, "Traceback"))
    run.failures.append(
        Failure("RuntimeError", message, where, 25, (Frame("a.py", 1, "f"), Frame("b.py", 7, "g")), **fields)  # type: ignore[arg-type]
    )
    return run


def reported(run: Run, judgement: Judgement | None = None, check: Check | None = None) -> RunReport:
    report = build([(run, None, check, judgement or Judgement())], [InputSummary("log", lines=99)])
    return report.runs[0]


def finding(cause: str = "pool-draft-overhead", **fields: object) -> Finding:
    given = {
        "severity": "critical",
        "confidence": "proved",
        "title": "The draft was charged",
        "summary": "Says so.",
        **fields,
    }
    return Finding("KV010", cause, evidence=(PROOF,), **given)  # type: ignore[arg-type]


def test_everything_is_copied_and_cleaned() -> None:
    judgement = Judgement(
        [finding(lost_tokens=100.0, pool_if_fixed=1100.0, note="estimate")],
        [Undecided("KV001", ("draft.weights.on_disk",), "give --model-dir", "draft against its file")],
        [BenignHit(5, "BN001", "harmless", "log", "ERROR \x1b[31mno")],
        unknown_scary=[Where("log", 6, "ERROR what")],
        unexplained_tokens=3.0,
        notes=["a note"],
    )
    run = served(pool__tokens=1000, args__api_key="hunter2")
    row = reported(run, judgement, Check("f", 1001.0, 1000.0, 0.001, ("x",)))
    assert row.facts["pool.tokens"].lines == [20] and row.facts["args.api_key"].value == "[redacted]"
    assert row.findings[0].evidence[0].text == "max_total_num_tokens=1000, api_key='[redacted]'"
    assert (row.findings[0].pool_if_fixed, row.findings[0].note) == (1100.0, "estimate")
    assert row.benign[0].text == "ERROR no" and row.undecided[0].needs == ["draft.weights.on_disk"]
    assert row.sizing is not None and row.sizing.error == 0.001 and row.sizing.missing == ["x"]
    assert row.unknown_scary[0].line == 6 and row.unexplained_tokens == 3.0 and row.notes == ["a note"]


def test_a_proof_stands_among_the_recognised_lines_around_it() -> None:
    run = served(pool__tokens=1000)
    run.events = [Event("k", "sglang", Record("log", n, n, f"line {n}")) for n in (2, 10, 15, 18, 20, 21, 30)]
    run.events.append(Event("k", "sglang", Record("other", 19, 19, "elsewhere")))
    context = reported(run, Judgement([finding()])).findings[0].evidence[0].context
    assert [number for number, _ in context] == [10, 15, 18, 20, 21, 30]


@pytest.mark.parametrize(
    ("facts", "findings", "said"),
    [
        ({"pool__tokens": 1000}, [], "The pool holds 1,000 tokens. No rule found anything wrong with it."),
        (
            {"pool__tokens": 1000},
            [finding(lost_tokens=100.0, pool_if_fixed=1100.0)],
            "The pool holds 1,000 tokens; it would hold 1,100. The draft was charged.",
        ),
        (
            {"pool__tokens": 1000},
            [finding(confidence="possible", lost_tokens=100.0, pool_if_fixed=1100.0)],
            "The pool holds 1,000 tokens. Possibly: The draft was charged.",
        ),
        (
            {"pool__tokens": 1000, "limit__running": 45, "limit__bound_by": "state-slots"},
            [],
            "The pool holds 1,000 tokens. At most 45 requests run at once, a limit set by state slots. No rule found",
        ),
        (
            {"pool__tokens": 1000, "limit__running": 45},
            [finding("cap-state-slots", severity="warning", title="Slots cap it")],
            "The pool holds 1,000 tokens. At most 45 requests run at once: slots cap it.",
        ),
        ({}, [], "The server serves; the log does not show its pool."),
    ],
)
def test_the_verdict_of_a_living_run(facts: dict[str, object], findings: list[Finding], said: str) -> None:
    assert reported(served(**facts), Judgement(findings)).verdict.startswith(said)


def test_an_explained_or_merely_informing_finding_is_not_the_verdict() -> None:
    info = finding(severity="info", title="By the way", lost_tokens=5.0, pool_if_fixed=1005.0)
    follows = finding(explained_by="KV001", title="Follows", lost_tokens=5.0, pool_if_fixed=1005.0)
    verdict = reported(served(pool__tokens=1000), Judgement([info, follows])).verdict
    assert verdict == "The pool holds 1,000 tokens. No rule found anything wrong with it."


def test_a_failure_is_named_by_its_rule() -> None:
    cause = finding("fail-oom-load", title="Weights do not fit", summary="Says 5 of 4. More.", failure=True)
    row = reported(died(stage="weights", process="EngineCore_DP0"), Judgement([cause], failure_rule="KV010"))
    assert row.failure is not None
    assert (row.failure.cause, row.failure.rule, row.failure.lines) == ("fail-oom-load", "KV010", [30, 25])
    assert row.failure.frame == "b.py:7 in g"
    assert (
        row.verdict == "The server did not start: it failed while it loaded weights. Weights do not fit. Says 5 of 4."
    )


def test_without_figures_in_the_finding_the_log_speaks_for_itself() -> None:
    cause = finding("fail-dependency", title="A module is missing", summary="It lacks one: No module.", failure=True)
    row = reported(died("No module named 'x'. Try pip\nmore"), Judgement([cause], failure_rule="KV010"))
    assert row.verdict.endswith("A module is missing. The log says: \"No module named 'x'\".")


def test_what_pydantic_says_is_quoted_without_its_count() -> None:
    cause = finding("fail-argument", title="It does not fit", summary="They differ.", failure=True)
    message = "1 validation error for ModelConfig\n  Value error, fp8 is not gptq [type=value_error, input_value=1]"
    row = reported(died(message), Judgement([cause], failure_rule="KV010"))
    assert row.verdict.endswith('It does not fit. The log says: "fp8 is not gptq".')


def test_a_failure_that_no_rule_knows_is_quoted_and_not_explained() -> None:
    row = reported(died("boom\nsecond line"))
    assert row.failure is not None and row.failure.cause == "fail-unknown"
    assert row.verdict.endswith("RuntimeError is the first error: boom. No rule knows its cause.")


def test_a_failure_whose_cause_is_in_another_stream_says_so() -> None:
    row = reported(died("See root cause above", kind="elsewhere"))
    assert row.failure is not None and row.failure.cause == "elsewhere"
    assert "The cause is not in this log" in row.verdict


def test_a_log_that_ends_in_a_stage_names_the_stage() -> None:
    run = Run(1, "log", outcome="starting", stages={"weights": Where("log", 3)})
    assert reported(run).verdict.startswith(
        "The log ends between the begin of loading and the sizing of the pool: it holds neither a pool nor a failure"
    )


def test_a_log_of_another_program_is_called_that() -> None:
    run = Run(1, "nginx.log", first_line=1, last_line=9)
    row = build([(run, None, None, Judgement())], [InputSummary("nginx.log", 9, 9, 0, 9)]).runs[0]
    assert row.verdict == "No line was recognised as the output of an SGLang or vLLM server."
    run.engine = "vllm"
    row = build([(run, None, None, Judgement())], [InputSummary("nginx.log", 9, 9, 0, 9)]).runs[0]
    assert "shows no stage of a start-up" in row.verdict
