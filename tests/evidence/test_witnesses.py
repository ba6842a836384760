"""Witnesses that fail: files are refused before a log is read, a network that fails costs its facts only."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from analyzer.errors import UserError
from analyzer.evidence.http import ask, within
from analyzer.evidence.prometheus import Silent, prometheus_facts
from analyzer.evidence.witnesses import reader_of
from analyzer.run.model import Run
from tests.evidence.test_metrics import AFTER, BEFORE
from tests.support.server import serve

RUN = Run(1, "x.log", 1, 9, engine="vllm")
EMPTY = '{"status": "success", "data": {"resultType": "vector", "result": []}}'


@contextmanager
def dripping(head: bytes) -> Iterator[str]:
    """A server whose answer never ends: a byte each 50 ms, so that no wait for one byte is long."""
    end = threading.Event()

    def answer(connection: socket.socket) -> None:
        with connection:
            try:
                connection.recv(65536)
                connection.sendall(head)
                while not end.wait(0.05):
                    connection.sendall(b" ")
            except OSError:
                pass

    def accept() -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            threading.Thread(target=answer, args=(connection,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=accept, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.getsockname()[1]}"
        finally:
            end.set()
            server.shutdown(socket.SHUT_RDWR)


BODY = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n"


@pytest.mark.parametrize("head", [BODY, b"HTTP/1.1 200 OK\r\nX-Long:"], ids=["body", "head"])
def test_an_answer_that_never_ends(head: bytes) -> None:
    with dripping(head) as url:
        begun = time.monotonic()
        with pytest.raises(Silent, match="does not answer: no answer in 1 s"):
            prometheus_facts(url, seconds=0.6)
        answer = ask(url, timeout=0.3)
        assert time.monotonic() - begun < 10
    assert answer.status in (0, 200)
    assert "in 0.3 s" in answer.error


def test_one_that_failed_is_asked_once() -> None:
    asked = []

    def answer() -> tuple[int, str]:
        asked.append(1)
        return 503, "down"

    with serve({"*": answer}) as url:
        witnesses = reader_of(prometheus=url)
        for number in range(1, 5):
            assert witnesses(Run(number, "x.log", 1, 9, engine="vllm")) == []
        assert witnesses(RUN) == []
    assert len(asked) <= 2  # the client's own retries are off
    (said,) = witnesses.missing
    assert said.startswith(f"The metrics could not be had: the Prometheus at {url} answers 503")
    assert "--metrics FILE" in said


def test_a_range_without_series_does_not_speak_for_the_next() -> None:
    asked = []

    def answer() -> tuple[int, str]:
        asked.append(1)
        return 200, EMPTY

    with serve({"*": answer}) as url:
        witnesses = reader_of(prometheus=url)
        assert witnesses(RUN) == []
        first = len(asked)
        assert witnesses(Run(2, "x.log", 10, 19, engine="vllm")) == []
    assert len(asked) == 2 * first
    assert len(witnesses.missing) == 1
    assert "is the server scraped?" in witnesses.missing[0]


def test_a_slow_one_is_given_up_for_the_whole_log(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each answer comes in time, all of them for thirty runs would take an hour."""
    monkeypatch.setattr("analyzer.evidence.witnesses.IN_ALL", 0.5)
    full = '{"status": "success", "data": {"resultType": "vector", "result": [{"metric": {}, "value": [1, "2"]}]}}'

    def answer() -> tuple[int, str]:
        time.sleep(0.01)
        return 200, full

    begun, had = time.monotonic(), 0
    with serve({"*": answer}) as url:
        witnesses = reader_of(prometheus=url)
        for number in range(30):
            had += bool(witnesses(Run(number, "x.log", 1, 9, engine="vllm")))
    assert time.monotonic() - begun < 4
    assert 0 < had < 29
    (said,) = witnesses.missing
    assert "for the runs before run" in said or "does not answer" in said


def test_what_answers_counts_beside_what_does_not(tmp_path: Path) -> None:
    saved = tmp_path / "before.txt"
    saved.write_text(BEFORE)
    with serve({"/metrics": (200, AFTER)}) as url:
        both = reader_of(metrics=[str(saved), url])
        risen = {f.name: f.value for f in both(RUN)}
    dead = reader_of(metrics=[str(saved), "http://127.0.0.1:9"], prometheus="http://127.0.0.1:9")
    alone = {f.name: f.value for f in dead(RUN)}
    assert risen["metrics.drafted"] == 54
    assert alone["metrics.blocks"] == 131072
    assert both.missing == []
    assert len(dead.missing) == 2


def test_files_are_refused_before_anything_is_read(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("no metrics\n")
    for name in ("x", "none"):
        with pytest.raises(UserError) as error:
            reader_of(metrics=[str(tmp_path / name)])
        assert error.value.status == 3
    with pytest.raises(UserError, match="no nvidia-smi text"):
        reader_of(nvidia_smi=tmp_path / "x")


def test_within_gives_back_what_comes() -> None:
    assert within(5, lambda: 7) == 7
    with pytest.raises(KeyError):
        within(5, lambda: {"a": 1}["b"])
    with pytest.raises(TimeoutError):
        within(0.05, lambda: time.sleep(1))
