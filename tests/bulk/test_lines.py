"""Where lines stand in a block of bytes, and what is found in all of them at once."""

from __future__ import annotations

import numpy as np
import pytest

from analyzer.bulk.cursor import Cursor
from analyzer.bulk.heads import Heads
from analyzer.bulk.lines import Lines, pieces

STAMP = "[2026-09-12 10:00:00"


def _lines(*texts: str) -> Lines:
    lines = Lines.of("".join(f"{text}\n" for text in texts).encode())
    assert lines is not None
    return lines


@pytest.mark.parametrize("texts", [["a", "", "bc", ""], ["\r", "\ufeffx", "a\x01b"], ["ä\u2028b", "c"]])
def test_every_line_as_it_is(texts: list[str]) -> None:
    lines = _lines(*texts)
    assert [lines[row] for row in range(len(lines))] == texts
    assert lines.column.to_list() == texts
    assert _lines(*texts, *["x"] * 100).texts(np.asarray([1, 0])).to_list() == [texts[1], texts[0]]
    assert lines.data(0, len(lines)) == "".join(f"{text}\n" for text in texts).encode()


def test_bytes_that_are_no_text_have_no_lines() -> None:
    assert Lines.of(b"a\n\xff\n") is None


def test_pieces_put_together_are_the_text() -> None:
    data = b"".join(b"%d\n" % number * (number % 50) for number in range(3000))
    parts = [data[begin:end] for begin, end in pieces(data)]
    assert len(parts) > 1
    assert b"".join(parts) == data
    assert all(part.endswith(b"\n") for part in parts)


def test_what_lines_hold_is_found_in_whichever_piece_they_are() -> None:
    texts = [f"{number} filler" for number in range(40_000)]
    texts[3] = "äöü\u2028"  # more bytes than characters
    texts[7] = texts[39_999] = "a key in it"
    texts[20_000], texts[20_001] = "ends so:", "[ a \x1b control"
    lines = _lines(*texts)
    assert np.flatnonzero(lines.holding(["key", "trol"])).tolist() == [7, 20_001, 39_999]
    assert not lines.holding(["absent"]).any()
    assert np.flatnonzero(lines.with_controls()).tolist() == [20_001]
    near = np.flatnonzero(lines.near("control"))
    assert near[0] < 20_001 < near[-1]
    assert 0 < len(near) < len(texts) // 3
    assert np.flatnonzero(lines.end_with(":")).tolist() == [20_000]
    assert np.flatnonzero(lines.begin_with("[")).tolist() == [20_001]
    assert lines.hold("@", "\x1b")
    assert not lines.hold("@")


def test_an_empty_line_neither_begins_nor_ends_with_anything() -> None:
    lines = _lines("a:", "", "[", "")
    assert lines.end_with(":").tolist() == [True, False, False, False]
    assert lines.begin_with("[").tolist() == [False, False, True, False]


def test_where_the_bracket_closes_behind_a_stamp() -> None:
    tags = ["", " TP0", " DP10 TP10 EP10", " A" * 31, " A" * 40]
    lines = _lines(*(f"{STAMP}{tag}] x]" for tag in tags), STAMP, "short", "")
    widths = (lines.closings - lines.starts).tolist()
    assert widths == [20, 24, 35, 82, 0, 0, 0, 0]


PLAIN = [
    f"{STAMP}] a", f"{STAMP} TP0] a", "INFO:     a", "(APIServer pid=3) INFO 09-12 10:00:00 [loggers.py:248] a",
    "WARNING 09-12 10:00:00 [x.py:1] a",
]  # fmt: skip
OTHERS = [f"{STAMP}]  a", f"{STAMP}]", f"{STAMP} tp0] a", "", "text", "Traceback (most recent call last):", "INFO:"]


def test_plain_lines_are_told_from_others_however_many_there_are_of_each() -> None:
    texts = [*PLAIN, *OTHERS] * 50 + [text.replace("10:00", "11:11") for text in PLAIN] * 2000
    lines = _lines(*texts)
    heads = Heads()
    for _ in range(2):  # the second time, the beginnings are known
        plain = heads.plain(lines, np.arange(len(lines)))
        assert plain[: 50 * 12].tolist() == [*[True] * len(PLAIN), *[False] * len(OTHERS)] * 50
        assert plain[50 * 12 :].all()
    assert heads.plain(lines, np.asarray([7, 0, 5])).tolist() == [False, True, False]


def test_a_printable_character_is_asked_for() -> None:
    lines = _lines("a", " ", "~", "\x7f", "")
    cursor = Cursor(lines.windows, lines.starts)
    cursor.printable()
    assert cursor.good().tolist() == [True, False, True, False, False]
