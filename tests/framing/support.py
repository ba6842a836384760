"""Framing a text in one piece or in many."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from analyzer.framing import Record, frame


def framed(text: str | bytes) -> list[Record]:
    """The records of ``text``."""
    data = text.encode() if isinstance(text, str) else text
    return list(frame([data], "log"))


def texts(text: str | bytes) -> list[str]:
    """The texts of the records of ``text``."""
    return [record.text for record in framed(text)]


def cut(data: bytes, places: list[int]) -> Iterator[bytes]:
    """``data`` cut at ``places``."""
    edges = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    for begin, end in pairwise(edges):
        yield data[begin:end]
