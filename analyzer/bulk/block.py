"""One block of lines: first sorted into templates, quiet lines and others, then folded in the order of the log."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from analyzer.bulk import effects
from analyzer.bulk.claim import Claim
from analyzer.bulk.claims import Claims, Templates, last_below, runs_of
from analyzer.bulk.cursor import Ints
from analyzer.bulk.lines import Lines
from analyzer.bulk.outer import OuterForm
from analyzer.bulk.quiet import Quiet
from analyzer.bulk.rows import Rows
from analyzer.bulk.singles import Singles
from analyzer.bulk.template import ACCESS, POSITIONS
from analyzer.events import Event
from analyzer.framing.record import Record
from analyzer.run.building import Building
from analyzer.run.facts import Where
from analyzer.run.sglang import SglangFolder

if TYPE_CHECKING:
    from analyzer.bulk.lane import Lane

_MOST_SINGLES = 0.4
"""Share of the lines of a block without a template above which the whole block is read line by line."""
_SAMPLE = 500
_AT_ONCE = 2048
"""Lines framed at a time: all records of a block at once would take much memory."""
_CHECKED = 5
"""Lines of each template and block that are read the ordinary way, too, to see that the columns say the same."""
_NO_ROWS: Ints = np.zeros(0, np.int64)


class Block(Rows):
    """The lines of one block and the run that they belong to."""

    def __init__(self, lane: Lane, building: Building, lines: Lines, outer: OuterForm) -> None:
        super().__init__(lane.framer, lane.catalog, lane.engine, lines, outer)
        self.lane = lane
        self.building = building
        self._claims: list[tuple[Claim, str]] = []
        self._asides: list[tuple[int, Record, Event | None]] = []
        """Rows that are only counted and kept, with what they are."""
        self._pending: Counter[str] = Counter()
        """How many lines of each kind are put aside; "" are those of none."""
        self._folded = 0
        self._before = len(building.events), len(building.scary)
        self._one_by_one: set[int] = set()
        self._parts: tuple[list[Ints], ...] = ([], [], [], [])
        """What becomes the four arrays below."""
        self._active = self._prefills = self._others = self._errors = _NO_ROWS

    # sorting

    def read(self, templates: Templates, quiet: Quiet) -> None:
        """Sorts the lines and folds them."""
        claims = templates.claim(self.texts, self.lane.engine)
        pids = [pid for pid in self.building.pids if self._where(pid) is self.building]
        if self._is_strange(claims.rest, quiet, pids):
            self._folded = len(self.lines)
            self._ordinary(0, self._folded)
            return
        rest = self.with_neighbours(self._sorted_out(claims, self.heard(claims.rest, quiet, pids)))
        self._keep(rest)
        self._pending = Counter("" if event is None else event.kind for _, _, event in self._asides)
        self._pending[ACCESS] += len(self._errors)
        self._fold_in_order(rest)

    def _is_strange(self, rest: Ints, quiet: Quiet, pids: list[int]) -> bool:
        """Whether too many lines are of no template and not quiet, by a sample: the ordinary way is quicker then."""
        most = _MOST_SINGLES * len(self.lines)
        if len(rest) <= most:
            return False
        sample = rest[:: max(1, len(rest) // _SAMPLE)]
        return len(self.heard(sample, quiet, pids)) / len(sample) * len(rest) > most

    def _where(self, pid: int | None) -> Building | None:
        """The run that lines of this block go to."""
        return self.lane.folder.where(self.source, self.outer.stream, pid)

    def _sorted_out(self, claims: Claims, rest: list[int]) -> list[int]:
        """Keeps the claims that the run is ready for; the rows to be read one by one."""
        answers = effects.Answers(self.event_at, self.lane.answers)
        refused: list[int] = []
        for claim in claims.found:
            self._admit(claim, answers, refused)
        singles, rest = self._singles(sorted(rest + refused))
        for claim in singles:
            self._admit(claim, answers, rest)
        self._active, self._prefills, self._others, self._errors = map(_in_order, self._parts)
        return sorted(rest)

    def _admit(self, claim: Claim, answers: effects.Answers, refused: list[int]) -> None:
        """Keeps a claim, or adds the rows of it that cannot be folded by columns to ``refused``."""
        template = claim.template
        effect = effects.effect_of(template.engine, template.kind)
        if not effect and (example := self.event_at(int(claim.rows[0]))) is not None and effects.is_inert(example):
            effect = effects.INERT
        if (
            not effect
            or self._where(template.pid) is not self.building
            or not effects.ready_for(self.building, template, effect)
            or (template.tokens and not self._agrees(claim, effect))
            or (effect == ACCESS and not answers.learn(claim))
        ):
            refused += claim.rows.tolist()
            return
        active, prefills, others, errors = self._parts
        if effect == ACCESS:
            strange = answers.strange(claim)
            refused += claim.rows[strange].tolist()
            claim = claim.where(~strange)
            others.append(answers.rows(claim, 1))
            errors.append(answers.rows(claim, 2))
        elif effect != effects.INERT:
            self.know(claim)
        self._claims.append((claim, effect))
        active.append(effects.active_rows(claim, effect, answers))
        if template.kind == "prefill_batch":
            prefills.append(claim.rows)
        elif template.kind == "decode_batch":
            others.append(claim.rows)

    def _singles(self, rows: list[int]) -> tuple[list[Claim], list[int]]:
        """Reads rows of no template: claims of the kinds that go by columns, and what is left; the rest goes aside."""
        singles = Singles(effects.effect_of)
        rest = []
        for row in rows:
            plain = self.plain_at(row)
            if plain is None:
                rest.append(row)
                continue
            record = plain.record
            event = self.lane.catalog.match(record, self.lane.engine)
            if event is not None and singles.take(row, record, event):
                continue
            here = self._where(record.pid) is self.building
            if here and effects.is_aside(self.building, record, event):
                self._asides.append((row, record, event))
            else:
                rest.append(row)
        return list(singles.claims()), rest

    def _agrees(self, claim: Claim, effect: str) -> bool:
        """Whether the grammar reads some of the rows as the columns say."""
        step = max(1, len(claim) // _CHECKED)
        for index in {*range(0, len(claim), step), len(claim) - 1}:
            event = self.event_at(int(claim.rows[index]))
            if event is None or (event.kind, event.engine) != (claim.template.kind, claim.template.engine):
                return False
            if event.record.rank != claim.rank(index):
                return False
            if effect != ACCESS and any(
                event.fields.get(name) != values[index] for name, values in claim.figures.items() if name != POSITIONS
            ):
                return False
        return True

    def _keep(self, rest: list[int]) -> None:
        """Takes the rows to be read one by one out of everything else."""
        if not rest:
            return
        kept = [(claim.without(rest), effect) for claim, effect in self._claims]
        self._claims = [(claim, effect) for claim, effect in kept if len(claim)]
        taken = set(rest)
        self._asides = [item for item in self._asides if item[0] not in taken]
        self._active, self._prefills, self._others, self._errors = (
            rows[~np.isin(rows, rest)] for rows in (self._active, self._prefills, self._others, self._errors)
        )

    # folding

    def _fold_in_order(self, rest: list[int]) -> None:
        count = len(self.lines)
        at = 0
        for begin, end in [*runs_of(rest), (count, count)]:
            at = self._until_free(at, begin)
            if at < begin:
                self.lane.take(self.lane.framer.skip(0, 0), self._watch)  # what was held back may begin a run
            if self._where(None) is not self.building:
                self._fold(at)
                self._folded = count
                self._ordinary(at, count)
                return
            self._segment(at, begin)
            self._ordinary(begin, end)
            at = end
        self._fold(count)

    def _until_free(self, begin: int, end: int) -> int:
        """Reads rows one by one while they could be part of something open; where that ends."""
        while begin < end and not self.lane.framer.may_skip:
            self._one_by_one.add(begin)
            self._ordinary(begin, begin + 1)
            begin += 1
        return begin

    def _ordinary(self, begin: int, end: int) -> None:
        """Reads rows one by one."""
        for at in range(begin, end, _AT_ONCE):
            self.lane.take(self.lane.framer.feed(self.lines.data(at, min(end, at + _AT_ONCE))), self._watch)

    def _watch(self, record: Record, event: Event | None) -> None:
        """Folds what came before a line that goes into the same series, or may be the last one that is kept."""
        effect = effects.effect_of(event.engine, event.kind) if event is not None else ""
        if effect not in ("", ACCESS) or self._is_tight(event):
            self._fold(record.line - self.base)

    def _is_tight(self, event: Event | None) -> bool:
        """Whether it depends on what goes first, this line or those put aside, which of them are kept."""
        if event is None:
            return 0 < self.building.scary_room <= self._pending[""]
        own, whole = self.building.room(event.kind)
        return 0 < own <= self._pending[event.kind] or 0 < whole <= len(self._asides) + len(self._errors)

    def _segment(self, begin: int, end: int) -> None:
        """Rows that are all read by columns."""
        framer, building = self.lane.framer, self.building
        if begin >= end:
            return
        last = self.record_at(end - 1)
        active = last_below(self._active, end, begin)
        if active is not None and building.log.entries and self._out_of_order(begin, end):
            self._one_by_one.update(range(begin, end))
            self._ordinary(begin, end)
            return
        self.lane.take(framer.skip(end - begin, self.lines.size(begin, end)), self._watch)
        order = building.order
        building.passed(end - begin, last, self._last_time(begin, end))
        self.lane.lines_by_columns += end - begin
        if active is not None:
            self._served(begin, end, order, active)
        if len(self._prefills) or building.steps.prefilling:
            self._last_step(begin, end)

    def _last_step(self, begin: int, end: int) -> None:
        """Tells whether a prefill is under way after these rows."""
        steps = [last_below(rows, end, begin) for rows in (self._prefills, self._others)]
        last = max((row for row in steps if row is not None), default=None)
        if last is not None and (event := self.event_at(last)) is not None:
            self.building.steps.feed(event)

    def _out_of_order(self, begin: int, end: int) -> bool:
        """Whether rows may be older than a failure above them."""
        log = self.building.log
        return any(log.pasted_late(self.record_at(row).time) for row in (begin, end - 1))

    def _last_time(self, begin: int, end: int) -> float | None:
        """The time of the last row with a stamp."""
        for row in range(end - 1, max(begin, end - 256) - 1, -1):
            if (time := self.record_at(row).time) is not None:
                return time
        return None

    def _served(self, begin: int, end: int, order: int, active: int) -> None:
        """A request was answered in these rows, the last time at ``active``."""
        building = self.building
        count = _count_between(self._active, begin, end)
        building.answered_more(count, order + active - begin + 1, self.record_at(active).time)
        if building.answered is None:
            for row in self._active[self._active >= begin].tolist():
                if row < end and ' - "' in self.texts[row] and " HTTP/" in self.texts[row]:
                    building.answered = Where.of(self.record_at(row))
                    return

    def _fold(self, upto: int) -> None:
        """Folds the claimed rows before ``upto`` that are not folded yet."""
        begin = self._folded
        if upto <= begin:
            return
        self._folded = upto
        if not (self._claims or self._asides or len(self._errors)):
            return
        parts = []
        counted = 0
        for claim, effect in self._claims:
            part = claim.between(begin, upto).without(self._one_by_one)
            if len(part):
                counted += len(part)
                parts.append((part, effect))
        effects.apply(self.building, parts, self.where_at, self.time_at, self.event_at)
        counted += self._put_aside(begin, upto)
        self.lane.counted(counted)

    def _put_aside(self, begin: int, upto: int) -> int:
        """Hands the run what is only kept, in order; how many of these lines were recognised."""
        building = self.building
        recognised = 0
        for row, record, event in self._asides:
            if begin <= row < upto and row not in self._one_by_one:
                building.aside(record, event)
                recognised += event is not None
                if event is not None and isinstance(folder := building.folders.get(event.engine), SglangFolder):
                    folder.saw(event)
        for row in self._errors.tolist():
            if not building.keeps(ACCESS):
                break
            if begin <= row < upto and row not in self._one_by_one and (event := self.event_at(row)) is not None:
                building.keep(event)
        events, scary = self._before
        building.events[events:] = sorted(building.events[events:], key=lambda event: event.line)
        building.scary[scary:] = sorted(building.scary[scary:], key=lambda record: record.line)
        return recognised


def _in_order(parts: list[Ints]) -> Ints:
    return np.sort(np.concatenate(parts), kind="stable") if parts else _NO_ROWS


def _count_between(rows: Ints, begin: int, end: int) -> int:
    return int(np.searchsorted(rows, end) - np.searchsorted(rows, begin))
