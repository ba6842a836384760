"""A cursor reads figures as ``int`` and ``float`` do, and refuses what is none."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.bulk.cursor import MOST_DIGITS, Cursor, Windows

_WORDS = st.text(alphabet="0123456789.+-eE ,a\x00/:", max_size=20)


def _cursor(lines: list[str]) -> tuple[Cursor, np.ndarray, np.ndarray]:
    data = "".join(f"{line}\n" for line in lines).encode()
    lengths = np.array([len(line) + 1 for line in lines], np.int64)
    ends = np.cumsum(lengths)
    return Cursor(Windows(data), ends - lengths), ends - lengths, ends - 1


@given(st.lists(_WORDS, min_size=1, max_size=8))
def test_whole_numbers(lines: list[str]) -> None:
    cursor, _, ends = _cursor(lines)
    values = cursor.whole()
    cursor.end(ends)
    for line, good, value in zip(lines, cursor.good(), values, strict=True):
        assert good == bool(re.fullmatch("[0-9]{1,15}", line)), line
        if good:
            assert value == int(line)


@given(st.lists(_WORDS | st.from_regex(r"[0-9]{1,8}\.[0-9]{1,8}", fullmatch=True), min_size=1, max_size=8))
def test_decimal_figures(lines: list[str]) -> None:
    cursor, _, ends = _cursor(lines)
    values = cursor.decimal()
    cursor.end(ends)
    most = MOST_DIGITS
    for line, good, value in zip(lines, cursor.good(), values, strict=True):
        assert good == bool(re.fullmatch(rf"[0-9]{{1,{most}}}\.[0-9]{{1,{most}}}", line)), line
        if good:
            assert value == float(line), line


@given(st.lists(st.sampled_from(["True", "False", "Tru", "true", "Falsey", "Trues", ""]), min_size=1, max_size=6))
def test_truths(lines: list[str]) -> None:
    cursor, _, ends = _cursor(lines)
    values = cursor.truth()
    cursor.end(ends)
    assert cursor.good().tolist() == [line in ("True", "False") for line in lines]
    assert [bool(v) for v, line in zip(values, lines, strict=True) if line == "True"] == [True] * lines.count("True")


@pytest.mark.parametrize("length", [1, 7, 8, 9, 15, 16, 17, 40])
def test_every_byte_of_a_fixed_text_counts(length: int) -> None:
    text = bytes(0 if at % 3 == 1 else 97 + at % 26 for at in range(length))
    line = "".join(chr(char) if char else "5" for char in text)
    others = [line[:at] + ("x" if line[at] == "5" else "~") + line[at + 1 :] for at in range(length)]
    cursor, _, ends = _cursor([line, *others])
    cursor.fixed(text)
    cursor.end(ends)
    assert cursor.good().tolist() == [True, *[False] * length]


def test_the_end_of_the_data_is_no_figure() -> None:
    cursor = Cursor(Windows(b"12"), np.array([0, 2], np.int64))
    assert cursor.whole()[0] == 12
    assert cursor.good().tolist() == [True, False]


@given(st.lists(st.text("0123456789.:/ -x\n", max_size=30), min_size=1, max_size=40))
def test_dotted_goes_as_far_as_digits_and_points(texts: list[str]) -> None:
    data = "\0".join(texts).encode() + b"\0"
    places = np.cumsum([0, *(len(text) + 1 for text in texts[:-1])])
    cursor = Cursor(Windows(data), places)
    cursor.dotted()
    widths = [re.match(r"[0-9.]*", text).end() for text in texts]  # type: ignore[union-attr]
    assert cursor.good().tolist() == [0 < width < 24 for width in widths]
    moved = (cursor.places - places)[cursor.good()].tolist()
    assert moved == [width for width in widths if 0 < width < 24]
