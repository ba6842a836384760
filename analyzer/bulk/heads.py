"""Which lines are plain: by their beginnings, of which a log has few once each figure in them may be any."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

import numpy as np

from analyzer.bulk.cursor import DIGIT, Cursor, Ints, Mask, telling
from analyzer.bulk.lines import Lines
from analyzer.bulk.quiet import PLAIN

_MOST = 12
"""Beginnings that are looked for in each block."""
_WORTH = 64
"""Lines of a block that one must find to stay known."""
_SAMPLE = 64
"""Lines with an unknown beginning that are looked at in one block, spread evenly."""
_COMMON = 2
"""How often a beginning must be in the sample to be looked for."""
_DIGIT = str.maketrans("0123456789", chr(DIGIT) * 10)


class Heads:
    """The beginnings known so far, up to the first character of the message, those of most lines first."""

    def __init__(self) -> None:
        self._hits: dict[bytes, int] = {}

    def plain(self, lines: Lines, rows: Ints) -> Mask:
        """Which of ``rows`` begin as ``PLAIN`` asks."""
        left = np.arange(len(rows))
        for head in list(self._hits):
            left = self._others(head, lines, rows, left)
        for head in self._learnt(lines, rows[left]):
            left = self._others(head, lines, rows, left)
        best = sorted(self._hits.items(), key=lambda item: -item[1])[:_MOST]
        self._hits = {head: count for head, count in best if count >= _WORTH}
        plain = np.ones(len(rows), np.bool_)
        if len(left):
            plain[left] = lines.texts(rows[left]).str.contains(PLAIN).to_numpy()
        return plain

    def _others(self, head: bytes, lines: Lines, rows: Ints, left: Ints) -> Ints:
        """Those of ``left``, which are places in ``rows``, that do not begin with ``head``."""
        at, text = telling(head)
        starts = lines.starts[rows[left]]
        cursor = Cursor(lines.windows, starts + at)
        cursor.form(text)
        good = cursor.good()
        cursor = Cursor(lines.windows, starts[good])
        cursor.fixed(head)
        cursor.printable()
        good[good] = cursor.good()
        self._hits[head] = int(np.count_nonzero(good))
        return left[~good]

    def _learnt(self, lines: Lines, rows: Ints) -> Iterator[bytes]:
        """Beginnings that are common among ``rows``, the most common first."""
        counts: Counter[bytes] = Counter()
        if len(rows) >= _WORTH:
            sample = (re.match(PLAIN, lines[row]) for row in rows[:: len(rows) // _SAMPLE].tolist())
            heads = (match[0][:-1] for match in sample if match is not None)
            counts.update(head.translate(_DIGIT).encode() for head in heads if head.isascii())
        for head, count in counts.most_common():
            if count >= _COMMON:
                yield head
