"""Broken, joined and shuffled real logs, in any pieces: one report, whole JSON, and valid lines of events."""

from __future__ import annotations

import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzer.listing import list_events, list_unrecognised
from analyzer.run.fold import RunFolder
from tests.fuzz.test_program import LOGS, analyse, budget, document, mutated

ROOT = Path(__file__).resolve().parents[2]


def hostile_log(seed: int) -> bytes:
    """One to three mutated logs, one after the other, cut at a random place."""
    chance = random.Random(seed)
    parts = [mutated(chance.choice(LOGS).read_bytes()[:60_000], chance) for _ in range(chance.randrange(1, 4))]
    data = chance.choice((b"", b"\n", b"\r\n", b"\0", b"\xff\xfe")).join(parts)
    return data[: chance.randrange(len(data) + 1)]


def pieces_of(data: bytes, seed: int) -> list[bytes]:
    chance = random.Random(seed)
    cuts = sorted(chance.randrange(len(data) + 1) for _ in range(chance.randrange(1, 60)))
    return [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True)]


@settings(max_examples=budget(12))
@given(st.integers(0, 2**32), st.integers(0, 2**32))
def test_pieces_of_a_broken_log_give_one_report(seed: int, cuts: int) -> None:
    data = hostile_log(seed)
    assert document(analyse(pieces_of(data, cuts))) == document(analyse([data]))


@settings(max_examples=budget(60))
@given(st.binary(max_size=600), st.integers(0, 2**32))
def test_pieces_of_any_bytes_give_one_report(data: bytes, cuts: int) -> None:
    data = data + b"\n" + data[::-1]
    assert document(analyse(pieces_of(data, cuts))) == document(analyse([data]))


@settings(max_examples=budget(12))
@given(st.integers(0, 2**32))
def test_every_line_of_events_is_json(seed: int) -> None:
    def no_constant(name: str) -> None:
        raise AssertionError(name)

    with tempfile.NamedTemporaryFile(suffix=".log") as file:
        file.write(hostile_log(seed))
        file.flush()
        for line in (*list_events([file.name], "jsonl"), *list_unrecognised([file.name], "jsonl")):
            assert isinstance(json.loads(line, parse_constant=no_constant), (dict, str))


START = "[2026-11-30 02:58:11] server_args=ServerArgs(model_path='/m', mem_fraction_static=0.8, tp_size=1)\n"
MANY = {
    "ranks": "[2026-11-30 02:58:37 TP{i}] KV Cache is allocated. dtype: torch.bfloat16, #tokens: {i}, K size: 2.99 GB, "
    "V size: 2.99 GB\n",
    "loading ranks": "[2026-11-30 02:58:37 TP{i}] Load weight begin. avail mem=79.13 GB\n",
    "pids": "(EngineCore pid={i}) INFO 11-30 02:58:37 [core.py:1] GPU KV cache size: {i} tokens\n",
    "streams": "svc-{i}  | [2026-11-30 02:58:37] Load weight begin. avail mem=79.13 GB\n",
    "starts": START + "[2026-11-30 02:58:35] Load weight begin. avail mem=79.13 GB\n",
    "unknown lines": "ERROR number{i}x of {i}y went wrong\n",
    "tracebacks": 'Traceback (most recent call last):\n  File "/x/{i}.py", line {i}, in f\n    g()\nValueError: {i}\n',
    "long traceback": '  File "/x/a{i}.py", line {i}, in f{i}\n    g()\n',
    "arguments": "server_args=ServerArgs(a{i}={i})\n",
}
PROGRAM = """
import sys
from analyzer.pipeline import Analysis
from analyzer.report import render
analysis = Analysis()
reader = analysis.reader("x.log")
while chunk := sys.stdin.buffer.read(1 << 18):
    reader.feed(chunk)
reader.close()
text = render(analysis.report(), "json")
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))  # ru_maxrss is the parent's, too
print(len(text), int(peak.split()[1]) // 1024)
"""


def cost(pattern: str, count: int) -> tuple[int, int, float]:
    """Length of the JSON report, megabytes and CPU seconds of a log with ``count`` different lines of one kind."""
    text = "".join([START, *(pattern.replace("{i}", str(i)) for i in range(count))])
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], input=text.encode(), capture_output=True, cwd=ROOT, check=True, timeout=600
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    length, megabytes = map(int, done.stdout.split())
    return length, megabytes, after.ru_utime - before.ru_utime


@pytest.mark.parametrize("kind", ["ranks", "loading ranks", "pids", "unknown lines", "tracebacks"])
def test_thirty_thousand_of_a_kind(kind: str) -> None:
    length, megabytes, seconds = cost(MANY[kind], 30_000)
    assert megabytes < 300
    assert seconds < 12
    assert length < 5_000_000


@pytest.mark.slow
@pytest.mark.parametrize("kind", MANY)
def test_a_million_of_a_kind(kind: str, request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--hypothesis-profile") != "long":
        pytest.skip("only in make fuzz")
    _, megabytes, seconds = cost(MANY[kind], 1_000_000)
    assert megabytes < 1_000
    assert seconds < 300


def test_the_last_run_is_kept_beyond_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("analyzer.run.fold._MOST_RUNS", 5)
    report = analyse([MANY["starts"].replace("/m", f"/m{i}").encode() for i in range(9)])
    assert [run.facts["args.model_path"].value for run in report.runs] == ["/m0", "/m1", "/m2", "/m3", "/m8"]
    assert "4 more runs" in " ".join(report.runs[-1].notes)
    assert RunFolder().runs() == []


def test_time_grows_with_the_length_and_not_its_square() -> None:
    for pattern in (MANY[kind] for kind in MANY if kind not in ("starts", "streams")):
        times = []
        for count in (300, 2_400):
            text = "".join([START, *(pattern.replace("{i}", str(i)) for i in range(count))]).encode()
            started = time.process_time()
            analyse([text])
            times.append(time.process_time() - started)
        assert times[1] < 14 * times[0] + 0.5, (pattern, times)
