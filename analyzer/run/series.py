"""Runtime lines of either engine as one bounded time series.

Both engines print, every few steps, how much runs, waits and is used. The grammars of both give these fields the same
names (``METRICS``), so one accumulator serves both: it keeps a summary of each metric and rank, what only a joint look
at one line can tell (requests waiting while the pool is far from full), acceptance by context length, and a thinned
list of points for charts. Its memory does not grow with the log.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from analyzer.events import Event
from analyzer.framing.record import Record
from analyzer.run.facts import Facts, Where

METRICS: dict[str, str] = {
    "running": "requests",
    "queued": "requests",
    "swapped": "requests",
    "tokens": "tokens",
    "usage": "fraction",
    "swa_usage": "fraction",
    "state_usage": "fraction",
    "accept_length": "ratio",
    "acceptance": "fraction",
    "drafted": "tokens",
    "accepted": "tokens",
    "decode_rate": "rate",
    "prefill_rate": "rate",
    "prefix_hit": "fraction",
    "preempted": "requests",
    "new_tokens": "tokens",
    "cached_tokens": "tokens",
}
"""Field names of runtime lines (fractions 0..1, rates in tokens a second) and their units."""

CHARTED = ("running", "queued", "usage", "state_usage", "accept_length", "decode_rate")
LOW_USAGE = 0.5
"""A pool used less than this is far from full."""
CROWDED_USAGE = 0.9
"""A pool used this much admits no more requests of any length."""
FULL_USAGE = 0.95
MAX_POINTS = 240
MAX_RANKS = 64
MAX_BATCHES = 64


Line = Record | Where
"""A line of the log: as it was read, or only where it stands and what it says."""


@dataclass(slots=True)
class Stat:
    """Summary of one metric. ``top`` is the line that held the maximum, ``end`` the last one."""

    count: int = 0
    total: float = 0.0
    low: float = 0.0
    high: float = 0.0
    last: float = 0.0
    first: float = 0.0
    top: Line | None = None
    end: Line | None = None

    def add(self, value: float, record: Record) -> None:
        """Counts one value."""
        if value > self.high or not self.count:
            if not self.count:
                self.first = self.low = value
            self.high = value
            self.top = record
        elif value < self.low:
            self.low = value
        self.count += 1
        self.total += value
        self.last = value
        self.end = record

    @property
    def mean(self) -> float:
        """Mean of the values; 0 without any."""
        return self.total / self.count if self.count else 0.0

    def as_json(self) -> dict[str, float]:
        """Rounded figures for the report."""
        return {
            "min": round(self.low, 4),
            "mean": round(self.mean, 4),
            "max": round(self.high, 4),
            "first": round(self.first, 4),
            "last": round(self.last, 4),
            "count": self.count,
        }


@dataclass(slots=True)
class Waiting:
    """Decode-time lines with requests in the queue, and how full the pools were then."""

    samples: int = 0
    pool_low: int = 0
    pool_full: int = 0
    full_first: Line | None = None
    running_then: float = 0.0
    first: Line | None = None
    last: Line | None = None


@dataclass(slots=True)
class Track:
    """The series of one rank (scheduler)."""

    stats: dict[str, Stat] = field(default_factory=dict)
    waiting: Waiting = field(default_factory=Waiting)
    full: int = 0
    full_first: Line | None = None
    by_context: dict[int, Stat] = field(default_factory=dict)
    by_batch: dict[int, Stat] = field(default_factory=dict)
    points: list[tuple[float | None, tuple[float | None, ...]]] = field(default_factory=list)
    stride: int = 1
    skip: int = 0
    samples: int = 0
    decodes: int = 0
    steady: bool = False
    """The line before was a decode line with requests running: what the next one prints holds no idle time."""

    def add(self, record: Record, values: dict[str, Any], *, decode: bool) -> None:
        """Counts one line; ``decode`` tells that its figures describe the running batch."""
        self.samples += 1
        stats = self.stats
        for name, value in values.items():
            stat = stats.get(name)
            if stat is None:
                if name not in METRICS or value is None:
                    continue
                stat = stats[name] = Stat()
            stat.add(value, record)
        usage = values.get("usage") or 0.0
        if "swa_usage" in values:
            usage = max(usage, values["swa_usage"] or 0.0)
        queued, running = values.get("queued"), values.get("running")
        if decode and queued:
            waiting = self.waiting
            waiting.samples += 1
            waiting.first = waiting.first or record
            waiting.last = record
            if usage < LOW_USAGE:
                waiting.pool_low += 1
                waiting.running_then = max(waiting.running_then, running or 0.0)
            elif usage >= CROWDED_USAGE:
                waiting.pool_full += 1
                waiting.full_first = waiting.full_first or record
        if usage >= FULL_USAGE:
            self.full += 1
            self.full_first = self.full_first or record
        if decode and running:
            self.decodes += 1
            self._add_batch(record, values, int(running))
        self.steady = bool(decode and running)
        if self.skip == 0:
            self._add_point(record, values)
        self.skip = (self.skip + 1) % self.stride

    def _add_batch(self, record: Record, values: dict[str, Any], running: int) -> None:
        length, tokens, rate = values.get("accept_length"), values.get("tokens"), values.get("decode_rate")
        if length is not None and tokens:
            bucket = max(1, int(tokens) // running).bit_length()
            self.by_context.setdefault(bucket, Stat()).add(length, record)
        if rate and self.steady and (running in self.by_batch or len(self.by_batch) < MAX_BATCHES):
            self.by_batch.setdefault(running, Stat()).add(rate, record)

    def _add_point(self, record: Record, values: dict[str, Any]) -> None:
        self.points.append((record.time, tuple(values.get(name) for name in CHARTED)))
        self.thin()

    @property
    def room(self) -> int:
        """How many more points there may be before they are thinned; at least one."""
        return 3 * MAX_POINTS - len(self.points)

    def thin(self) -> None:
        """Leaves one point of three once there are too many.

        Not one of two: vLLM prints a line of statistics and one of speculation in turn, and one kind would be lost.
        """
        if self.room <= 0:
            self.points[:] = self.points[::3]
            self.stride *= 3


class Series:
    """Accumulates the runtime lines of one run.

    ``feed`` takes any event whose fields are named as in ``METRICS``; ``retracted`` counts requests that gave their KV
    back (SGLang retraction, vLLM preemption). ``summary`` is JSON-ready; ``write`` puts the ``load.*`` facts and the
    acceptance into a run's facts, each with the line that shows it. Both may be called at any time.
    """

    def __init__(self) -> None:
        self.tracks: dict[str, Track] = {}
        self.retraction = Stat()
        self.retraction_first: Line | None = None
        self.unnamed = ""
        """What the lines without a rank are called where others have a series of their own."""

    def __bool__(self) -> bool:
        return bool(self.tracks) or self.retraction.count > 0

    def feed(self, event: Event, *, decode: bool = True, of: str | None = None) -> None:
        """Counts a runtime line. ``decode=False`` for a line that speaks of a prefill only.

        ``of``: whose line it is, if not that of the record's rank.
        """
        record = event.record
        rank = record.rank if of is None else of
        track = self.tracks.get(rank)
        if track is None:
            if len(self.tracks) >= MAX_RANKS:
                return
            track = self.tracks[rank] = Track()
        track.add(record, event.fields, decode=decode)

    def named(self) -> dict[str, Track]:
        """The series by what they are called."""
        if len(self.tracks) == 1:
            return self.tracks
        return {rank or self.unnamed: track for rank, track in self.tracks.items()}

    def retracted(self, record: Record, requests: float = 1) -> None:
        """Counts ``requests`` that were retracted or preempted at one time."""
        self.retraction_first = self.retraction_first or record
        self.retraction.add(requests, record)

    def stat(self, name: str) -> Stat | None:
        """The metric ``name`` over all ranks, or None if no line carried it."""
        found = [t.stats[name] for t in self.tracks.values() if name in t.stats]
        if not found:
            return None
        top = max(found, key=lambda s: s.high)
        latest = max(found, key=lambda s: s.end.line if s.end else 0)
        return Stat(
            count=sum(s.count for s in found),
            total=sum(s.total for s in found),
            low=min(s.low for s in found),
            high=top.high,
            last=latest.last,
            first=found[0].first,
            top=top.top,
            end=latest.end,
        )

    def accept_by_context(self) -> list[tuple[int, Stat]]:
        """Accept length by tokens per running request: (upper bound of the bucket, its stat), short to long."""
        merged: dict[int, Stat] = {}
        for track in self.tracks.values():
            for bucket, stat in track.by_context.items():
                into = merged.setdefault(bucket, Stat(low=stat.low, first=stat.first))
                into.count += stat.count
                into.total += stat.total
                into.low, into.high = min(into.low, stat.low), max(into.high, stat.high)
                into.last, into.end = stat.last, stat.end
        return [(1 << bucket, merged[bucket]) for bucket in sorted(merged)]

    def summary(self) -> dict[str, Any]:
        """What the report shows of the series; ``{}`` if there was no runtime line."""
        if not self:
            return {}
        result: dict[str, Any] = {"samples": sum(t.samples for t in self.tracks.values())}
        for name in METRICS:
            if (stat := self.stat(name)) is not None:
                result[name] = stat.as_json()
        if self.retraction.count:
            result["retractions"] = {"events": self.retraction.count, "requests": self.retraction.total}
        if contexts := self.accept_by_context():
            result["accept_by_context"] = [
                {"context_below": bound, "accept_length": round(stat.mean, 3), "samples": stat.count}
                for bound, stat in contexts
            ]
        if self.tracks:
            rank, track = max(self.named().items(), key=lambda item: item[1].samples)
            columns = {
                name: [values[i] for _, values in track.points] for i, name in enumerate(CHARTED) if name in track.stats
            }
            result["points"] = {"rank": rank, "time": [time for time, _ in track.points], **columns}
        if len(self.tracks) > 1:
            result["by_rank"] = {
                rank: {name: track.stats[name].as_json() for name in METRICS if name in track.stats}
                for rank, track in self.named().items()
            }
        return result

    def write(self, facts: Facts) -> None:
        """The ``load.*`` and acceptance facts that follow from the lines so far."""
        for rank, track in self.named().items():
            for name, metric in (
                ("load.max_running", "running"),
                ("load.max_queue", "queued"),
                ("load.max_swapped", "swapped"),
                ("load.max_usage", "usage"),
                ("load.max_state_usage", "state_usage"),
                ("load.max_swa_usage", "swa_usage"),
            ):
                if (stat := track.stats.get(metric)) is not None:
                    facts.add(name, stat.high, _at(stat.top), rank=rank)
        self._write_waiting(facts)
        self._write_rates(facts)
        self._write_acceptance(facts)
        if (stat := self.stat("prefix_hit")) is not None:
            facts.add("load.prefix_hit", stat.last, _at(stat.end), rank="")
        elif (cached := self.stat("cached_tokens")) and (new := self.stat("new_tokens")) and cached.total + new.total:
            facts.add("load.prefix_hit", cached.total / (cached.total + new.total), _at(new.end), rank="")
        if self.retraction.count:
            where = [w for w in (_at(self.retraction_first), _at(self.retraction.end)) if w is not None]
            facts.add("load.retractions", self.retraction.total, where, rank="")
            facts.add("load.retraction_events", self.retraction.count, where, rank="")

    def _write_waiting(self, facts: Facts) -> None:
        samples = sum(t.stats["queued"].count for t in self.tracks.values() if "queued" in t.stats)
        if not samples:
            return
        facts.add("load.samples", sum(t.samples for t in self.tracks.values()), None, rank="")
        waits = [t.waiting for t in self.tracks.values() if t.waiting.samples]
        where = [w for x in waits for w in (_at(x.first), _at(x.last)) if w is not None][:4]
        facts.add("load.waiting_samples", sum(x.samples for x in waits), where, rank="")
        facts.add("load.waiting_pool_low", sum(x.pool_low for x in waits), where, rank="")
        crowded = [w for x in waits if (w := _at(x.full_first)) is not None]
        facts.add("load.waiting_pool_full", sum(x.pool_full for x in waits), crowded or where, rank="")
        if any(x.pool_low for x in waits):
            facts.add("load.running_when_waiting", max(x.running_then for x in waits), where, rank="")
        full = sum(t.full for t in self.tracks.values())
        first = next((t.full_first for t in self.tracks.values() if t.full_first), None)
        facts.add("load.full_samples", full, _at(first), rank="")

    def _write_rates(self, facts: Facts) -> None:
        """Decode rate of one request: best, mean and last of the batch size that was seen most often.

        Only lines that follow a decode line directly count: the engines divide by all time since their last line, so
        the first line after a pause reads far too low.
        """
        decodes = sum(t.decodes for t in self.tracks.values())
        if decodes:
            facts.add("load.decode_lines", decodes, None, rank="")
        batches: dict[int, Stat] = {}
        for track in self.tracks.values():
            for running, stat in track.by_batch.items():
                if running not in batches or stat.count > batches[running].count:
                    batches[running] = stat
        if not batches:
            return
        running, stat = max(batches.items(), key=lambda item: item[1].count)
        facts.add("load.decode_samples", stat.count, None, rank="")
        facts.add("load.decode_rate_best", stat.high / running, _at(stat.top), rank="")
        facts.add("load.decode_rate_mean", stat.mean / running, _at(stat.top), rank="")
        facts.add("load.decode_rate_last", stat.last / running, _at(stat.end), rank="")

    def _write_acceptance(self, facts: Facts) -> None:
        length, rate = self.stat("accept_length"), self.stat("acceptance")
        if length is not None:
            facts.add("spec.accept_length", length.last, _at(length.end), rank="")
            facts.add("spec.accept_length_mean", length.mean, _at(length.top), rank="")
            facts.add("spec.accept_samples", length.count, _at(length.end), rank="")
        if rate is not None:
            facts.add("spec.acceptance", rate.last, _at(rate.end), rank="")
        for name, metric in (("spec.drafted", "drafted"), ("spec.accepted", "accepted")):
            if (stat := self.stat(metric)) is not None:
                facts.add(name, stat.total, _at(stat.end), rank="")
        contexts = [(bound, stat) for bound, stat in self.accept_by_context() if stat.count >= 2]
        if len(contexts) >= 2:
            (_, short), (bound, long) = contexts[0], contexts[-1]
            facts.add("spec.accept_length_short", short.mean, _at(short.end), rank="")
            facts.add("spec.accept_length_long", long.mean, _at(long.end), rank="")
            facts.add("spec.accept_long_context", bound / 2, _at(long.end), rank="")


def _at(line: Line | None) -> Where | None:
    return Where.of(line) if line is not None else None
