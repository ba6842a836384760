"""Harmless lines, and frightening ones that nobody knows."""

from __future__ import annotations

from typing import Any

from analyzer.diagnosis.judgement import Judgement
from analyzer.events import Event
from analyzer.framing.record import Record
from analyzer.run.facts import Where
from analyzer.run.model import Failure
from tests.diagnosis.support import make_run, rules

EVENTS = """
id: BN901
cause: benign-fallback
why: It falls back.
benign: {events: [fallback]}
when: default(event.code, 0) == 0
"""
LINES = """
id: BN902
cause: benign-library-notice
why: The library says so at every start.
engines: [sglang]
benign: {lines: ['resource_tracker: There appear to be \\d+ leaked']}
"""


def record(line: int, text: str, level: str = "", form: str = "raw", last: int | None = None) -> Record:
    return Record("log", line, last or line, text, form=form, level=level)


def judged(scary: list[Record] = [], events: list[Event] = [], **fields: Any) -> Judgement:  # noqa: B006
    return rules(EVENTS, LINES).judge(make_run(scary=scary, events=events, **fields))


def named(result: Judgement) -> list[tuple[int, str]]:
    return [(hit.line, hit.rule) for hit in result.benign]


def unknown(result: Judgement) -> list[int]:
    return [where.line for where in result.unknown_scary]


def test_lines_of_third_parties() -> None:
    text = "UserWarning: resource_tracker: There appear to be 1 leaked semaphore"
    result = judged([record(4, text), record(9, "an unheard-of error")])
    assert named(result) == [(4, "BN902")]
    assert (result.benign[0].why, result.benign[0].text) == ("The library says so at every start.", text)
    assert unknown(result) == [9]


def test_rules_of_another_engine_do_not_count() -> None:
    result = judged([record(4, "error: resource_tracker: There appear to be 1 leaked semaphore")], engine="vllm")
    assert (named(result), unknown(result)) == ([], [4])


def test_events_with_a_condition_on_their_fields() -> None:
    events = [
        Event("fallback", "sglang", record(1, "error, falling back", "ERROR")),
        Event("fallback", "sglang", record(2, "error 3, falling back", "ERROR"), {"code": 3}),
    ]
    result = judged(events=events)
    assert named(result) == [(1, "BN901")]


def test_recognised_events_frighten_only_by_their_level() -> None:
    events = [
        Event("server_args", "sglang", record(1, "log_level='error'", "INFO")),
        Event("odd", "sglang", record(2, "something failed", "ERROR")),
    ]
    assert unknown(judged(events=events)) == [2]


def test_words_and_levels() -> None:
    scary = [
        record(1, "all is well", "CRITICAL"),
        record(2, "Traceback (most recent call last):", form="traceback"),
        record(3, "an error is mentioned", "INFO"),
        record(4, "an error is mentioned", "WARNING"),
        record(5, "nothing of the kind", "WARNING"),
        record(6, "error: 50%|###", form="bar"),
    ]
    assert unknown(judged(scary)) == [1, 2, 4]


def test_source_code_around_a_line_that_failed_alarms_nobody() -> None:
    source = [
        "# If an exception arises in process_outputs_socket task,", "if isinstance(outputs, Exception):",
        "> raise self._format_exception(outputs) from None", "return_when=asyncio.FIRST_EXCEPTION)", "except OSError:",
    ]  # fmt: skip
    said = [
        "raise the limit: opening the file failed", "return code 1, the job failed", "# of errors", "FAILED test_x",
        "while loading: an error", "error=timeout", "E   ValueError: bad",
    ]  # fmt: skip
    scary = [record(n, text) for n, text in enumerate([*source, *said], 1)]
    assert unknown(judged(scary)) == [6, 7, 9, 10, 11, 12]
    assert unknown(judged([record(1, "# error", "WARNING")])) == [1]


def test_what_belongs_to_a_failure_is_accounted_for() -> None:
    failure = Failure("E", "m", (Where("log", 30, "E: m"), Where("log", 20, "Traceback")), first_line=20)
    scary = [record(18, "error"), record(20, "Traceback\nE: m", form="traceback", last=30), record(25, "error")]
    assert unknown(judged(scary, failures=[failure])) == [18]


def test_a_line_that_says_what_a_failure_said_is_accounted_for() -> None:
    failure = Failure("ValueError", "Only per-tensor scales for weights are supported.\nFound 8 bits", ())
    scary = [
        record(3, "Only per-tensor scales for weights are supported.", "ERROR"),
        record(4, "Found 8 bits", "ERROR"),
    ]
    assert unknown(judged(scary, failures=[failure])) == [4]  # too short to be more than a chance


def test_what_a_finding_rests_on_is_accounted_for() -> None:
    finding = "id: KV901\nwhen: seen(odd)"
    run = make_run(events=[Event("odd", "sglang", record(2, "failed", "ERROR"))])
    assert unknown(rules(finding).judge(run)) == []


def test_a_flood_is_bounded() -> None:
    result = judged([record(n, f"error {n}") for n in range(1, 5_000)])
    assert len(result.unknown_scary) == 200
