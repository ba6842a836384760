"""Lines that are one word take a way of their own through framing and folding, and come out as any other."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from analyzer import pipeline
from analyzer.framing.framer import Framer
from analyzer.framing.join import Joiner
from analyzer.framing.record import Record
from analyzer.report import to_json
from analyzer.resources import data_dir
from tests.bulk.test_same import differences

SAMPLES = ["sglang/wrapper_nextn.log", "failures/vllm_0.18.1_kv_too_small_hf.log", "vllm/cpu_0.24.0_preempt.log"]
WORDS = [
    "y", "42", "0", "KeyError", "INFO", "Killed", "Aborted", "caf\u00e9", "ERROR", "Traceback", "nanobind",
    "RuntimeError",    "x" * 50, "\u0661\u0662", "error", "FAILED", "E", "deadbeef0123", "sys", "usage",
]  # fmt: skip
NEAR = ["", " ", "a b", "y:", "3: y", "a | b", "pod-1  | y", "}", "name: ", "\ty", "y\r", "> y", "KeyError: 'x'", "(y)"]


def strewn(name: str, seed: int) -> str:
    """A sample with words and nearly words among its lines, alone and many in a row."""
    chance = random.Random(seed)
    lines = (data_dir("samples") / name).read_text().split("\n")
    for _ in range(60):
        few = [chance.choice(WORDS if chance.random() < 0.8 else NEAR)] * chance.choice((1, 1, 2, 30))
        at = chance.randrange(len(lines))
        lines[at:at] = few
    if seed % 3 == 0:
        lines = lines[len(lines) // 2 :]
    return "\n".join(lines)


def records(text: str) -> list[Record]:
    framer = Framer("x", unwrap=False)
    return [*framer.feed(text.encode()), *framer.close()]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("name", SAMPLES)
def test_the_records_are_the_same(name: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    text = strewn(name, seed)
    quick = records(text)
    with monkeypatch.context() as patch:
        patch.setattr(Joiner, "idle", False)
        assert records(text) == quick
    assert sum(record.text in WORDS for record in quick) > 30


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("name", SAMPLES)
def test_the_report_is_the_same(name: str, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.log"
    path.write_text(strewn(name, seed))
    quick = to_json(pipeline.explain([str(path)]))
    with monkeypatch.context() as patch:
        patch.setattr(pipeline, "_SHORT", -1)
        patch.setattr(Joiner, "idle", False)
        assert differences(quick, to_json(pipeline.explain([str(path)]))) == []


def test_a_word_that_follows_is_no_word_alone() -> None:
    """What an open record may go on with is its."""
    text = '[2026-11-30 02:55:49] Scheduler hit an exception:\nTraceback (most recent call last):\n  File "a.py", line 1, in f\n    g()\nRuntimeError: one\ntwo\n'  # noqa: E501
    assert [r.form for r in records(text)] == ["log", "traceback"]


def test_what_is_dull_is_remembered_and_still_counted(tmp_path: Path) -> None:
    path = tmp_path / "y.log"
    path.write_text("y\nKilled\n" * 3000)
    analysis = pipeline.read([str(path)])
    (building,) = analysis.folder._all
    assert (building.order, building.last_line) == (6000, 6000)
    assert analysis.inputs[0].unrecognised_lines + analysis.inputs[0].recognised_lines == 6000
