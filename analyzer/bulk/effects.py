"""What the lines of one template do to the run that they belong to, all at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from analyzer.bulk import series
from analyzer.bulk.claim import Claim, Merged, Words
from analyzer.bulk.cursor import Ints, Mask
from analyzer.bulk.singles import Singles
from analyzer.bulk.template import ACCESS, ENGINE, POSITIONS, Template
from analyzer.events import Event
from analyzer.framing.record import Record
from analyzer.run import signals
from analyzer.run.building import ACTIVITY, Building, activity
from analyzer.run.classify import CLIENT_HEAD
from analyzer.run.plan import plan_of
from analyzer.run.series import Series
from analyzer.run.sglang import SglangFolder
from analyzer.run.tracebacks import HEADER, exception_line
from analyzer.run.vllm import VllmFolder
from analyzer.run.vllm_args import ARGUMENT_KINDS
from analyzer.run.vllm_facts import FACT_KINDS

DECODE, SERIES, SPEC, TOTALS = "decode", "series", "spec", "totals"
RETRACTED, COUNTED, INERT = "retracted", "counted", "inert"
_EFFECTS = {
    ("sglang", "decode_batch"): DECODE,
    ("sglang", "prefill_batch"): SERIES,
    ("sglang", "retraction"): RETRACTED,
    ("vllm", "stats"): DECODE,
    ("vllm", "stats_v0"): DECODE,
    ("vllm", "prefix_hits_v0"): SERIES,
    ("vllm", "spec_stats"): SPEC,
    ("vllm", "spec_stats_v0"): TOTALS,
    ("vllm", "preemption_v0"): RETRACTED,
    ("vllm", "iteration"): COUNTED,
    ("common", ACCESS): ACCESS,
}

EventAt = Callable[[int], Event | None]
"""The event of a row, by the ordinary way."""


def effect_of(engine: str, kind: str) -> str:
    """How lines of a kind are folded by columns; "" for a kind that has nothing to fold but its number."""
    return _EFFECTS.get((engine, kind), "")


def is_aside(building: Building, record: Record, event: Event | None) -> bool:
    """Whether ``building.aside`` can take a plain line: no part of a failure, and of no meaning beyond its kind."""
    if event is None:
        text = record.text
        return exception_line(text) is None and not CLIENT_HEAD.search(text) and HEADER not in text
    if plan_of(event.engine, event.kind).engine and event.engine not in building.folders:
        return False
    folder = building.folders.get(event.engine)
    if isinstance(folder, SglangFolder) and folder.handles(event.kind):
        return False
    return is_inert(event)


def is_inert(event: Event) -> bool:
    """Whether an event of this kind and text is counted and kept, and nothing else."""
    text = event.record.text
    return (
        _is_inert_kind(event.engine, event.kind)
        and signals.signal_of(event) is None
        and exception_line(text) is None
        and HEADER not in text
        and not CLIENT_HEAD.search(text)
    )


@cache
def _is_inert_kind(engine: str, kind: str) -> bool:
    plan = plan_of(engine, kind)
    return not (plan.stage or plan.mark or plan.step or kind in FACT_KINDS or kind in ARGUMENT_KINDS)


def ready_for(building: Building, template: Template, effect: str) -> bool:
    """Whether ``building`` has seen what the first lines of a kind do, so that further ones only add."""
    kind = template.kind
    if plan_of(template.engine, kind).engine and template.engine not in building.folders:
        return False
    if effect == INERT:
        folder = building.folders.get(template.engine)
        return not building.keeps(template.kind) and not (isinstance(folder, SglangFolder) and folder.handles(kind))
    if "serving" not in building.stages or building.served_at is None:
        return False
    folder = building.folders.get(template.engine)
    return not isinstance(folder, SglangFolder) or kind in folder.first


@dataclass(slots=True)
class Answers:
    """What the answers of access lines mean, each looked at once by the ordinary way. Bounded."""

    event_at: EventAt
    known: dict[str, tuple[bool, bool, bool] | None]
    """By the text from the method on: (shows a request served, is a POST, is an error), None if no shape fits."""

    _MOST = 8192

    def learn(self, claim: Claim) -> bool:
        """Looks at the answers of ``claim`` that are new; whether all are known now."""
        answers = claim.answers
        assert answers is not None
        present, first = np.unique(answers.codes, return_index=True)
        found = [(answers.texts[code], int(claim.rows[at])) for code, at in zip(present, first, strict=True)]
        fresh = [item for item in found if item[0] not in self.known]
        if len(fresh) + len(self.known) > self._MOST:
            self.known.clear()
            if len(found) > self._MOST // 2:
                return False
            fresh = found
        for answer, row in fresh:
            event = self.event_at(row)
            known = event is not None and (event.engine, event.kind) == ("common", ACCESS)
            self.known[answer] = (
                (activity(event), event.fields["method"] == "POST", event.fields["status"] >= 400)
                if event is not None and known
                else None
            )
        return True

    def rows(self, claim: Claim, place: int) -> Ints:
        """The rows of ``claim`` whose answer has the property at ``place``."""
        return claim.rows[self._which(claim, lambda what: what is not None and what[place])]

    def strange(self, claim: Claim) -> Mask:
        """The lines that are no access lines after all."""
        return self._which(claim, lambda what: what is None)

    def _which(self, claim: Claim, wanted: Callable[[tuple[bool, bool, bool] | None], bool]) -> Mask:
        answers = claim.answers
        assert answers is not None
        missing = (False, False, False)
        mask: Mask = np.asarray([wanted(self.known.get(text, missing)) for text in answers.texts], np.bool_)
        return mask[answers.codes]


def active_rows(claim: Claim, effect: str, answers: Answers) -> Ints:
    """The rows that show a request being served, as ``analyzer.run.building.activity`` tells for one event."""
    if effect == ACCESS:
        return answers.rows(claim, 0)
    if effect == INERT:
        return claim.rows[:0]
    names = [name for name in ACTIVITY if name in claim.figures]
    if not names:
        return claim.rows
    return claim.rows[np.logical_or.reduce([claim.figures[name] > 0 for name in names])]


def apply(
    building: Building,
    claims: Iterable[tuple[Claim, str]],
    where_at: series.WhereAt,
    time_at: series.TimeAt,
    event_at: EventAt,
) -> None:
    """Counts the lines of ``claims`` in ``building`` and lets the engines' folders take them."""
    kinds: dict[tuple[str, str, str], list[Claim]] = {}
    for claim, effect in claims:
        kinds.setdefault((claim.template.engine, claim.template.kind, effect), []).append(claim)
    metrics: dict[str, list[tuple[Claim, str]]] = {}
    statistics: list[Claim] = []
    for (engine, kind, effect), parts in kinds.items():
        count = sum(map(len, parts))
        building.kinds[kind] += count
        if plan_of(engine, kind).engine:
            building.votes[engine] += count
        if effect == INERT:
            building.kept[kind] += count
        folder = building.folders.get(engine)
        if isinstance(folder, SglangFolder):
            _remember(folder, parts, effect, event_at)
        elif isinstance(folder, VllmFolder) and effect == SPEC:
            parts = [_speculation(folder, part) for part in parts]
        elif isinstance(folder, VllmFolder) and effect == TOTALS:
            parts = _totals(folder, parts)
        elif isinstance(folder, VllmFolder) and effect == DECODE:
            statistics += parts
            parts = _by_engine(folder, parts)
        if effect == RETRACTED and isinstance(folder, SglangFolder | VllmFolder):
            _retracted(folder.series, parts, "retracted", where_at)
        if effect in (DECODE, SERIES, SPEC, TOTALS):
            metrics.setdefault(engine, []).extend((part, effect) for part in parts if len(part))
    if statistics:  # of several kinds, where versions are mixed: their rates are added in the order of the lines
        folder = building.folders["vllm"]
        assert isinstance(folder, VllmFolder)
        _statistics(folder, statistics, where_at, event_at)
    for engine, found in metrics.items():
        folder = building.folders[engine]
        if found and isinstance(folder, SglangFolder | VllmFolder):
            merged = Merged([part for part, _ in found])
            series.fold(folder.series, merged, merged.flags(effect == DECODE for _, effect in found), where_at, time_at)


