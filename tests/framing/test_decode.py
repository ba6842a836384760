"""Bytes to cleaned physical lines."""

from __future__ import annotations

import html
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.framing import Framer
from analyzer.framing.decode import HEAD, TAIL, LineReader
from tests.framing.support import cut, framed, texts


@given(st.binary(max_size=300), st.lists(st.integers(0, 300), max_size=6))
def test_any_bytes_in_any_chunks(data: bytes, places: list[int]) -> None:
    whole = LineReader()
    lines = whole.feed(data) + whole.close()
    pieces = LineReader()
    found = [line for piece in cut(data, places) for line in pieces.feed(piece)] + pieces.close()
    assert found == lines
    assert len(lines) == data.count(b"\n") + (0 if data.endswith(b"\n") or not data else 1)


def test_invalid_utf8_stays_visible() -> None:
    assert texts(b"a\xff\xe2\x82b \xe2\x82\xac\n") == ["a\\xff\\xe2\\x82b €"]


def test_ansi_real_and_as_pasted() -> None:
    line = "(APIServer pid=1) INFO 09-12 10:00:00 [core.py:59] text"
    for painted in (
        line.replace("(APIServer pid=1)", "\x1b[1;36m(APIServer pid=1)\x1b[0;0m").replace(
            "INFO", "\x1b[32mINFO\x1b[0m"
        ),
        line.replace("(APIServer pid=1)", "^[[36m(APIServer pid=1)^[[0m"),
        line.replace("(APIServer pid=1)", "[36m(APIServer pid=1)[0m"),
        line.replace("(APIServer pid=1)", "[[36m(APIServer pid=1)^[[0m"),
        "\x1b]0;title\x07" + line,
    ):
        (record,) = framed(painted + "\n")
        assert (record.text, record.process, record.level) == ("text", "APIServer", "INFO")


def test_lists_of_numbers_are_no_colours() -> None:
    assert texts("sizes [36] and [1;2], seen [5m ago]\n") == ["sizes [36] and [1;2], seen [5m ago]"]


def test_nul_and_byte_order_mark() -> None:
    assert texts(b"\xef\xbb\xbf\0\0\0[2026-11-30 02:55:49] a\0b\n") == ["ab"]


def test_a_line_without_end_is_bounded() -> None:
    size = 8 << 20
    tracemalloc.start()
    framer = Framer("log")
    for _ in range(size // 4096):
        assert framer.feed(b"x" * 4096) == []
    (record,) = framer.close()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert f"[… {size - HEAD - TAIL} bytes left out]" in record.text
    assert peak < 4 << 20


def test_the_end_of_a_long_line_survives() -> None:
    data = b"\0" * (1 << 20) + b"\r  0%|  | 0/4 [00:00<?, ?it/s]" * 9000 + b"\r[2026-11-30 02:55:49] at the end\nnext\n"
    whole = framed(data)
    assert [record.text for record in whole][-2:] == ["at the end", "next"]
    framer = Framer("log")
    pieces = [r for at in range(0, len(data), 1000) for r in framer.feed(data[at : at + 1000])] + framer.close()
    assert pieces == whole


def test_counters() -> None:
    framer = Framer("log")
    framer.feed(b"a\nb\rc\nd")
    framer.close()
    assert (framer.lines, framer.bytes) == (3, 7)


LINE = "(APIServer pid=1) INFO 09-12 10:00:00 [core.py:59] model='m', \"a\" <module> & more"


@pytest.mark.parametrize(
    "pasted",
    [
        LINE.replace(" ", "\xa0"),
        "\u200b" + LINE,
        LINE.replace("'m'", "\u2018m\u2019").replace('"a"', "\u201ca\u201d"),
        html.escape(LINE),
        html.escape(html.escape(LINE)),
        f'<span class="line">{html.escape(LINE)}</span>',
        f"<pre>{html.escape(LINE)}<br/>",
        f"<tr><td>12</td><td>{html.escape(LINE)}</td></tr>",
    ],
)
def test_what_pages_and_chats_make_of_a_line(pasted: str) -> None:
    (record,) = framed(pasted + "\n")
    assert (record.text, record.process) == ("model='m', \"a\" <module> & more", "APIServer")


def test_tags_within_a_text_stay() -> None:
    said = "prompt: <p>one</p> <code>two</code> and <br> three"
    assert texts(said + "\n" + "a <module> in </div> it\n") == [said, "a <module> in </div> it"]


def test_a_torn_control_string_ends_with_its_line() -> None:
    """It must not take the CR before the LF with it: one line without CR would change how all others are read."""
    assert LineReader().feed(b"a \x1bPtorn\r\nb \x1b]0;title\x07c\r\n") == ["a \r", "b c\r"]
