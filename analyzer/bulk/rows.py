"""The lines of one block as records and events, and which of them must be read in their place."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from analyzer.bulk.claim import Claim
from analyzer.bulk.cursor import Ints, Mask
from analyzer.bulk.heads import Heads
from analyzer.bulk.lines import Lines
from analyzer.bulk.outer import OuterForm
from analyzer.bulk.quiet import LONG_SIGNS, SIGNS, SINGLE_SIGNS, Quiet, is_marked, messages
from analyzer.events import Event
from analyzer.framing import Framer, engine
from analyzer.framing.blocks import Message
from analyzer.framing.plain import Plain
from analyzer.framing.record import Record
from analyzer.parsing import Catalog
from analyzer.run.facts import LONGEST_QUOTE, Where

_MOST_RECORDS = 4096


class Rows:
    """The lines of one block, without their line feeds, where ``framer`` stands. ``engine`` is that of the run.

    ``lines`` are as they stand in the log, ``texts`` without the prefix ``outer``; a line that has another one is an
    empty text.
    """

    def __init__(self, framer: Framer, catalog: Catalog, engine: str, lines: Lines, outer: OuterForm) -> None:
        self.framer = framer
        self.catalog = catalog
        self.engine = engine
        self.lines = lines
        self.outer = outer
        self.texts = outer.texts(lines)
        self.source = framer.source
        self.base = framer.lines + 1
        """Number of the first line."""
        self._records: dict[int, Record] = {}
        self._begins: Ints = np.zeros(len(lines), np.int64)
        """Where the messages begin that are known; 0 for others."""

    def record_at(self, row: int) -> Record:
        """The record of a row; one that is not plain stands there as it is."""
        return self._records.get(row) or self._keep_record(row, self.plain_at(row))

    def know(self, claim: Claim) -> None:
        """Keeps where the messages of ``claim`` begin."""
        template = claim.template
        if template.start:
            before = self.texts.closings if template.ranked else self.texts.starts
            self._begins[claim.rows] = before[claim.rows] + template.start

    def where_at(self, row: int) -> Where:
        """The place of a row that a template has claimed."""
        begin = int(self._begins[row])
        if not begin:
            return Where.of(self._claimed_at(row))
        return Where(self.source, self.base + row, self.texts.rest_of(row, begin)[:LONGEST_QUOTE])

    def time_at(self, row: int) -> float | None:
        """The time of such a row."""
        return self._claimed_at(row).time

    def _claimed_at(self, row: int) -> Record:
        return self._records.get(row) or self._keep_record(row, self._read(row, self.texts[row], sure=True))

    def _keep_record(self, row: int, plain: Plain | None) -> Record:
        number = self.base + row
        record = plain.record if plain else Record(self.source, number, number, self.lines[row])
        if len(self._records) > _MOST_RECORDS:
            self._records.clear()
        self._records[row] = record
        return record

    def plain_at(self, row: int) -> Plain | None:
        """The plain line in a row, if it is one and nothing in it must be cleaned."""
        text = self.texts[row]
        return None if is_marked(text) else self._read(row, text)

    def _read(self, row: int, text: str, sure: bool = False) -> Plain | None:
        line = text if self.texts is self.lines else self.lines[row]
        return self.outer.plain(self.source, self.base + row, line, text, self.framer.peeler, sure)

    def event_at(self, row: int) -> Event | None:
        """The event of a row, None if it is not plain."""
        record = self.record_at(row)
        return self.catalog.match(record, self.engine) if record.form == "log" else None

    def heard(self, rest: Ints, quiet: Quiet, pids: Iterable[int]) -> list[int]:
        """Those of ``rest`` that may be of interest to somebody; ``pids`` are the processes known."""
        if not len(rest):
            return []
        plain, texts = messages(self.texts.texts(rest), pids)
        loud = (quiet.loud(texts) | ~plain).to_numpy()
        heard: list[int] = rest[loud | self._may_follow(rest)].tolist()
        return heard

    def wanted(self, rest: Ints, quiet: Quiet, heads: Heads) -> Ints:
        """Those of ``rest`` that may hold one of the kinds wanted, or belong to a record that does."""
        lines = self.texts
        wanted = (lines.holding(quiet.keys) | lines.with_controls())[rest]
        signs = lines.near(SIGNS if lines.hold(*SINGLE_SIGNS) else LONG_SIGNS)[rest]
        if signs.any():
            wanted[signs] |= lines.texts(rest[signs]).str.contains(SIGNS).to_numpy()
        wanted |= self._may_follow(rest)
        return rest[wanted | ~heads.plain(lines, rest)]

    def _may_follow(self, rest: Ints) -> Mask:
        """Which of ``rest`` the record of the line before may go on in."""
        lines = self.texts
        return lines.end_with(":")[np.maximum(rest - 1, 0)] & ~lines.begin_with("[")[rest]

    def with_neighbours(self, rest: list[int]) -> list[int]:
        """``rest``, and the lines before and after that may be a part of the same record."""
        wanted = set(rest)
        wanted.update(row - 1 for row in rest if row and row - 1 not in wanted and self.may_continue(row))
        for row in rest:
            after = row + 1
            if after < len(self.texts) and after not in wanted and self.texts[row][:1] != "[":
                plain = self.plain_at(after)
                if (
                    plain is not None
                    and plain.record.module
                    and f"{self.texts[row]} ".startswith(self.texts[after][: plain.start])  # a header may end its line
                ):
                    wanted.add(after)
        return sorted(wanted)

    def may_continue(self, row: int) -> bool:
        """Whether a row, which is read by itself, may belong to the plain line before it."""
        line, before = self.texts[row], self.texts[row - 1]
        if line[:2] == "[2":
            return False
        header = engine.pattern("vllm").match(line)
        if header is not None:  # vLLM repeats it on each line of a record, also on an empty one
            return bool(header[4]) and f"{before} ".startswith(f"{header[0].rstrip()} ")
        return Message.may_follow(self.record_at(row - 1))
