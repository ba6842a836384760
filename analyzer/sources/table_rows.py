"""Bytes of a table with a delimiter -> its rows, each as its fields (RFC 4180, and what exporters make of it).

A row is one line, or several where a quoted field holds line feeds. Quotes that were not doubled are taken as they
stand, and a quote that is never closed costs no more than the rows up to the next one that begins as rows do.
"""

from __future__ import annotations

import re

LONGEST = 1 << 20
"""Bytes of a row that spans several lines; what is longer was no row."""


class RowReader:
    """Splits bytes into rows of text; ``start`` is how each row begins, if that is known."""

    def __init__(self, *, quoted: bool, start: re.Pattern[str] | None = None) -> None:
        self._quoted = quoted
        self._start = start
        self._rest: list[bytes] = []
        self._open: list[str] = []
        self._size = 0

    def feed(self, data: bytes) -> list[str]:
        """The rows that ``data`` completes, without their line ends."""
        at = data.rfind(b"\n")
        if at < 0:
            self._rest.append(data)
            return []
        block = b"".join((*self._rest, data[:at]))
        self._rest = [data[at + 1 :]]
        return self._rows(block)

    def close(self) -> list[str]:
        """What is left at the end: a last row without its line end, or one whose quote was never closed."""
        rest = b"".join(self._rest)
        self._rest = []
        return (self._rows(rest) if rest else []) + self._given_up()

    def _rows(self, block: bytes) -> list[str]:
        rows: list[str] = []
        for line in block.decode("utf-8", "backslashreplace").split("\n"):
            line = line.removesuffix("\r")
            odd = self._quoted and line.count('"') % 2 == 1
            if not self._open:
                if odd:
                    self._open, self._size = [line], len(line)
                else:
                    rows.append(line)
                continue
            if self._size > LONGEST or (self._start is not None and self._start.match(line)):
                rows += self._given_up()
                if odd:
                    self._open, self._size = [line], len(line)
                else:
                    rows.append(line)
                continue
            self._open.append(line)
            self._size += len(line)
            if odd:
                rows.append("\n".join(self._open))
                self._open = []
        return rows

    def _given_up(self) -> list[str]:
        """The lines of a row that does not end: one row if they are few, each its own otherwise."""
        held, self._open = self._open, []
        if not held:
            return []
        return ["\n".join(held)] if self._size <= LONGEST else held


def fields(row: str, delimiter: str, *, quoted: bool, width: int = 0) -> list[str]:
    """The fields of one row, their quotes taken off; the last of ``width`` fields ends with the row."""
    if not quoted or '"' not in row:
        return row.split(delimiter)
    escape = '\\"' if '\\"' in row and '""' not in row else ""  # some exporters escape as JSON does
    out: list[str] = []
    at, end = 0, len(row)
    while True:
        if row[at : at + 1] == '"':
            last = len(out) == width - 1 and row.endswith('"') and end > at + 1
            close = end - 1 if last else _closing(row, at + 1, delimiter)
            text = row[at + 1 : close]
            out.append(text.replace(escape, '"') if escape else text.replace('""', '"'))
            at = close + 1
        else:
            stop = row.find(delimiter, at)
            stop = end if stop < 0 else stop
            out.append(row[at:stop])
            at = stop
        if at >= end:
            return out
        at += 1


def _closing(row: str, at: int, delimiter: str) -> int:
    """Where the quote stands that closes a field whose text begins at ``at``; the row's end if none does."""
    while (at := row.find('"', at)) >= 0:
        after = row[at + 1 : at + 2]
        if after in ("", delimiter):
            return at
        at += 2 if after == '"' else 1
    return len(row)
