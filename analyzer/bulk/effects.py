"""What the lines of one template do to the run that they belong to, all at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from analyzer.bulk import series
from analyzer.bulk.claims import Claim
from analyzer.bulk.template import ACCESS, POSITIONS, Template
from analyzer.events import Event
from analyzer.framing.record import Record
from analyzer.run import signals
from analyzer.run.building import ACTIVITY, Building, activity
from analyzer.run.classify import CLIENT_HEAD
from analyzer.run.plan import plan_of
from analyzer.run.series import METRICS, Series
from analyzer.run.sglang import SglangFolder
from analyzer.run.tracebacks import HEADER, exception_line
from analyzer.run.vllm import VllmFolder
from analyzer.run.vllm_args import ARGUMENT_KINDS
from analyzer.run.vllm_facts import FACT_KINDS

if TYPE_CHECKING:
    import polars as pl

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
        first = claim.frame.group_by("answer", maintain_order=True).first()
        fresh = [(a, row) for a, row in zip(first["answer"], first["row"], strict=True) if a not in self.known]
        if len(fresh) + len(self.known) > self._MOST:
            self.known.clear()
            if first.height > self._MOST // 2:
                return False
            fresh = list(zip(first["answer"], first["row"], strict=True))
        for answer, row in fresh:
            event = self.event_at(row)
            known = event is not None and (event.engine, event.kind) == ("common", ACCESS)
            self.known[answer] = (
                (activity(event), event.fields["method"] == "POST", event.fields["status"] >= 400)
                if event is not None and known
                else None
            )
        return True

    def rows(self, claim: Claim, place: int) -> pl.Series:
        """The rows of ``claim`` whose answer has the property at ``place``."""
        import polars as pl

        wanted = [answer for answer, what in self.known.items() if what is not None and what[place]]
        return claim.frame.filter(pl.col("answer").is_in(wanted))["row"]

    def take_strange(self, claim: Claim) -> pl.Series:
        """Takes the rows that are no access lines after all out of ``claim``."""
        strange = claim.frame["answer"].is_in([a for a, what in self.known.items() if what is None])
        rows = claim.frame["row"].filter(strange)
        if len(rows):
            claim.frame = claim.frame.filter(~strange)
        return rows


def active_rows(claim: Claim, effect: str, answers: Answers) -> pl.Series:
    """The rows that show a request being served, as ``analyzer.run.building.activity`` tells for one event."""
    import polars as pl

    if effect == ACCESS:
        return answers.rows(claim, 0)
    if effect == INERT:
        return claim.frame["row"].clear()
    names = [name for name in ACTIVITY if name in claim.frame.columns]
    if not names:
        return claim.frame["row"]
    return claim.frame.filter(pl.any_horizontal(pl.col(name) > 0 for name in names))["row"]


def apply(
    building: Building, claims: Iterable[tuple[Claim, str]], record_at: series.RecordAt, event_at: EventAt
) -> None:
    """Counts the lines of ``claims`` in ``building`` and lets the engines' folders take them."""
    kinds: dict[tuple[str, str, str], list[pl.DataFrame]] = {}
    for claim, effect in claims:
        kinds.setdefault((claim.template.engine, claim.template.kind, effect), []).append(claim.frame)
    metrics: dict[str, list[pl.DataFrame]] = {}
    statistics: list[pl.DataFrame] = []
    for (engine, kind, effect), frames in kinds.items():
        frame = _in_order(frames)
        building.kinds[kind] += frame.height
        if plan_of(engine, kind).engine:
            building.votes[engine] += frame.height
        if effect == INERT:
            building.kept[kind] += frame.height
        folder = building.folders.get(engine)
        if isinstance(folder, SglangFolder):
            _remember(folder, frame, effect, event_at)
        elif isinstance(folder, VllmFolder) and effect == SPEC:
            frame = _speculation(folder, frame)
        elif isinstance(folder, VllmFolder) and effect == TOTALS:
            frame = _totals(folder, frame)
        elif isinstance(folder, VllmFolder) and effect == DECODE:
            statistics.append(frame)
        if effect == RETRACTED and isinstance(folder, SglangFolder | VllmFolder):
            _retracted(folder.series, frame, "retracted", record_at)
        if effect in (DECODE, SERIES, SPEC, TOTALS) and frame.height:
            metrics.setdefault(engine, []).append(_metrics(frame, effect))
    if statistics:  # of several kinds, where versions are mixed: their rates are added in the order of the lines
        folder = building.folders["vllm"]
        assert isinstance(folder, VllmFolder)
        _statistics(folder, _in_order(statistics), record_at, event_at)
    for engine, frames in metrics.items():
        folder = building.folders[engine]
        assert isinstance(folder, SglangFolder | VllmFolder)
        series.fold(folder.series, _in_order(frames), record_at)


