"""Judging a run: what fires, what stays open, which failure rule wins, and in which order it is told."""

from __future__ import annotations

from typing import Any

import pytest

from analyzer.diagnosis.judgement import Judgement
from analyzer.framing.record import Record
from analyzer.run.facts import Where
from analyzer.run.model import Failure
from tests.diagnosis.support import make_run, rule, rules


def judged(texts: list[str], facts: dict[str, Any] | None = None, **fields: Any) -> Judgement:
    return rules(*texts).judge(make_run(facts, **fields))


def fired(result: Judgement) -> list[str]:
    return [f.rule for f in result.findings]


SMALL = "id: KV901\nwhen: pool.tokens < 1000"


def test_true_false_unknown() -> None:
    assert fired(judged([SMALL], {"pool.tokens": 10})) == ["KV901"]
    quiet = judged([SMALL], {"pool.tokens": 5000})
    assert (fired(quiet), quiet.undecided) == ([], [])
    undecided = judged([SMALL]).undecided
    assert [(u.rule, u.needs, u.how) for u in undecided] == [("KV901", ("pool.tokens",), "")]


def test_undecided_says_how_to_decide() -> None:
    text = "id: KV901\nwhen: weights.on_disk > 1 GiB and sizing.cell > 0\nhow: {sizing.cell: count them}"
    assert judged([text]).undecided[0].how == "count them; give --model-dir"


def test_a_false_condition_needs_nothing_else() -> None:
    text = "id: KV901\nwhen: pool.tokens < 1000\nneeds: [pool.tokens, weights.on_disk]"
    assert judged([text], {"pool.tokens": 5000}).undecided == []
    assert judged([text], {"pool.tokens": 5}).undecided[0].needs == ("weights.on_disk",)


@pytest.mark.parametrize("facts", [{"pool.tokens": 5}, {"pool.tokens": 5, "spec.enabled": False}])
def test_only_if_silences(facts: dict[str, Any]) -> None:
    result = judged([SMALL + "\nonly_if: spec.enabled"], facts)
    assert (fired(result), result.undecided) == ([], [])


@pytest.mark.parametrize(
    ("fields", "confidence"),
    [
        ({"version": "0.5.15"}, "proved"),
        ({"version": "0.5.18"}, None),
        ({"version_range": (">=0.5.14", "<=0.5.17")}, "proved"),
        ({"version_range": (">=0.5.14", "")}, "likely"),
        ({"version_range": (">=0.5.18", "")}, None),
        ({}, "likely"),
        ({"engine": "vllm", "version": "0.5.15"}, None),
        ({"engine": None}, None),
    ],
)
def test_versions(fields: dict[str, Any], confidence: str | None) -> None:
    text = SMALL + "\nengines: [sglang]\nversions: '>=0.5.14 <0.5.18'\nconfidence: proved"
    found = judged([text], {"pool.tokens": 1}, **fields).findings
    assert [f.confidence for f in found] == ([] if confidence is None else [confidence])


def test_cases_and_texts() -> None:
    text = """
    id: KV901
    when: pool.tokens < 1000
    title: "{pool.tokens} tokens"
    severity: [{if: pool.tokens < 10, then: critical}, warning]
    confidence: [{if: spec.enabled, then: possible}, {else: proved}]
    says:
    - "Holds {pool.bytes}, {pool.bytes / pool.tokens} each, {pool.tokens:.1f}, {weights.loaded}."
    - {if: pool.tokens < 10, then: Tiny., else: Small.}
    - {if: spec.enabled, then: never}
    """
    found = judged([text], {"pool.tokens": 4, "pool.bytes": "3 GiB"}).findings[0]
    assert (found.severity, found.confidence, found.title) == ("critical", "proved", "4 tokens")
    assert found.summary == "Holds 3.00 GiB, 0.75 GiB each, 4.0, unknown. Tiny."
    other = judged([text], {"pool.tokens": 40, "spec.enabled": True}).findings[0]
    assert (other.severity, other.confidence) == ("warning", "possible")
    assert other.summary.endswith("Small. never")


def test_evidence_are_the_lines_of_the_facts() -> None:
    found = judged([SMALL], {"pool.tokens": 4}).findings[0]
    assert [w.text for w in found.evidence] == ["pool.tokens = 4"]


def failure(exception: str, message: str, **fields: Any) -> Failure:
    return Failure(exception, message, (Where("log", fields.pop("line", 9), f"{exception}: {message}"),), **fields)


MEMORY = "id: SF901\ncause: fail-oom-load\nfailure: true\nwhen: failure.message ~ 'out of memory'"
LOADING = MEMORY.replace("901", "902") + " and failure.stage == 'weights'\nrank: 10"
ANY = "id: SF999\ncause: fail-engine-bug\nfailure: true\nwhen: 'true'\nrank: -100"


def test_the_most_specific_failure_rule_wins() -> None:
    texts = [MEMORY, LOADING, ANY]
    run = failure("OutOfMemoryError", "CUDA out of memory", stage="weights")
    assert judged(texts, failures=[run]).failure_rule == "SF902"
    run = failure("OutOfMemoryError", "CUDA out of memory", stage="pool")
    result = judged(texts, failures=[run])
    assert (result.failure_rule, fired(result)) == ("SF901", ["SF901"])
    assert result.findings[0].severity == "critical"
    assert result.findings[0].evidence[0].line == 9
    assert judged(texts, failures=[failure("E", "x")]).failure_rule == "SF999"
    assert judged(texts).failure_rule is None
    assert judged(texts).undecided == []


def test_wrappers_and_requests_are_no_cause() -> None:
    cause = failure("ValueError", "CUDA out of memory", line=30)
    others = [failure("EngineDeadError", "x", wrapper=True), failure("ValueError", "y", request_level=True)]
    result = judged([MEMORY, ANY], failures=[*others, cause])
    assert (result.failure_rule, result.findings[0].evidence[0].line) == ("SF901", 30)


