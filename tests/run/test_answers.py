"""Requests that failed inside the server, where nothing in the log says why."""

from __future__ import annotations

import pytest

from analyzer.parsing import default_catalog
from analyzer.pipeline import Analysis
from analyzer.run import answers

FAILED = '(APIServer pid=1) INFO:     10.0.0.1:5001 - "POST /v1/chat/completions HTTP/1.1" 500 Internal Server Error\n'
STOP = "(APIServer pid=1) INFO:     Shutting down\n"


def _count(log: str) -> object:
    analysis = Analysis()
    reader = analysis.reader("x.log")
    reader.feed(log.encode())
    reader.close()
    (run,) = analysis.runs()
    return run.facts.value("requests.failed_unexplained")


def test_answers_without_an_error() -> None:
    assert _count(3 * FAILED + STOP) == 3


@pytest.mark.parametrize(
    "log",
    [
        FAILED.replace("500 Internal Server Error", "400 Bad Request") + STOP,
        FAILED.replace("POST /v1/chat/completions", "GET /health").replace("500", "503") + STOP,
        'Traceback (most recent call last):\n  File "/x/core.py", line 1, in f\nValueError: x\n' + FAILED + STOP,
        "(APIServer pid=1) ERROR 09-12 10:00:00 [serving.py:1] Something of the server broke\n" + FAILED + STOP,
        FAILED.replace("500 Internal Server Error", "503 Service Unavailable") + STOP,
        FAILED.replace("500 Internal Server Error", "501 Not Implemented") + STOP,
        "[2026-03-03 10:05:00 TP0] retract_decode: aborted last request c5 due to OOM\n" + FAILED + STOP,
        "(EngineCore_DP0 pid=7) ERROR 09-12 10:00:00 [nixl_connector.py:1] Handshake failed for request chatcmpl-12\n"
        + FAILED
        + STOP,
    ],
)
def test_what_is_no_mystery(log: str) -> None:
    assert _count(log) is None


def test_the_lines_that_tell_are_in_the_grammars() -> None:
    assert {shape.kind for shape in default_catalog().shapes} >= answers._TOLD
