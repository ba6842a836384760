"""A session that is asked while lines arrive."""

from __future__ import annotations

import time

import pytest

from analyzer.live import session as module
from analyzer.live.session import Session
from analyzer.resources import data_dir

HEAD = b"[2026-01-01 10:00:00] server_args=ServerArgs(model_path='/m', context_length=None)\n"
BEGUN = (
    b"[2026-01-01 10:00:05] Scheduler hit an exception: Traceback (most recent call last):\n"
    b'  File "/x/sglang/srt/managers/scheduler.py", line 10, in run_scheduler_process\n'
    b"    scheduler = Scheduler()\n"
)
SAMPLE = data_dir("samples") / "sglang" / "wrapper_nextn.log"
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


def test_what_comes_all_the_time_is_judged_in_its_turn() -> None:
    session, judged = Session(), []
    session.feed("x", HEAD)
    text = b"KV cache pool is full. Retract requests. #retracted_reqs: 1, #new_token_ratio: 0.2 -> 0.9"
    line = b"[2026-11-30 03:26:01] " + text + b"\n"
    for _ in range(2 * module.OFTEN):
        session._judged -= module.SOON
        session.feed("x", line)
        session.silent()
        list(session.notices())
        judged.append(not session._dirty)
    assert all(judged[: module.OFTEN])
    assert sum(judged[module.OFTEN :]) < module.OFTEN / 2


def test_a_finding_that_later_lines_refute_is_taken_back() -> None:
    lines = SAMPLE.read_bytes().splitlines(keepends=True)
    session = Session()
    notices = []
    for part in (lines[:50], lines[50:]):  # the draft's own vocabulary is shown by what comes later
        session.feed("x", b"".join(part))
        session.silent()
        session._judged = 0.0
        notices.append([(n.rule, n.withdrawn) for n in session.notices()])
    assert ("KV011", False) in notices[0]
    assert ("KV011", True) in notices[1]
    assert ("KV010", False) in notices[1]


def test_a_line_without_a_successor_is_judged() -> None:
    session = Session()
    session.feed("x", HEAD)
    session.silent()
    assert any(notice.text.startswith("outcome") for notice in session.notices())
