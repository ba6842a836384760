"""A log read by columns gives the very report that it gives line by line."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from analyzer import pipeline
from analyzer.bulk import lane
from analyzer.report import to_json
from benchmarks.generate import write_log, write_quiet
from tests.bulk.disturbed import COLLECTORS, as_objects, behind, with_faults


def report_by(
    path: Path, monkeypatch: pytest.MonkeyPatch, start: int, block: int = 1 << 20
) -> tuple[dict[str, Any], int]:
    monkeypatch.setattr(pipeline, "BULK_FROM", start)
    monkeypatch.setattr(pipeline, "_BLOCK", block)
    monkeypatch.setattr(pipeline, "BULK_CHUNK", 1 << 16)
    monkeypatch.setattr(pipeline, "BULK_FIRST", 1 << 16)
    monkeypatch.setattr(lane, "LEAST", 1 << 16)
    by_columns = 0
    opened = pipeline.Reader._open_lane
    lanes = []

    def open_lane(reader: pipeline.Reader) -> Any:
        lanes.append(opened(reader))
        return lanes[-1]

    monkeypatch.setattr(pipeline.Reader, "_open_lane", open_lane)
    report = to_json(pipeline.explain([str(path)]))
    monkeypatch.setattr(pipeline.Reader, "_open_lane", opened)
    by_columns = sum(lane.lines_by_columns for lane in lanes)
    return report, by_columns


def differences(one: Any, other: Any, place: str = "") -> list[str]:
    """Where two reports differ but for the time taken."""
    if isinstance(one, dict) and isinstance(other, dict):
        found = [] if list(one) == list(other) else [f"{place}: keys {list(one)} {list(other)}"]
        for key in one.keys() & other.keys() - {"seconds"}:
            found += differences(one[key], other[key], f"{place}/{key}")
        return found
    if isinstance(one, list) and isinstance(other, list):
        found = [] if len(one) == len(other) else [f"{place}: {len(one)} and {len(other)} items"]
        for index, (a, b) in enumerate(zip(one, other, strict=False)):
            found += differences(a, b, f"{place}[{index}]")
        return found
    return [] if one == other and type(one) is type(other) else [f"{place}: {one!r} {other!r}"]


def _same(path: Path, monkeypatch: pytest.MonkeyPatch, share: float, block: int = 1 << 20) -> None:
    plain, none = report_by(path, monkeypatch, 1 << 62)
    bulk, lines = report_by(path, monkeypatch, 300_000, block)
    assert none == 0
    assert lines >= share * bulk["inputs"][0]["lines"]
    assert differences(plain, bulk)[:5] == []


@pytest.mark.parametrize(
    ("engine", "ranks", "seed"), [("sglang", 1, 1), ("sglang", 3, 2), ("vllm", 1, 3), ("vllm", 2, 4)]
)
def test_a_runtime_log(engine: str, ranks: int, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _same(write_log(tmp_path / "run.log", 4, engine, ranks, seed), monkeypatch, share=0.75)


def test_text_of_no_interest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "quiet.log"
    start = write_log(tmp_path / "start.log", 0.5).read_bytes()
    path.write_bytes(start + write_quiet(tmp_path / "q.log", 3).read_bytes())
    _same(path, monkeypatch, share=0.8)


@pytest.mark.parametrize("engine", ["sglang", "vllm"])
@pytest.mark.parametrize("seed", range(4))
def test_with_faults_thrown_in(engine: str, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_log(tmp_path / "run.log", 2.5, engine, 2, seed)
    chance = random.Random(seed)
    path.write_text("".join(with_faults(path.read_text(), chance, 60)))
    _same(path, monkeypatch, share=0.4, block=chance.choice((300_000, 1 << 20, 1 << 23)))


def test_a_request_that_quotes_a_traceback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_log(tmp_path / "run.log", 2.5, "sglang", 1, 8)
    lines = path.read_text().splitlines(keepends=True)
    lines.insert(
        9000,
        f"{lines[9000][:21]} Receive: obj=GenerateReqInput(rid='ab', text='Traceback (most recent call last): x')\n",
    )
    path.write_text("".join(lines))
    _same(path, monkeypatch, share=0.4)


def test_a_second_start_in_the_middle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "two.log"
    path.write_bytes(
        b"".join(write_log(tmp_path / f"{seed}.log", 1.5, "sglang", 1, seed).read_bytes() for seed in (5, 6))
    )
    _same(path, monkeypatch, share=0.3)


def test_bytes_that_are_no_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_log(tmp_path / "run.log", 3, "sglang", 1, 7)
    data = path.read_bytes()
    path.write_bytes(data[:1_000_000] + b"\xff\xfe\n" + data[1_000_000:])
    _same(path, monkeypatch, share=0.1)


@pytest.mark.parametrize("engine", ["sglang", "vllm"])
def test_lines_that_end_in_two_characters(engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_log(tmp_path / "run.log", 2.5, engine, 2, 9)
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    _same(path, monkeypatch, share=0.6)


@pytest.mark.parametrize("engine", ["sglang", "vllm"])
def test_objects_of_a_container_runtime(engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_log(tmp_path / "run.log", 2.5, engine, 2, 10)
    chance = random.Random(10)
    lines = with_faults(path.read_text(), chance, 30)
    path.write_text("".join(as_objects(lines, chance)))
    _same(path, monkeypatch, share=0.3)


@pytest.mark.parametrize("engine", ["sglang", "vllm"])
@pytest.mark.parametrize("collector", sorted(COLLECTORS))
def test_behind_a_collector(engine: str, collector: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_log(tmp_path / "run.log", 2, engine, 2, 9)
    lines = with_faults(path.read_text(), random.Random(9), 20)
    path.write_text("".join(behind(collector, lines)))
    _same(path, monkeypatch, share=0.3)


def test_a_record_that_goes_on_under_its_header(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_log(tmp_path / "run.log", 2, "vllm", 1, 12)
    lines = path.read_text().splitlines(keepends=True)
    for at in range(3000, len(lines), 500):
        place = next(i for i in range(at, len(lines)) if "Avg prompt throughput" in lines[i])
        lines.insert(place, lines[place].partition("] ")[0] + "] Engine 000:\n")
    path.write_bytes("".join(lines).encode())
    _same(path, monkeypatch, share=0.5)


def test_statistics_of_two_versions_in_one_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = (
        "INFO 11-30 02:44:51 [metrics.py:486] Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: 14.{} "
        "tokens/s, Running: 4 reqs, Swapped: 0 reqs, Pending: 0 reqs, GPU KV cache usage: 0.1%, "
        "CPU KV cache usage: 0.0%."
    )
    new = (
        "INFO 11-30 02:44:51 [loggers.py:335] Engine 000: Avg prompt throughput: 8.0 tokens/s, Avg generation "
        "throughput: 32.{} tokens/s, Running: 1 reqs, Waiting: 0 reqs, "
        "GPU KV cache usage: 0.0%, Prefix cache hit rate: 0.0%"
    )
    path = tmp_path / "mixed.log"
    path.write_text("".join(f"{(old, new)[n % 3 > 1].format(n % 7)}\n" for n in range(12_000)))
    _same(path, monkeypatch, 0.4)