def _remember(folder: SglangFolder, parts: Sequence[Claim], effect: str, event_at: EventAt) -> None:
    """The last line of a kind, and of each rank for what is not printed all the time."""
    merged = Merged(parts)
    last = [merged.rows[-1]]
    if effect not in (DECODE, SERIES):
        last = sorted(merged.rows[places[-1]] for _, places in merged.ranks())
    for row in last:
        if (event := event_at(int(row))) is not None:
            folder.saw(event)


def _retracted(into: Series, parts: Sequence[Claim], name: str, where_at: series.WhereAt) -> None:
    """Requests that gave their KV cache back; a line without a number tells of one."""
    parts = [part for part in parts if len(part)]
    if not parts:
        return
    merged = Merged(parts)
    into.retraction_first = into.retraction_first or where_at(int(merged.rows[0]))
    values = np.where(merged.has(name), merged.figures(name), 1).astype(np.int64)
    series.merge(into.retraction, values, merged.rows, where_at)


def _statistics(folder: VllmFolder, parts: list[Claim], where_at: series.WhereAt, event_at: EventAt) -> None:
    merged = Merged(parts)
    if "decode_rate" in merged.names:
        rates = merged.figures("decode_rate")
        busy = rates != 0
        if busy.any():
            total = series.added(folder.generated, rates[busy])
            folder.generated_so_far(total, event_at(int(merged.rows[busy][-1])))
    preempted = [part.where(part.figures["preempted"] != 0) for part in parts if "preempted" in part.figures]
    _retracted(folder.series, preempted, "preempted", where_at)


