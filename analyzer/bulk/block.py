"""One block of lines: first sorted into templates, quiet lines and others, then folded in the order of the log."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import TYPE_CHECKING

from analyzer.bulk import effects
from analyzer.bulk.claims import Claim, Claims, Templates, last_below, runs_of
from analyzer.bulk.outer import OuterForm
from analyzer.bulk.quiet import Quiet
from analyzer.bulk.rows import Rows, without
from analyzer.bulk.singles import Singles
from analyzer.bulk.template import ACCESS
from analyzer.events import Event
from analyzer.framing.record import Record
from analyzer.run.building import Building
from analyzer.run.facts import Where
from analyzer.run.plan import plan_of
from analyzer.run.sglang import SglangFolder

if TYPE_CHECKING:
    import polars as pl

    from analyzer.bulk.lane import Lane

_MOST_SINGLES = 0.4
"""Share of the lines of a block without a template above which the whole block is read line by line."""
_SAMPLE = 500
_AT_ONCE = 2048
"""Lines framed at a time: all records of a block at once would take much memory."""
_CHECKED = 5
"""Lines of each template and block that are read the ordinary way, too, to see that the columns say the same."""


class Block(Rows):
    """The lines of one block and the run that they belong to."""

    def __init__(
        self, lane: Lane, building: Building, lines: Sequence[str], ascii_only: bool, outer: OuterForm
    ) -> None:
        super().__init__(lane.framer, lane.catalog, lane.engine, lines, ascii_only, outer)
        self.lane = lane
        self.building = building
        self._claims: list[tuple[Claim, str]] = []
        self._asides: list[tuple[int, Record, Event | None]] = []
        """Rows that are only counted and kept, with what they are."""
        self._errors: list[int] = []
        """Access lines of requests that failed."""
        self._folded = 0
        self._before = len(building.events), len(building.scary)
        self._one_by_one: set[int] = set()
        self._parts: tuple[list[pl.Series], ...] = ([], [], [], [])
        """What becomes the four lists below."""
        self._active: list[int] = []
        """Rows that show a request being served, in order."""
        self._prefills: list[int] = []
        self._others: list[int] = []
        """Rows after which no prefill is under way, in order."""

    # sorting

    def read(self, templates: Templates, quiet: Quiet) -> None:
        """Sorts the lines and folds them."""
        claims = templates.claim(self.texts, self.column, self.lane.engine)
        pids = [pid for pid in self.building.pids if self._where(pid) is self.building]
        if self._is_strange(claims.rest, quiet, pids):
            self._folded = len(self.lines)
            self._ordinary(0, self._folded)
            return
        claims.rest = self.heard(claims.rest, quiet, pids)
        rest = self.with_neighbours(self._sorted_out(claims))
        self._keep(rest)
        self._fold_in_order(rest)

    def _is_strange(self, rest: list[int], quiet: Quiet, pids: list[int]) -> bool:
        """Whether too many lines are of no template and not quiet, by a sample: the ordinary way is quicker then."""
        most = _MOST_SINGLES * len(self.lines)
        if len(rest) <= most:
            return False
        sample = rest[:: max(1, len(rest) // _SAMPLE)]
        return len(self.heard(sample, quiet, pids)) / len(sample) * len(rest) > most

    def _where(self, pid: int | None) -> Building | None:
        """The run that lines of this block go to."""
        return self.lane.folder.where(self.source, self.outer.stream, pid)

    def _sorted_out(self, claims: Claims) -> list[int]:
        """Keeps the claims that the run is ready for; the rows to be read one by one."""
        answers = effects.Answers(self.event_at, self.lane.answers)
        refused: list[int] = []
        for claim in claims.found:
            self._admit(claim, answers, refused)
        singles, rest = self._singles(sorted(claims.rest + refused))
        for claim in singles:
            self._admit(claim, answers, rest)
        self._active, self._prefills, self._others, self._errors = map(_in_order, self._parts)
        return sorted(rest)

    def _admit(self, claim: Claim, answers: effects.Answers, refused: list[int]) -> None:
        """Keeps a claim, or adds the rows of it that cannot be folded by columns to ``refused``."""
        template, rows = claim.template, claim.frame["row"]
        effect = effects.effect_of(template.engine, template.kind)
        if not effect and (example := self.event_at(rows[0])) is not None and effects.is_inert(example):
            effect = effects.INERT
        if (
            not effect
            or self._where(template.pid) is not self.building
            or not effects.ready_for(self.building, template, effect)
            or (template.expression and not self._agrees(claim, effect))
            or (effect == ACCESS and not answers.learn(claim))
        ):
            refused += rows.to_list()
            return
        active, prefills, others, errors = self._parts
        if effect == ACCESS:
            refused += answers.take_strange(claim).to_list()
            others.append(answers.rows(claim, 1))
            errors.append(answers.rows(claim, 2))
        self._claims.append((claim, effect))
        active.append(effects.active_rows(claim, effect, answers))
        if template.kind == "prefill_batch":
            prefills.append(rows)
        elif template.kind == "decode_batch":
            others.append(rows)

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
        frame = claim.frame
        step = max(1, frame.height // _CHECKED)
        for index in {*range(0, frame.height, step), frame.height - 1}:
            row = frame.row(index, named=True)
            event = self.event_at(row["row"])
            if event is None or (event.kind, event.engine) != (claim.template.kind, claim.template.engine):
                return False
            if event.record.rank != row["rank"]:
                return False
            if effect != ACCESS and any(
                event.fields.get(column.name) != row[column.name]
                for column in claim.template.columns
                if column.name != "positions"
            ):
                return False
        return True

    def _keep(self, rest: list[int]) -> None:
        """Takes the rows to be read one by one out of the claims, and puts the lists of rows in order."""
        if not rest:
            return
        for claim, _ in self._claims:
            without(claim, rest)
        self._claims = [(claim, effect) for claim, effect in self._claims if claim.frame.height]
        taken = set(rest)
        self._asides = [item for item in self._asides if item[0] not in taken]
        for rows in (self._active, self._prefills, self._others, self._errors):
            rows[:] = [row for row in rows if row not in taken]

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
            self.lane.take(self.lane.framer.feed(self.data(at, min(end, at + _AT_ONCE))), self._watch)

    def _watch(self, record: Record, event: Event | None) -> None:
        """Folds what came before a line that goes into the same series."""
        if event is not None and plan_of(event.engine, event.kind).dense and event.kind != ACCESS:
            self._fold(record.line - self.base)

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
        self.lane.take(framer.skip(end - begin, self.size(begin, end)), self._watch)
        order = building.order
        building.passed(end - begin, last, self._last_time(begin, end))
        self.lane.lines_by_columns += end - begin
        if active is not None:
            self._served(begin, end, order, active)
        if self._prefills or building.steps.prefilling:
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
            for row in self._active:
                if begin <= row < end and ' - "' in self.texts[row] and " HTTP/" in self.texts[row]:
                    building.answered = Where.of(self.record_at(row))
                    return

    def _fold(self, upto: int) -> None:
        """Folds the claimed rows before ``upto`` that are not folded yet."""
        import polars as pl

        begin = self._folded
        if upto <= begin:
            return
        self._folded = upto
        if not (self._claims or self._asides or self._errors):
            return
        parts = []
        counted = 0
        for claim, effect in self._claims:
            frame = claim.frame.filter(pl.col("row").is_between(begin, upto - 1))
            if self._one_by_one:
                frame = frame.filter(~pl.col("row").is_in(list(self._one_by_one)))
            if frame.height:
                counted += frame.height
                parts.append((Claim(claim.template, frame), effect))
        effects.apply(self.building, parts, self.record_at, self.event_at)
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
        for row in sorted(self._errors):
            if not building.keeps(ACCESS):
                break
            if begin <= row < upto and row not in self._one_by_one and (event := self.event_at(row)) is not None:
                building.keep(event)
        events, scary = self._before
        building.events[events:] = sorted(building.events[events:], key=lambda event: event.line)
        building.scary[scary:] = sorted(building.scary[scary:], key=lambda record: record.line)
        return recognised


def _in_order(parts: list[pl.Series]) -> list[int]:
    import polars as pl

    return pl.concat(parts).sort().to_list() if parts else []


def _count_between(rows: Sequence[int], begin: int, end: int) -> int:
    return bisect_left(rows, end) - bisect_left(rows, begin)
