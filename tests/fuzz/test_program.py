"""The whole program on bytes that nobody meant: mutated real logs, any cuts, hostile text. It must answer, not fall."""

from __future__ import annotations

import json
import random
import tracemalloc
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzer.pipeline import Analysis
from analyzer.report import FORMATS, render, to_json
from analyzer.report.model import Report
from analyzer.resources import data_dir

LOGS = sorted(data_dir("samples").rglob("*.log"))
NUMBERS = (b"0", b"-1", b"nan", b"inf", b"99999999999999999999", b"1e308", b"0.00")
HOSTILE = (
    b"\x1b]0;owned\x07 \x1b[31m <script>alert(1)</script> \xe2\x80\xae gpj.exe "
    b"hf_abcdefghijklmnopqrstuvwxyz012345 [x](javascript:1)"
)


def budget(examples: int) -> int:
    """``examples`` in a quick run, in proportion more under another profile."""
    return max(1, examples * settings.default.max_examples // 100)


def analyse(chunks: Sequence[bytes]) -> Report:
    analysis = Analysis()
    reader = analysis.reader("x.log")
    for chunk in chunks:
        reader.feed(chunk)
    reader.close()
    return analysis.report()


def document(report: Report) -> str:
    report.seconds = 0.0
    return json.dumps(to_json(report), sort_keys=True)


def mutated(data: bytes, chance: random.Random) -> bytes:
    """A log with some lines gone, doubled, moved, cut, or with other numbers in them."""
    lines = data.split(b"\n")
    for _ in range(chance.randrange(1, 12)):
        where = chance.randrange(len(lines))
        kind = chance.randrange(6)
        if kind == 0:
            del lines[where : where + chance.randrange(1, 20)]
        elif kind == 1:
            lines.insert(chance.randrange(len(lines) + 1), lines[where])
        elif kind == 2:
            lines[where] = lines[where][: chance.randrange(len(lines[where]) + 1)]
        elif kind == 3:
            words = lines[where].split(b"=")
            words[chance.randrange(len(words))] = chance.choice(NUMBERS) + b","
            lines[where] = b"=".join(words)
        elif kind == 4:
            lines[where] = HOSTILE + lines[where]
        else:
            chance.shuffle(lines)
        lines = lines or [b""]
    return b"\n".join(lines)


@settings(max_examples=budget(40))
@given(st.integers(0, 2**32))
def test_mutated_logs_give_a_report_in_every_format(seed: int) -> None:
    chance = random.Random(seed)
    report = analyse([mutated(chance.choice(LOGS).read_bytes(), chance)])
    for name in FORMATS:
        text = render(report, name)
        assert "\x1b" not in text, name
        assert "\u202e" not in text, name
        assert "hf_abcdefghijklmnopqrstuvwxyz012345" not in text, name
    assert "<script>alert" not in render(report, "html")


@settings(max_examples=budget(60))
@given(st.binary(max_size=4000))
def test_any_bytes(data: bytes) -> None:
    render(analyse([data]), "text")


@settings(max_examples=budget(15))
@given(st.integers(0, 2**32))
def test_the_report_does_not_depend_on_the_cuts(seed: int) -> None:
    chance = random.Random(seed)
    data = chance.choice(LOGS).read_bytes()
    cuts = sorted(chance.randrange(len(data)) for _ in range(chance.randrange(1, 30)))
    pieces = [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True)]
    assert document(analyse(pieces)) == document(analyse([data]))


@pytest.mark.parametrize(
    "line",
    [
        b"x" * 100_000_000,
        b"[2026-11-30 03:24:48] server_args=ServerArgs(" + b"a=(" * 3_000_000,
        b"[2026-11-30 03:24:48 TP0] " + b"KV Cache is allocated. #tokens: " * 1_000_000,
    ],
    ids=["one long word", "a deep dump", "a repeated beginning"],
)
def test_a_line_without_end_stays_in_bounds(line: bytes) -> None:
    tracemalloc.start()
    try:
        report = analyse([line[i : i + (1 << 20)] for i in range(0, len(line), 1 << 20)])
        assert tracemalloc.get_traced_memory()[1] < 200e6
    finally:
        tracemalloc.stop()
    assert report.inputs[0].bytes == len(line)


def test_a_great_many_ranks_stay_in_bounds() -> None:
    lines = [
        b"[2026-11-30 03:24:48 TP%d] Decode batch, #running-req: 1, #token: 9, token usage: 0.01, cuda graph: True, "
        b"gen throughput (token/s): 1.0, #queue-req: 0\n" % n
        for n in range(50_000)
    ]
    tracemalloc.start()
    try:
        report = analyse([b"".join(lines)])
        assert tracemalloc.get_traced_memory()[1] < 300e6
    finally:
        tracemalloc.stop()
    assert len(render(report, "json")) < 5_000_000


def test_a_great_many_tracebacks_stay_in_bounds() -> None:
    one = (
        b"[2026-11-30 03:24:48] Scheduler hit an exception: Traceback (most recent call last):\n"
        b'  File "/sgl/scheduler.py", line 7, in f\n    g()\nValueError: %d\n\n'
    )
    report = analyse([one % n for n in range(20_000)])
    assert report.runs
    assert len(render(report, "json")) < 5_000_000


def test_no_code_is_run_from_data() -> None:
    """Nothing in the package evaluates, unpickles or starts a shell."""
    import ast

    forbidden = {"eval", "exec", "system", "popen", "unpickle"}
    for path in (Path(__file__).resolve().parents[2] / "analyzer").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                assert not {a.name.split(".")[0] for a in node.names} & {"pickle", "subprocess", "marshal"}, path
            if isinstance(node, ast.ImportFrom):
                assert (node.module or "").split(".")[0] not in {"pickle", "subprocess", "marshal"}, path
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in forbidden, f"{path}:{node.lineno}"


def test_no_network_unless_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    import socket

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a network call")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "create_connection", refuse)
    for log in LOGS[:4]:
        render(analyse([log.read_bytes()]), "html")
