"""Blocks hold the same bytes as the chunks they were made of."""

from __future__ import annotations

from analyzer.sources.blocks import in_blocks


def test_first_as_they_are_then_in_blocks() -> None:
    chunks = [bytes([n]) * 10 for n in range(20)]
    blocks = list(in_blocks(iter(chunks), 35, 30))
    assert b"".join(blocks) == b"".join(chunks)
    assert [len(block) for block in blocks] == [10, 10, 10, 40, 40, 40, 40, 10]


def test_a_short_stream_has_one_block() -> None:
    assert list(in_blocks([b"a", b"b"], 100)) == [b"ab"]
    assert list(in_blocks([], 100)) == []


def test_a_block_ends_with_a_line_where_it_can() -> None:
    chunks = [b"a\nb", b"c\nd", b"\n", b"e" * 9, b"f\n"]
    assert list(in_blocks(chunks, 5)) == [b"a\nbc\n", b"d\n" + b"e" * 9, b"f\n"]
