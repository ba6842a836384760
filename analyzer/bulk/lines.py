"""The lines of a block, where they stand in its bytes and as a column for polars."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from analyzer.bulk.cursor import Ints, Mask, Windows

if TYPE_CHECKING:
    import polars as pl

_PIECE = 1 << 16
"""Bytes that a processor keeps at hand: a search that looks at so many at a time is several times as quick."""
_FEW = 16
"""Lines of which no more than one in so many is wanted as a text are taken one by one."""
LONGEST_TAGS = 64
"""Bytes in which rank tags are looked for."""
_CLOSED = 20
"""Where the bracket around SGLang's stamp closes, if no rank tags follow."""
_PACKED = '{"log":"'
_NOWHERE: Ints = np.zeros(0, np.int64)
_NEVER = b"\x01"
"""A separator that stands in no line."""


class Lines:
    """Lines of ``data``: ``starts`` and ``ends`` in its bytes, ``column`` holds their texts.

    ``returns``: each line feed had a carriage return before it, which is not in ``data``.
    """

    def __init__(
        self,
        data: bytes,
        starts: Ints,
        ends: Ints,
        windows: Windows,
        returns: bool = False,
        column: pl.Series | None = None,
        controls: Ints = _NOWHERE,
    ) -> None:
        self._data = data
        self._bytes = np.frombuffer(data, np.uint8)
        self._returns = returns
        self._column = column
        self.starts = starts
        self.ends = ends
        self.windows = windows
        self._controls = controls

    @classmethod
    def of(cls, data: bytes, returns: bool = False) -> Lines | None:
        """All lines of ``data``, each of which ends with a line feed; None if it is no UTF-8.

        ``returns``: each has a carriage return before it, which says nothing; None if one has not.
        """
        if returns and data.count(b"\r\n") != data.count(b"\n"):
            return None
        if returns:
            data = data.replace(b"\r\n", b"\n")
        if not (data.isascii() or _is_utf8(data)):
            return None
        chars = np.frombuffer(data, np.uint8)
        low: Ints = np.flatnonzero(chars < ord(" "))
        feeds = chars[low] == ord("\n")
        ends, controls = (low, _NOWHERE) if feeds.all() else (low[feeds], low[~feeds])
        return cls(data, _starts(ends), ends, Windows(data), returns, controls=controls)

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, row: int) -> str:
        return self._data[self.starts[row] : self.ends[row]].decode()

    def rest_of(self, row: int, begin: int) -> str:
        """A line from a place in the bytes on."""
        return self._data[begin : self.ends[row]].decode()

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

    @property
    def column(self) -> pl.Series:
        """The texts of all lines."""
        if self._column is None:
            self._column = _split(self._data, len(self))
        return self._column

    def texts(self, rows: Ints) -> pl.Series:
        """The texts of some ``rows``."""
        import polars as pl

        if self._column is None and len(rows) * _FEW < len(self):
            places = zip(self.starts[rows].tolist(), self.ends[rows].tolist(), strict=True)
            return pl.Series("line", [self._data[begin:end].decode() for begin, end in places], dtype=pl.String)
        return self.column.gather(rows)

    def begin_with(self, char: str) -> Mask:
        """Which lines begin with ``char``."""
        has: Mask = self._bytes[self.starts] == ord(char)
        return has

    def end_with(self, char: str) -> Mask:
        """Which lines end with ``char``."""
        has: Mask = (self._bytes[self.ends - 1] == ord(char)) & (self.ends > self.starts)
        return has

    @cached_property
    def closings(self) -> Ints:
        """Where the first bracket closes behind SGLang's stamp; where none does, the beginning of the line.

        Of lines that begin otherwise it means nothing.
        """
        found = self.starts + _CLOSED
        left = np.flatnonzero(self._bytes[np.minimum(found, len(self._data) - 1)] != ord("]"))
        found[left] = self.starts[left]
        for at in range(_CLOSED, _CLOSED + LONGEST_TAGS, 8):
            places = self.starts[left] + at
            places += self.windows.find(places, ord("]"))
            near = places < self.starts[left] + (at + 8)
            found[left[near]] = places[near]
            left = left[~near]
            if not len(left):
                break
        return np.where(found < self.ends, found, self.starts)

    @cached_property
    def _whole(self) -> pl.Series:
        """All bytes as one text, and an empty one: a text alone would be copied by each search."""
        import polars as pl

        return pl.Series([self._data, b""], dtype=pl.Binary).cast(pl.String)

    def holding(self, keys: list[str]) -> Mask:
        """Which lines hold one of ``keys``."""
        found = self._whole.str.find_many(keys)
        return self._with(found.explode().drop_nulls().to_numpy().astype(np.int64))

    def with_controls(self) -> Mask:
        """Which lines hold control characters."""
        return self._with(self._controls)

    def near(self, expression: str) -> Mask:
        """Lines of the pieces, about ``_PIECE`` long, that hold what ``expression`` fits."""
        import polars as pl

        if not self._whole.str.contains(expression).any():
            return np.zeros(len(self), np.bool_)
        places = list(pieces(self._data))
        texts = pl.Series([self._data[begin:end] for begin, end in places], dtype=pl.Binary).cast(pl.String)
        begins = np.asarray([begin for begin, _ in places], np.int64)
        near: Mask = texts.str.contains(expression).to_numpy()[np.searchsorted(begins, self.ends, "right") - 1]
        return near

    def hold(self, *chars: str) -> bool:
        """Whether any line holds one of ``chars``."""
        return any(char.encode() in self._data for char in chars)

    def _with(self, places: Ints) -> Mask:
        """Which lines hold one of the bytes at ``places``."""
        has = np.zeros(len(self), np.bool_)
        has[np.searchsorted(self.ends, places)] = True
        return has

    def without(self, prefix: str) -> Lines:
        """The lines without what ``prefix`` fits at their beginnings; those that it does not fit are empty."""
        import polars as pl

        has = self.column.str.contains(prefix)
        column = self.column.str.replace(prefix, "").zip_with(has, pl.Series("line", [""], dtype=pl.String))
        starts = self.ends - column.str.len_bytes().to_numpy().astype(np.int64)
        return Lines(self._data, starts, self.ends, self.windows, self._returns, column, self._controls)

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
        ends = _ends(column)
        return Lines(data, _starts(ends), ends, Windows(data), column=column)


