"""Events of a stream: by columns or one by one, in pieces of any size, every event once and in its place."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from analyzer.event_lines import EventLines
from analyzer.event_stream import EventStream
from analyzer.events import Event
from analyzer.framing.record import Record
from analyzer.pipeline import Analysis
from analyzer.resources import data_dir
from benchmarks.generate import write_log

SAMPLES = sorted(data_dir("samples").glob("*/*.log"))
HOSTILE = (
    b'[2026-11-30 03:26:01] INFO:     10.0.0.1:43646 - "GET /v1/models?api_key=abcdef123456 HTTP/1.1" 200 OK\n'
    b'[2026-11-30 03:26:01] INFO:     10.0.0.1:43646 - "GET /a\\"b\\\\c HTTP/1.1" 200 OK\n'
    b'[2026-11-30 03:26:01] INFO:     10.0.0.1:43646 - "GET /\x1b[2J\xe2\x80\xae HTTP/1.1" 200 OK\n'
    b'[2026-11-30 03:26:01] INFO:     10.0.0.1:43646 - "GET /%s%d{0} HTTP/1.1" 200 OK\n'
)


def one_by_one(source: str, data: bytes) -> list[str]:
    """The events as the ordinary reader of a live input gives them."""
    lines: list[str] = []
    write = EventLines({"type": "event"}).line

    def take(record: Record, event: Event | None) -> None:
        if event is not None:
            lines.append(write(event))

    reader = Analysis(on_event=take).reader(source, live=True)
    reader.feed(data)
    reader.close()
    return lines


def streamed(source: str, data: bytes, size: int) -> list[str]:
    stream = EventStream(source, {"type": "event"}, live=True)
    texts = []
    for at in range(0, len(data), size):
        stream.feed(data[at : at + size])
        texts.append(stream.take())
    stream.close()
    texts.append(stream.take())
    return "".join(texts).splitlines()


@pytest.fixture(scope="module", params=["sglang", "vllm", "ranks", "hostile"])
def runtime(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A log whose serving part is long enough to go by columns."""
    engine = "vllm" if request.param == "vllm" else "sglang"
    path = tmp_path_factory.mktemp("log") / "x.log"
    data = write_log(path, 2.0, engine, ranks=3 if request.param == "ranks" else 1).read_bytes()
    if request.param != "hostile":
        return data
    lines = data.splitlines(keepends=True)
    for at in range(2000, len(lines), 500):
        lines[at] += HOSTILE
    return b"".join(lines)


@pytest.mark.parametrize("size", [4 << 20, 300_001, 70_000])
def test_by_columns_as_one_by_one(runtime: bytes, size: int) -> None:
    assert streamed("x", runtime, size) == one_by_one("x", runtime)


def test_columns_are_used(runtime: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    alone = []
    plain = EventLines.line
    monkeypatch.setattr(EventLines, "line", lambda self, event: alone.append(1) or plain(self, event))
    events = streamed("x", runtime, 4 << 20)
    assert len(alone) < len(events) / 4


def test_no_secret_and_nothing_that_is_no_json_comes_through() -> None:
    data = (data_dir("samples") / "sglang" / "wrapper_nospec.log").read_bytes() + HOSTILE * 2000
    events = streamed("x", data, 4 << 20)
    assert sum('"http_access"' in line for line in events) >= 6000
    for line in events:
        assert "abcdef123456" not in line
        assert line.isprintable()
        json.loads(line)


@pytest.mark.parametrize("path", SAMPLES, ids=lambda p: p.name)
def test_samples_in_small_pieces(path: Path) -> None:
    data = path.read_bytes()
    assert streamed(path.name, data, 1 << 13) == one_by_one(path.name, data)


def test_what_is_held_back_comes_when_the_input_falls_silent() -> None:
    stream = EventStream("x", live=True)
    stream.feed(b"[2026-11-30 03:24:48] Load weight begin. avail mem=139.13 GB\n")
    assert stream.take() == ""
    stream.flush()
    assert json.loads(stream.take())["kind"] == "load_weight_begin"
    assert stream.take() == ""
