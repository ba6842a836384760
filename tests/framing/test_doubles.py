"""A log in which each line stands twice is read as if it stood there once; equal lines elsewhere stay."""

from __future__ import annotations

from pathlib import Path

import pytest

from analyzer import pipeline
from analyzer.framing import Framer, frame
from analyzer.resources import data_dir

SAMPLES = sorted(data_dir("samples").rglob("*.log"))


def _records(data: bytes, size: int = 1 << 20) -> list[tuple[str, str]]:
    chunks = [data[at : at + size] for at in range(0, len(data), size)]
    return [(record.text, record.stamp) for record in frame(chunks, "x")]


def _doubled(data: bytes) -> bytes:
    return b"".join(2 * (line + b"\n") for line in data.removesuffix(b"\n").split(b"\n"))


@pytest.mark.parametrize("size", [100, 5000, 1 << 20])
def test_each_line_is_read_once(size: int) -> None:
    data = (data_dir("samples") / "sglang" / "wrapper_nextn.log").read_bytes() * 4  # more than the window that decides
    assert _records(_doubled(data), size) == _records(data)


def test_numbers_and_counts(tmp_path: Path) -> None:
    plain = data_dir("samples") / "sglang" / "wrapper_nextn.log"
    path = tmp_path / "two.log"
    path.write_bytes(_doubled(plain.read_bytes()))
    once, twice = pipeline.explain([str(plain)]), pipeline.explain([str(path)])
    assert "twice" in twice.inputs[0].note
    assert (twice.inputs[0].lines, twice.inputs[0].unrecognised_lines) == (208, once.inputs[0].unrecognised_lines)
    for name, fact in once.runs[0].facts.items():
        assert twice.runs[0].facts[name].value == fact.value, name
        assert twice.runs[0].facts[name].lines == [2 * line - 1 for line in fact.lines], name


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
def test_no_real_log_is_taken_for_one(path: Path) -> None:
    framer = Framer("x")
    framer.feed(path.read_bytes())
    framer.close()
    assert not framer.doubles.on


def test_equal_lines_of_a_few_kinds_stay() -> None:
    line = b"[2026-09-12 10:00:00] KV Cache is allocated. #tokens: 100, K size: 0.10 GB, V size: 0.10 GB\n"
    assert len(_records(line * 40)) == 40