def test_failed_requests_have_rules_of_their_own() -> None:
    text = "id: RF901\ncause: request-refused\nfailure: request\nseverity: warning\nwhen: failure.message ~ 'too long'"
    failures = [failure("ValueError", "too long", request_level=True, line=n) for n in (3, 4)]
    result = judged([text], failures=failures)
    assert (result.failure_rule, fired(result)) == (None, ["RF901"])
    assert [w.line for w in result.findings[0].evidence] == [3, 4]
    assert fired(judged([text], failures=[failure("ValueError", "too long")])) == []


def test_order_failure_severity_id() -> None:
    texts = [
        "id: KV903\nwhen: 'true'\nseverity: info",
        "id: KV902\nwhen: 'true'\nseverity: critical",
        "id: KV901\nwhen: 'true'",
        "id: CC901\nwhen: 'true'\nrank: -1",
        ANY,
    ]
    assert fired(judged(texts, failures=[failure("E", "x")])) == ["SF999", "KV902", "KV901", "CC901", "KV903"]


def test_a_cause_stands_before_what_it_explains() -> None:
    texts = [
        "id: KV901\nwhen: 'true'\nseverity: critical",
        "id: KV902\nwhen: 'true'\nseverity: info\nexplains: [KV901]",
        "id: KV903\nwhen: 'true'\nseverity: info\nexplains: [cap-requests]",
        "id: CC901\nwhen: 'true'\ncause: cap-requests\nexplains: [KV903]",
    ]
    result = judged(texts)
    assert fired(result) == ["KV902", "KV901", "CC901", "KV903"]
    assert {f.rule: f.explained_by for f in result.findings} == {
        "KV901": "KV902", "KV902": "", "CC901": "", "KV903": "CC901",
    }  # fmt: skip


def test_a_failure_stands_first_even_where_it_is_explained() -> None:
    texts = ["id: KV901\nwhen: 'true'\nexplains: [fail-engine-bug]", ANY]
    result = judged(texts, failures=[failure("E", "x")])
    assert [(f.rule, f.explained_by) for f in result.findings] == [("SF999", "KV901"), ("KV901", "")]


def test_a_log_without_its_start_can_be_given_whole() -> None:
    stages = {"ready": Where("log", 1), "serving": Where("log", 2)}
    assert judged([SMALL], stages=stages).undecided[0].how == "give the log from its first line"
    assert judged([SMALL], stages={"weights": Where("log", 1), **stages}).undecided[0].how == ""


def test_a_rule_that_lacks_no_fact_is_not_listed() -> None:
    assert judged(["id: KV901\nwhen: field(a, b) > 3"]).undecided == []


def test_explaining_in_a_circle_leaves_a_first_cause() -> None:
    texts = [f"id: KV90{n}\nwhen: 'true'\nexplains: [KV90{n % 3 + 1}]" for n in (1, 2, 3)]
    result = judged(texts)
    assert sorted(fired(result)) == ["KV901", "KV902", "KV903"]
    assert [f.explained_by for f in result.findings].count("") == 1
    assert result.findings[0].explained_by == ""


def test_a_rule_does_not_explain_itself() -> None:
    result = judged(["id: KV901\nwhen: 'true'\nexplains: [KV901, pool-left-unused]", "id: KV902\nwhen: 'true'"])
    assert [f.explained_by for f in result.findings] == ["", ""]


def test_why_not_shows_every_part() -> None:
    text = "id: KV901\nlet: {each: pool.bytes / pool.tokens}\nwhen: each > 1 KiB/token and weights.on_disk > 1 GiB"
    answer = rules(text).why_not("kv901", make_run({"pool.tokens": 10, "pool.bytes": "1 GiB"}))
    assert answer.status == "undecided"
    assert answer.missing == (("weights.on_disk", "give --model-dir"),)
    shown = {step.text: step.value for step in answer.steps}
    assert shown["pool.bytes"] == "1.00 GiB"
    assert shown["each > 1024 bytes/token"] == "true"
    assert shown["weights.on_disk > 1 GiB"] == "unknown"
    assert any("missing weights.on_disk: give --model-dir" in line for line in answer.lines())


def test_why_not_of_other_engines_and_beaten_rules() -> None:
    made = rules(MEMORY, LOADING, SMALL + "\nengines: [vllm]")
    run = make_run(failures=[failure("E", "out of memory", stage="weights")])
    assert made.why_not("KV901", run).status == "not meant"
    assert "SF902 is more specific" in made.why_not("SF901", run).reason
    assert made.why_not("SF902", run).reason == "its condition holds"
    assert "has none" in made.why_not("SF999", make_run()).reason if made.get("SF999") else True


def test_rule_used_in_this_module_is_sound() -> None:
    assert rule(SMALL).id == "KV901"


def test_why_not_of_harmless_lines_and_failed_requests() -> None:
    benign = "id: BN901\ncause: benign-other\nwhy: It is nothing.\nbenign: {lines: ['all \\d+ errors']}"
    request = "id: RF901\ncause: request-refused\nfailure: request\nwhen: failure.message ~ 'too long'"
    made = rules(benign, request)
    assert made.why_not("BN901", make_run()).reason == "no line is of its kind (all \\d+ errors)"
    scary = [Record("log", 7, 7, "all 0 errors")]
    assert made.why_not("BN901", make_run(scary=scary)).steps[0].where[0].line == 7
    assert made.why_not("RF901", make_run()).reason == "no request failed while the server went on"
    failures = [failure("ValueError", "too long", request_level=True)]
    assert made.why_not("RF901", make_run(failures=failures)).status == "fires"