def _in_order(frames: list[pl.DataFrame]) -> pl.DataFrame:
    import polars as pl

    return frames[0] if len(frames) == 1 else pl.concat(frames, how="diagonal_relaxed").sort("row")


def _metrics(frame: pl.DataFrame, effect: str) -> pl.DataFrame:
    import polars as pl

    names = [name for name in frame.columns if name in METRICS]
    return frame.select("row", "rank", *names).with_columns(pl.lit(effect == DECODE).alias("decode"))


def _remember(folder: SglangFolder, frame: pl.DataFrame, effect: str, event_at: EventAt) -> None:
    """The last line of a kind, and of each rank for what is not printed all the time."""
    import polars as pl

    last = [frame["row"][-1]]
    if effect not in (DECODE, SERIES):
        last = sorted(frame.group_by("rank").agg(pl.col("row").max())["row"])
    for row in last:
        if (event := event_at(row)) is not None:
            folder.saw(event)


def _retracted(into: Series, frame: pl.DataFrame, name: str, record_at: series.RecordAt) -> None:
    import polars as pl

    rows = frame["row"]
    if not len(rows):
        return
    into.retraction_first = into.retraction_first or record_at(rows[0])
    values = frame[name].fill_null(1) if name in frame.columns else rows.clear().extend_constant(1, len(rows))
    series.merge(into.retraction, values.cast(pl.Int64), rows, record_at)


def _statistics(folder: VllmFolder, frame: pl.DataFrame, record_at: series.RecordAt, event_at: EventAt) -> None:
    import polars as pl

    if "decode_rate" in frame.columns:
        busy = frame.filter(pl.col("decode_rate") != 0)
        if busy.height:
            total = series.added(folder.generated, busy["decode_rate"])
            folder.generated_so_far(total, event_at(busy["row"][-1]))
    if "preempted" in frame.columns:
        _retracted(folder.series, frame.filter(pl.col("preempted") != 0), "preempted", record_at)


def _speculation(folder: VllmFolder, frame: pl.DataFrame) -> pl.DataFrame:
    """The lines that drafted something, with the token that every step gives counted in their acceptance length."""
    import polars as pl

    folder.drafted += int(frame["drafted"].sum())
    frame = frame.filter(pl.col("drafted") != 0)
    if "accept_length" not in frame.columns:
        return frame
    length = pl.col("accept_length")
    if POSITIONS in frame.columns:
        lacks = (pl.col(POSITIONS) - length).abs() < folder.SAME_MEAN
        return frame.with_columns(pl.when(lacks).then(length + 1).otherwise(length).alias("accept_length"))
    return frame.with_columns((length + 1).alias("accept_length")) if folder.without_bonus else frame


def _totals(folder: VllmFolder, frame: pl.DataFrame) -> pl.DataFrame:
    """What each line of V0 adds to the totals of the line before it; these lines come every few seconds at most."""
    import polars as pl

    rows = []
    for row in frame.iter_rows(named=True):
        if row["drafted"]:
            folder.drafted += row["drafted"]
            rows.append({"row": row["row"], "rank": row["rank"], **folder.interval_of_totals(row)})
    return pl.DataFrame(rows, infer_schema_length=None).cast({"row": pl.UInt32}) if rows else frame.clear()
