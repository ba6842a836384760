"""The lines of a block, where they stand in its bytes and as a column for polars."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from analyzer.bulk.cursor import Ints, Windows

if TYPE_CHECKING:
    import polars as pl

_IN_CACHE = 1 << 16
"""Bytes that a processor keeps at hand."""
_PACKED = '{"log":"'
_NEVER = b"\x01"
"""A separator that stands in no line."""


class Lines:
    """Lines of ``data``: ``starts`` and ``ends`` in its bytes, ``column`` holds their texts.

    ``returns``: each line feed had a carriage return before it, which is not in ``data``.
    """

    def __init__(
        self, data: bytes, column: pl.Series, starts: Ints, ends: Ints, windows: Windows, returns: bool = False
    ) -> None:
        self._data = data
        self._returns = returns
        self.column = column
        self.starts = starts
        self.ends = ends
        self.windows = windows

    @classmethod
    def of(cls, data: bytes, returns: bool = False) -> Lines | None:
        """All lines of ``data``, each of which ends with a line feed; None if it is no UTF-8.

        ``returns``: each has a carriage return before it, which says nothing; None if one has not.
        """
        import polars as pl

        if returns and data.count(b"\r\n") != data.count(b"\n"):
            return None
        if returns:
            data = data.replace(b"\r\n", b"\n")
        try:
            column, after = _split(data)
        except pl.exceptions.PolarsError:
            return None
        return cls(data, column, _starts(after), after - 1, Windows(data), returns)

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, row: int) -> str:
        return self._data[self.starts[row] : self.ends[row]].decode()

    def every(self, step: int) -> Iterator[str]:
        """Each ``step``-th line."""
        return map(self.__getitem__, range(0, len(self), step))

    def data(self, begin: int, end: int) -> bytes:
        """The bytes of the rows from ``begin`` to before ``end``, with their line feeds."""
        data = self._data[self.starts[begin] : self.ends[end - 1] + 1] if end > begin else b""
        return data.replace(b"\n", b"\r\n") if self._returns else data

    def size(self, begin: int, end: int) -> int:
        """The number of these bytes."""
        if end <= begin:
            return 0
        return int(self.ends[end - 1] + 1 - self.starts[begin]) + self._returns * (end - begin)

    @cached_property
    def controlled(self) -> bool:
        """Whether there are control characters beside the line feeds."""
        data = np.frombuffer(self._data, np.uint8)
        low = sum(int(np.count_nonzero(data[at : at + _IN_CACHE] < ord(" "))) for at in range(0, len(data), _IN_CACHE))
        return low != len(self)

    def without(self, prefix: str) -> Lines:
        """The lines without what ``prefix`` fits at their beginnings; those that it does not fit are empty."""
        import polars as pl

        has = self.column.str.contains(prefix)
        column = self.column.str.replace(prefix, "").zip_with(has, pl.Series("line", [""], dtype=pl.String))
        starts = self.ends - column.str.len_bytes().to_numpy().astype(np.int64)
        return Lines(self._data, column, starts, self.ends, self.windows, self._returns)

    def unpacked(self) -> Lines:
        """What the lines hold that docker's json-file driver wrote; others, and those with rare escapes, are empty."""
        import polars as pl

        parts = self.column.str.strip_prefix(_PACKED).str.splitn('\\n","stream":"', 2).struct.unnest()
        texts = parts.to_series(0).str.replace_all('\\"', '"', literal=True)
        good = (
            self.column.str.starts_with(_PACKED)
            & parts.to_series(1).str.contains(r'^std(?:out|err)","time":"[0-9TZ:.+-]+"\}$').fill_null(False)
            & ~texts.str.contains("\\", literal=True)
        )
        column = texts.zip_with(good, pl.Series([""], dtype=pl.String)).alias("line")
        data: bytes = (column.str.join("\n").item() + "\n").encode()
        after = _ends(column)
        return Lines(data, column, _starts(after), after - 1, Windows(data))


def _split(data: bytes) -> tuple[pl.Series, Ints]:
    """The lines of ``data``, and where the one after each begins. Raises ``PolarsError`` if it is no UTF-8.

    The reader of tables is twice as quick as splitting a text, but drops carriage returns and byte order marks.
    """
    import polars as pl

    if not any(map(data.__contains__, (b"\r", _NEVER))):
        options: dict[str, Any] = {"separator": _NEVER.decode(), "quote_char": None, "has_header": False}
        column = pl.read_csv(data, schema={"line": pl.String}, **options)["line"].fill_null("")
        after = _ends(column)
        if after[-1] == len(data):
            return column, after
    column = pl.Series("line", [data], dtype=pl.Binary).cast(pl.String).str.split("\n").explode().head(-1)
    return column, _ends(column)


def _ends(column: pl.Series) -> Ints:
    ends: Ints = np.cumsum(column.str.len_bytes().to_numpy().astype(np.int64) + 1)
    return ends


def _starts(after: Ints) -> Ints:
    return np.concatenate([np.zeros(1, np.int64), after[:-1]])


def packed_text(line: str) -> str | None:
    """What an object of docker's json-file driver holds; None if ``line`` is none."""
    if not line.startswith(_PACKED):
        return None
    lines = Lines.of(f"{line}\n".encode())
    return None if lines is None else lines.unpacked()[0] or None
