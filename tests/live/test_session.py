"""A session that is asked while lines arrive."""

from __future__ import annotations

import time

import pytest

from analyzer.live import session as module
from analyzer.live.session import Session

HEAD = b"[2026-01-01 10:00:00] server_args=ServerArgs(model_path='/m', context_length=None)\n"
BEGUN = (
    b"[2026-01-01 10:00:05] Scheduler hit an exception: Traceback (most recent call last):\n"
    b'  File "/x/sglang/srt/managers/scheduler.py", line 10, in run_scheduler_process\n'
    b"    scheduler = Scheduler()\n"
)
REST = b"RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.\n\n"


def said(session: Session) -> list[str]:
    return [notice.text for notice in session.notices()]


def test_a_traceback_that_pauses_stays_one() -> None:
    session = Session()
    session.feed("x", HEAD)
    session.silent()
    assert said(session)
    session.feed("x", BEGUN)
    time.sleep(module.SOON)
    session.silent()
    assert said(session) == []
    session.feed("x", REST)
    session.silent()
    assert any("Not enough memory" in text for text in said(session))


def test_a_traceback_that_never_ends_is_not_kept_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BETWEEN", -1.0)
    session = Session()
    session.feed("x", HEAD + BEGUN)
    session.silent()
    assert not session._readers["x"].framer.unfinished


def test_a_line_without_a_successor_is_judged() -> None:
    session = Session()
    session.feed("x", HEAD)
    session.silent()
    assert any(notice.text.startswith("outcome") for notice in session.notices())
