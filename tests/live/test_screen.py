"""The live screen: everything of interest within the terminal, however small, and nothing left behind."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.console import Console

from analyzer.live.screen import Screen
from analyzer.live.session import Notice, Session

SAMPLE = Path(__file__).parents[2] / "samples" / "sglang" / "wrapper_nextn.log"


@pytest.fixture(scope="module")
def session() -> Session:
    followed = Session()
    followed.feed("x.log", SAMPLE.read_bytes())
    followed.silent()
    list(followed.notices())
    return followed


def page(session: Session, monkeypatch: pytest.MonkeyPatch, width: int, height: int, notices: list[Notice]) -> str:
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("LINES", str(height))
    screen = Screen(io.StringIO())
    try:
        for notice in notices:
            screen.notice(notice)
        console = Console(file=io.StringIO(), width=width, height=height)
        with console.capture() as captured:
            console.print(screen._page(session))
        return captured.get()
    finally:
        screen.close()


NOTICES = [Notice(1, "the pool is small", "critical", 45, "KV002")] + [
    Notice(1, f"choice {n}, " + "told at length " * 20, "info") for n in range(20)
]


@pytest.mark.parametrize(("width", "height"), [(120, 40), (80, 24), (48, 22), (30, 12)])
def test_it_fits_and_keeps_what_is_grave(
    session: Session, monkeypatch: pytest.MonkeyPatch, width: int, height: int
) -> None:
    lines = page(session, monkeypatch, width, height, NOTICES).splitlines()
    assert len(lines) <= height
    assert all(cell_len(line) <= width for line in lines)
    assert any("KV002" in line for line in lines)
    assert any("choice 19" in line for line in lines)
    assert any("774,081" in line for line in lines)


def test_a_wide_screen_holds_stages_ledger_and_load(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    text = page(session, monkeypatch, 120, 40, [])
    for part in ("● weights", "● serving", "weights, draft", "5.53 GiB", "accept length", "state usage"):
        assert part in text
    assert "time  " not in text


def test_progress_of_a_bar_that_has_no_line_end_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    following = Session()
    following.feed("x", b"[2026-01-01 10:00:00] server_args=ServerArgs(model_path='/m', context_length=None)\n")
    assert following.progress == ""
    following.feed("x", b"\rCapturing batches (bs=16 avail_mem=70.1 GB):  38%|###  | 20/52 [00:02<00:03]")
    assert "38%" in following.progress
    following.feed("x", b"\rLoading safetensors checkpoint shards: 100% Completed | 4/4\n")
    assert following.progress == ""
