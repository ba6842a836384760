"""Typed events as tables: one folder of Parquet files for each kind, read by columns where the log allows it.

Columns: ``source``, ``line``, ``time`` (UTC as printed, 1972 where the stamp has no year), ``rank``, ``process``, then
the fields of the kind in base units, always the same ones (null where a line lacks them).

.. versionadded:: 0.1
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Protocol

import numpy as np

from analyzer.bulk.claim import Claim
from analyzer.bulk.claims import Templates, runs_of
from analyzer.bulk.cursor import Ints
from analyzer.bulk.heads import Heads
from analyzer.bulk.lines import Lines
from analyzer.bulk.memory import keep_memory
from analyzer.bulk.outer import OuterForm
from analyzer.bulk.quiet import Quiet
from analyzer.bulk.rows import Rows
from analyzer.bulk.tables import Kind, Tables
from analyzer.bulk.template import ACCESS
from analyzer.events import Event
from analyzer.framing import Framer
from analyzer.framing.record import Record
from analyzer.parsing import Catalog, default_catalog
from analyzer.sources.blocks import in_blocks
from analyzer.whole import new_folder

BLOCK = 8 << 20
_LEAST = 1 << 16
"""Bytes of a chunk below which setting up columns takes longer than reading the lines."""


class Sink(Protocol):
    """What takes the events of an input: tables, or lines of JSON."""

    catalog: Catalog

    def add_event(self, event: Event) -> None:
        """Takes one event that was read by itself."""

    def add_claim(self, claim: Claim, source: str, base: int) -> None:
        """Takes the lines of a template, of which row 0 has the number ``base``."""


class Exporter:
    """Reads one input into ``tables``."""

    def __init__(self, source: str, tables: Sink, kinds: frozenset[str] = frozenset()) -> None:
        keep_memory()
        self.framer = Framer(source)
        self._tables = tables
        self._catalog = tables.catalog
        self._templates = Templates(tables.catalog, every=True, kinds=kinds)
        self._quiet = Quiet.of(tables.catalog, kinds)
        self._heads = Heads()
        self._kinds = kinds
        self._engine = ""
        self._pids: set[int] = set()

    def feed(self, chunk: bytes) -> None:
        """Takes the next bytes."""
        begin = chunk.find(b"\n") + 1 if self.framer.pending else 0
        end = chunk.rfind(b"\n") + 1
        lines = Lines.of(chunk[begin:end], self.framer.crlf) if end - begin >= _LEAST else None
        if lines is None:
            self._one_by_one(self.framer.feed(chunk))
            return
        if begin:
            self._one_by_one(self.framer.feed(chunk[:begin]))
        self._block(lines)
        if end < len(chunk):
            self._one_by_one(self.framer.feed(chunk[end:]))

    def flush(self) -> None:
        """Takes what is held back for a next line: the input has fallen silent."""
        self._one_by_one(self.framer.flush())

    def close(self) -> None:
        """The end of this input."""
        self._one_by_one(self.framer.close())

    def _one_by_one(self, records: Iterable[Record]) -> None:
        for record in records:
            event = self._catalog.match(record, self._engine)
            if record.pid is not None and len(self._pids) < 64:
                self._pids.add(record.pid)
            if event is not None:
                if event.engine != "common":
                    self._engine = event.engine
                self._tables.add_event(event)

    def _block(self, lines: Lines) -> None:
        """Whole lines."""
        rows = Rows(self.framer, self._catalog, self._engine, lines, OuterForm())
        claims = self._templates.claim(rows.texts, self._engine, partial(self._wanted, rows) if self._kinds else None)
        strange: list[int] = []
        found = [self._without_strange(claim, strange) for claim in claims.found]
        rest = np.sort(np.concatenate([claims.rest, strange]).astype(np.int64))
        heard = rest.tolist() if self._kinds else rows.heard(rest, self._quiet, self._pids)
        apart = [row for row in heard if rows.record_at(row).form != "log" or (row and rows.may_continue(row))]
        alone = self._in_order(rows, rows.with_neighbours(apart))
        taken = set(alone)
        for row in heard:
            if row not in taken and (event := rows.event_at(row)) is not None:
                self._tables.add_event(event)
        for claim in found:
            if len(claim := claim.without(alone)):
                self._tables.add_claim(claim, rows.source, rows.base)

    def _wanted(self, rows: Rows, rest: Ints) -> Ints:
        return rows.wanted(rest, self._quiet, self._heads)

    def _without_strange(self, claim: Claim, strange: list[int]) -> Claim:
        """An access line whose path may make it something else goes from ``claim`` to ``strange``."""
        if claim.template.kind != ACCESS:
            return claim
        paths = claim.texts["path"]
        words = paths.unique()
        loud = paths.is_in(words.filter(self._quiet.loud(words)).to_list()).to_numpy()
        strange += claim.rows[loud].tolist()
        return claim.where(~loud)

    def _in_order(self, rows: Rows, rest: Sequence[int]) -> list[int]:
        """Frames what must be read one by one in its place; all rows that were."""
        lines = rows.lines
        count, at = len(lines), 0
        alone = list(rest)
        for begin, end in [*runs_of(rest), (count, count)]:
            while at < begin and not self.framer.may_skip:
                self._one_by_one(self.framer.feed(lines.data(at, at + 1)))
                alone.append(at)
                at += 1
            if at < begin:
                self._one_by_one(self.framer.skip(begin - at, lines.size(at, begin)))
            if begin < end:
                self._one_by_one(self.framer.feed(lines.data(begin, end)))
            at = end
        return alone


def export(paths: Sequence[str], folder: Path, kinds: frozenset[str] = frozenset()) -> dict[Kind, int]:
    """Writes the events of ``paths`` into ``folder``, which must not exist; the rows of each kind.

    Only ``kinds``, if any are given.

    Raises ``OutputError`` if it exists or cannot be written; then nothing is left of it.
    """
    from analyzer.sources import open_sources

    with new_folder(folder) as place:
        tables = Tables(place, default_catalog(), kinds)
        for source in open_sources(paths, as_it_stands=True):
            exporter = Exporter(source.name, tables, kinds)
            for block in in_blocks(source.chunks(), BLOCK):
                exporter.feed(block)
            exporter.close()
        tables.finish()
    return tables.rows