def _by_engine(folder: VllmFolder, parts: Sequence[Claim]) -> list[Claim]:
    """The lines with the series of the engine that they name in place of a rank."""
    named = [part for part in parts if ENGINE in part.figures]
    for part in sorted(named, key=lambda part: part.rows[0]):
        without = np.flatnonzero(np.asarray([not rank for rank in part.ranks.texts])[part.ranks.codes])
        if len(without):  # the first one of all gives the series of no name its own
            folder.track_of("", int(part.figures[ENGINE][without[0]]))
    return [replace(part, ranks=_tracks(folder, part)) if ENGINE in part.figures else part for part in parts]


def _tracks(folder: VllmFolder, part: Claim) -> Words:
    engines, codes = np.unique(part.figures[ENGINE].astype(np.int64), return_inverse=True)
    found, codes = np.unique(part.ranks.codes * len(engines) + codes, return_inverse=True)
    pairs = [divmod(int(pair), len(engines)) for pair in found]
    return Words([folder.track_of(part.ranks.texts[rank], int(engines[number])) for rank, number in pairs], codes)


def _speculation(folder: VllmFolder, claim: Claim) -> Claim:
    """The lines that drafted something, with the token that every step gives counted in their acceptance length."""
    drafted = claim.figures.get("drafted", np.zeros(len(claim), np.int64))
    folder.drafted += int(drafted.sum())
    claim = claim.where(drafted != 0)
    figures = claim.figures
    if "accept_length" not in figures:
        return claim
    length = figures["accept_length"]
    if POSITIONS in figures:
        length = np.where(np.abs(figures[POSITIONS] - length) < folder.SAME_MEAN, length + 1, length)
    elif folder.without_bonus:
        length = length + 1
    return replace(claim, figures={**figures, "accept_length": length})


def _totals(folder: VllmFolder, parts: Sequence[Claim]) -> list[Claim]:
    """What each line of V0 adds to the totals of the line before it; these lines come every few seconds at most."""
    lines = [(int(row), part, at) for part in parts for at, row in enumerate(part.rows)]
    found = Singles(effect_of)
    for row, part, at in sorted(lines, key=lambda line: line[0]):
        totals = {name: values[at].item() for name, values in part.figures.items()}
        if totals.get("drafted"):
            folder.drafted += totals["drafted"]
            what = (part.template.engine, part.template.kind, part.template.pid)
            found.add(row, part.rank(at), what, folder.interval_of_totals(totals))
    return list(found.claims())
