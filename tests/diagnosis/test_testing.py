"""The tests inside rule files: cases are built as written, and a case that does not hold is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from analyzer.diagnosis import testing
from analyzer.errors import UserError
from tests.diagnosis.support import compiled, rule


def results(text: str, **keywords: Any) -> list[testing.Result]:
    return testing.run([rule(text)], **keywords)


def test_a_right_and_a_wrong_expectation() -> None:
    text = """
    when: pool.tokens < 1000 and args.quantization == "fp8"
    tests:
      fires:
      - {facts: {pool.tokens: 3, args.quantization: fp8}}
      - {note: too many, facts: {pool.tokens: 3000, args.quantization: fp8}}
      - {facts: {args.quantization: fp8}}
      quiet:
      - {facts: {pool.tokens: 3, args.quantization: awq}}
      - {facts: {pool.tokens: 3, args.quantization: fp8}}
      - {facts: {}}
    """
    given = results(text)
    assert [r.passed for r in given] == [True, False, False, True, False, True]
    assert testing.failed(given) == [
        "KV900: fires 2 (too many): must fire and does not: it is quiet",
        "KV900: fires 3: must fire and does not: undecided for want of pool.tokens",
        "KV900: quiet 2: must stay quiet and fires",
    ]


def test_everything_a_case_can_give() -> None:
    text = """
    engines: [vllm]
    when: >-
      version >= "0.11" and outcome == "serving" and stage == "ready" and count(a) == 1 and field(b, size) == 3
      and spread(gpu.total) == 2 GiB and series(running.max) == 4 and pool.dtype == "fp8"
    tests:
      fires:
      - facts: {gpu.total: {TP0: 80 GiB, TP1: 78 GiB}, pool.dtype: fp8}
        version_range: [">=0.11", ""]
        outcome: serving
        stage: ready
        events: [a, {kind: b, size: 3, level: INFO}]
        series: {running: {max: 4}}
    """
    assert testing.failed(results(text)) == []


def test_failures() -> None:
    text = """
    cause: fail-argument
    failure: true
    when: failure.exception == "ValueError" and failure.message ~ "too large" and failure.frames ~ "args.py:check"
    tests:
      fires: [{failure: {exception: ValueError, message: it is too large, frames: ["a/args.py:check"], stage: init}}]
      quiet:
      - {failure: {exception: ValueError, message: it is too large}}
      - {}
    """
    assert testing.failed(results(text)) == []


def test_benign() -> None:
    text = """
    cause: benign-other
    why: It is nothing.
    benign: {lines: ['all \\d+ errors'], events: [nothing]}
    tests:
      fires: [{lines: ["all 0 errors"]}, {events: [nothing]}, {lines: [other]}]
      quiet: [{lines: ["all errors"]}, {facts: {}}]
    """
    assert [r.passed for r in results(text)] == [True, True, False, True, True]


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("facts: {pool.bites: 3}", "'pool.bites' is not in the vocabulary"),
        ("facts: {pool.tokens: 3 GiB}", "pool.tokens: gives for tokens: bytes and tokens"),
        ("facts: {pool.bytes: 3}", None),
        ("facts: {pool.bytes: many}", "is no quantity"),
        ("facts: {spec.enabled: 'yes'}", "spec.enabled is true or false"),
        ("facts: {gpu.total: {}}", "gpu.total has no value"),
        ("stage: lunch", "'lunch' is no stage"),
        ("events: [{size: 3}]", "an event needs its kind"),
        ("failure: {exeption: x}", "there is no field exeption"),
    ],
)
def test_a_case_that_describes_nothing(case: str, words: str | None) -> None:
    given = results(f"when: 'false'\ntests:\n  quiet:\n  - {case}")
    if words is None:
        assert given[0].passed
    else:
        assert not given[0].passed
        assert words in given[0].message


def test_quantities() -> None:
    assert testing.quantity("pool.bytes", "0.5 GiB", "bytes") == 2**29
    assert testing.quantity("x", "-3", "count") == -3
    assert testing.quantity("state.slot_bytes", "2 MiB", "bytes_per_slot") == 2**21
    with pytest.raises(UserError, match="seconds and bytes"):
        testing.quantity("pool.bytes", "3 s", "bytes")


def test_samples_go_through_the_program_once(tmp_path: Path) -> None:
    (tmp_path / "sglang").mkdir()
    (tmp_path / "sglang" / "a.log").write_text("x")
    seen: list[Path] = []

    def explain(path: Path) -> list[str]:
        seen.append(path)
        return ["KV900"]

    text = """
    when: 'true'
    tests:
      fires: [{sample: sglang/a.log}, samples/sglang/a.log]
      quiet: [{sample: sglang/a.log}, {sample: sglang/b.log}, {sample: ../../etc/passwd}]
    """
    given = results(text, explain=explain, samples=tmp_path)
    assert [r.passed for r in given] == [True, True, False, False, False]
    assert len(seen) == 1
    skipped = results(text, samples=tmp_path)
    assert [r.skipped for r in skipped] == [True, True, True, False, False]


def test_a_misspelt_test_is_an_error() -> None:
    assert "there is no such field" in compiled("when: 'true'\ntests: {fire: []}")["problems"][0]
