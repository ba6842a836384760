"""Headers of SGLang that are not the usual one: ranks without a time, and the source line behind the stamp."""

from __future__ import annotations

import pytest

from analyzer.framing import frame
from analyzer.framing.record import Record


def only(text: str) -> Record:
    (record,) = frame([text.encode()], "x.log")
    return record


@pytest.mark.parametrize("rank", ["TP0", "TP5 EP5", "DP0 TP1 EP1", "PP1 TP0", "ATTN_TP3"])
def test_ranks_in_brackets_alone_are_a_header(rank: str) -> None:
    record = only(f"[{rank}] Memory pool end. avail mem=3.39 GB\n")
    assert (record.rank, record.text, record.form) == (rank, "Memory pool end. avail mem=3.39 GB", "log")


@pytest.mark.parametrize("text", ["[H100] eight of them", "[TP] x", "[rank0] x", "[TP0, TP1] x", "[1] x"])
def test_other_brackets_are_text(text: str) -> None:
    record = only(text + "\n")
    assert (record.rank, record.text) == ("", text)


def test_the_source_line_behind_sglangs_stamp_is_no_text() -> None:
    record = only("[2025-11-11 15:55:06] WARNING model_config.py:707: mxfp4 quantization is slow\n")
    assert (record.level, record.text, record.module) == ("WARNING", "mxfp4 quantization is slow", "")
    assert record.stamp == "2025-11-11 15:55:06"


@pytest.mark.parametrize("between", ["- ERROR - ", "- sglang.srt.scheduler - ERROR - "])
def test_dashes_of_a_formatter_go_with_its_time(between: str) -> None:
    record = only(f"2025-07-15 17:47:33 {between}Watchdog timeout\n")
    assert (record.text, record.stamp) == ("Watchdog timeout", "2025-07-15 17:47:33")


def test_a_dash_alone_is_text() -> None:
    assert only("2025-07-15 17:47:33 - ready\n").text == "- ready"