def pieces(data: bytes) -> Iterator[tuple[int, int]]:
    """Where the pieces of ``data``, which ends with a line feed, begin and end; each ends with one, too."""
    at = 0
    while at < len(data):
        end = data.find(b"\n", at + _PIECE) + 1 or len(data)
        yield at, end
        at = end


def _split(data: bytes, count: int) -> pl.Series:
    """The ``count`` lines of ``data``, which is UTF-8.

    The reader of tables is twice as quick as splitting a text, but drops carriage returns and byte order marks.
    """
    import polars as pl

    if not any(map(data.__contains__, (b"\r", _NEVER))):
        options: dict[str, Any] = {"separator": _NEVER.decode(), "quote_char": None, "has_header": False}
        column = pl.read_csv(data, schema={"line": pl.String}, **options)["line"].fill_null("")
        if len(column) == count and int(column.str.len_bytes().sum()) == len(data) - count:
            return column
    return pl.Series("line", [data], dtype=pl.Binary).cast(pl.String).str.split("\n").explode().head(-1)


def _is_utf8(data: bytes) -> bool:
    import polars as pl

    try:
        pl.Series([data], dtype=pl.Binary).cast(pl.String)
    except pl.exceptions.PolarsError:
        return False
    return True


def _ends(column: pl.Series) -> Ints:
    """Where the lines of ``column`` end, each followed by a line feed."""
    ends: Ints = np.cumsum(column.str.len_bytes().to_numpy().astype(np.int64) + 1) - 1
    return ends


def _starts(ends: Ints) -> Ints:
    return np.concatenate([np.zeros(1, np.int64), ends[:-1] + 1])


def packed_text(line: str) -> str | None:
    """What an object of docker's json-file driver holds; None if ``line`` is none."""
    if not line.startswith(_PACKED):
        return None
    lines = Lines.of(f"{line}\n".encode())
    return None if lines is None else lines.unpacked()[0] or None
