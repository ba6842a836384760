"""Requests that failed inside the server, where nothing in the log says why."""

from __future__ import annotations

import pytest

from analyzer.pipeline import Analysis

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
    ],
)
def test_what_is_no_mystery(log: str) -> None:
    assert _count(log) is None
