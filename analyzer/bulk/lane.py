"""Reads a block of lines by columns where it can, and hands every other line to the ordinary reader in its place."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np

from analyzer.bulk.block import Block
from analyzer.bulk.claims import Templates
from analyzer.bulk.effects import effect_of
from analyzer.bulk.lines import Lines, pieces
from analyzer.bulk.memory import keep_memory
from analyzer.bulk.outer import OuterForm
from analyzer.bulk.quiet import Quiet
from analyzer.framing import Framer
from analyzer.framing.plain import read_plain
from analyzer.framing.record import Record
from analyzer.parsing import Catalog
from analyzer.run.building import Building
from analyzer.run.fold import RunFolder

if TYPE_CHECKING:
    from analyzer.events import Event

Before = Callable[[Record, "Event | None"], None]
Take = Callable[[Iterable[Record], "Before | None"], None]
"""Takes records the ordinary way; the second argument is called before each of them is folded."""

LEAST = 1 << 19
"""Bytes of a chunk below which setting up columns takes longer than reading the lines."""
_AT_ONCE = 1 << 18
"""Bytes framed at a time: all records of a block at once would take much memory."""
_MOST_LINES = 200_000
"""Lines of a block: what is kept of each takes a hundred times the memory of a line of three letters."""
_LOOK = 1 << 18
"""Bytes in which lines are counted to know how many there are."""
_POOR_BLOCKS = 2
"""Blocks in a row of which less than half went by columns: this log is not made of what the lane knows."""
_TRIED_AGAIN = 64
"""Blocks after which it is tried again."""
_LOOKED_AT = 8
"""One of so many blocks is looked at for quiet pieces while there are none."""
_SAMPLE = 16
"""Pieces of it that are looked at first."""


@dataclass(slots=True)
class Lane:
    """The bulk lane of one input. ``counted`` is called with the number of lines recognised by columns."""

    framer: Framer
    folder: RunFolder
    catalog: Catalog
    take: Take
    counted: Callable[[int], None]
    engine: str = ""
    """The engine of the run."""
    lines_by_columns: int = 0
    answers: dict[str, tuple[bool, bool, bool] | None] = field(default_factory=dict)
    """What ``Answers`` has learnt."""
    _templates: Templates | None = None
    _quiet: Quiet | None = None
    _blocks: int = 0
    _busy: bool = True
    """Whether the last block that was looked at for quiet pieces had none, as it is of most logs."""
    _poor: int = 0
    _rest: int = 0

    def __post_init__(self) -> None:
        keep_memory()

    def feed(self, chunk: bytes) -> None:
        """Takes the next bytes."""
        begin = chunk.find(b"\n") + 1 if self.framer.pending else 0
        end = chunk.rfind(b"\n") + 1
        if end - begin < LEAST or self._resting():
            self._ordinary(chunk)
            return
        if begin:
            self._ordinary(chunk[:begin])
        for block in _blocks(chunk[begin:end]):
            self._block(block)
        if end < len(chunk):
            self._ordinary(chunk[end:])

    def _resting(self) -> bool:
        """Whether the lane has proved useless for this log; it is tried again from time to time."""
        if self._poor < _POOR_BLOCKS:
            return False
        self._rest += 1
        if self._rest >= _TRIED_AGAIN:
            self._rest, self._poor = 0, _POOR_BLOCKS - 1
        return True

    def _ordinary(self, data: bytes) -> None:
        for at in range(0, len(data), _AT_ONCE):
            self.take(self.framer.feed(data[at : at + _AT_ONCE]), None)

    def _block(self, data: bytes) -> None:
        """Whole lines."""
        before, first = self.lines_by_columns, self.framer.lines
        if self._busy and self._blocks % _LOOKED_AT:
            self._lines(data)
        else:
            self._in_pieces(data)
        self._blocks += 1
        share = (self.lines_by_columns - before) / max(1, self.framer.lines - first)
        self._poor = 0 if share >= 0.5 else self._poor + 1

    def _in_pieces(self, data: bytes) -> None:
        """Whole lines, those in which nothing is of interest passed over."""
        done = 0
        parts = self._quiet_parts(data)
        self._busy = True
        for begin, end in parts:
            self._lines(data[done:begin])
            building = self._building()
            if building is not None and self.framer.may_skip:
                self._pass_over(data[begin:end], building)
                self._busy = False
                done = end
            else:
                done = begin
        self._lines(data[done:])

    def _quiet_parts(self, data: bytes) -> list[tuple[int, int]]:
        """Where nothing is of interest in ``data``, in whole lines."""
        if self._quiet is None:
            self._quiet = Quiet.of(self.catalog)
        places = list(pieces(data))
        few = places[:: 1 + len(places) // _SAMPLE]
        if self._busy and (self._serves(data, few) or all(self._quiet.loud_pieces(data, few))):
            return []
        loud = self._quiet.loud_pieces(data, places)
        first = read_plain("", 1, data[: data.index(b"\n")].decode(errors="replace"))
        loud[0] = loud[0] or first is None or data[:1] != b"[" or first.record.level != ""
        runs = groupby(zip(loud, places, strict=True), key=lambda item: item[0])
        quiet = [[place for _, place in run] for heard, run in runs if not heard]
        return [(run[0][0], run[-1][1]) for run in quiet]

    def _serves(self, data: bytes, few: list[tuple[int, int]]) -> bool:
        """Whether each of a few pieces of ``data`` holds what any run prints all the time while it serves."""
        shapes = (shape for shape in self.catalog.shapes if effect_of(shape.engine, shape.kind))
        keys = {key.encode() for shape in shapes for key in shape.keys}
        return all(any(data.find(key, begin, end) >= 0 for key in keys) for begin, end in few)

    def _building(self, stream: str = "") -> Building | None:
        """The run that plain lines without a pid belong to."""
        return self.folder.where(self.framer.source, stream, None)

    def _pass_over(self, data: bytes, building: Building) -> None:
        """Lines in which nothing is of interest."""
        count = int(np.count_nonzero(np.frombuffer(data, np.uint8) == ord("\n")))  # quicker than to find them
        number = self.framer.lines + count
        self.take(self.framer.skip(count, len(data)), None)
        last = read_plain(self.framer.source, number, data[data.rfind(b"\n", 0, -1) + 1 : -1].decode())
        assert last is not None
        building.passed(count, last.record)
        self.lines_by_columns += count

    def _lines(self, data: bytes) -> None:
        """Lines that hold something of interest, each ended by a line feed."""
        if len(data) < LEAST:
            self._ordinary(data)
            return
        lines = Lines.of(data, self.framer.crlf)
        if lines is None:
            self._ordinary(data)
            return
        if self._templates is None:
            self._templates = Templates(self.catalog)
        if self._quiet is None:
            self._quiet = Quiet.of(self.catalog)
        outer = OuterForm.common(lines, self.framer.peeler)
        building = self._building(outer.stream)
        if building is None:
            self._ordinary(data)
            return
        block = Block(self, building, lines, outer)
        block.read(self._templates, self._quiet)


def _blocks(data: bytes) -> Iterator[bytes]:
    """``data``, whole lines, in parts of no more than about ``_MOST_LINES``."""
    looked_at = min(len(data), _LOOK)
    parts = 1 + data.count(b"\n", 0, looked_at) * (len(data) // looked_at) // _MOST_LINES
    at = 0
    for part in range(1, parts):
        end = data.find(b"\n", max(at, len(data) * part // parts)) + 1
        if end > at:
            yield data[at:end]
            at = end
    if at < len(data):
        yield data[at:]
