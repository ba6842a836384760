"""Runtime lines by columns into ``analyzer.run.series``: the same figures as ``Track.add`` line by line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from analyzer.bulk.claim import Merged, Values
from analyzer.bulk.cursor import Ints, Mask
from analyzer.run.facts import Where
from analyzer.run.series import (
    CHARTED,
    CROWDED_USAGE,
    FULL_USAGE,
    LOW_USAGE,
    MAX_BATCHES,
    MAX_RANKS,
    METRICS,
    Series,
    Stat,
    Track,
)

WhereAt = Callable[[int], Where]
"""The place of a row."""
TimeAt = Callable[[int], float | None]
"""The time of a row."""


def fold(series: Series, lines: Merged, decode: Mask, where_at: WhereAt, time_at: TimeAt) -> None:
    """Counts ``lines``; ``decode`` tells which of them describe the running batch."""
    metrics = [name for name in lines.names if name in METRICS]
    figures = {name: lines.figures(name) for name in metrics}
    has = {name: lines.has(name) for name in metrics}
    for rank, places in lines.ranks():
        track = series.tracks.get(rank)
        if track is None:
            if len(series.tracks) >= MAX_RANKS:
                continue
            track = series.tracks[rank] = Track()
        columns = _Columns(
            lines.rows[places],
            {name: values[places] for name, values in figures.items()},
            {name: mask[places] for name, mask in has.items()},
        )
        _fold_track(track, columns, decode[places], where_at, time_at)


def merge(stat: Stat, values: Values, rows: Ints, where_at: WhereAt) -> None:
    """Counts ``values``, which stand in ``rows``, as ``Stat.add`` does one after the other."""
    if not len(values):
        return
    top = int(values.argmax())
    high = values[top].item()
    if not stat.count:
        stat.first = stat.low = values[0].item()
    if high > stat.high or not stat.count:
        stat.high, stat.top = high, where_at(int(rows[top]))
    stat.low = min(stat.low, values.min().item())
    stat.count += len(values)
    stat.total = added(stat.total, values)
    stat.last, stat.end = values[-1].item(), where_at(int(rows[-1]))


def added(total: float, values: Values) -> float:
    """``total`` and ``values`` added up one after the other: in another order the last digits would differ."""
    terms = np.empty(len(values) + 1)
    terms[0] = total
    terms[1:] = values
    return float(np.add.accumulate(terms)[-1])


def _merge_groups(
    stats: dict[int, Stat], groups: Ints, values: Values, rows: Ints, most: int, where_at: WhereAt
) -> None:
    """Counts ``values`` in ``stats`` by the whole numbers ``groups``; no more than ``most`` groups."""
    if not len(groups):
        return
    names, members = np.unique(groups, return_inverse=True)
    known = [stats.get(name) for name in names.tolist()]
    before = [stat.total if stat is not None else 0.0 for stat in known]
    # one after the other, as in ``added``
    totals = np.bincount(np.append(np.arange(len(names)), members), np.append(before, values)).tolist()
    counts = np.bincount(members)
    begins = np.cumsum(counts) - counts
    together = np.argsort(members, kind="stable")
    values, rows = values[together], rows[together]
    highs, lows = np.maximum.reduceat(values, begins), np.minimum.reduceat(values, begins).tolist()
    high_rows = np.flatnonzero(values == np.repeat(highs, counts))
    tops = high_rows[np.searchsorted(high_rows, begins)]  # of those as high, the first
    firsts, lasts = values[begins].tolist(), values[begins + counts - 1].tolist()
    top_rows, last_rows = rows[tops].tolist(), rows[begins + counts - 1].tolist()
    highs = highs.tolist()
    for number in np.argsort(together[begins]).tolist():
        group = int(names[number])
        stat = stats.get(group)
        if stat is None:
            if len(stats) >= most:
                continue
            stat = stats[group] = Stat(low=firsts[number], first=firsts[number])
        if highs[number] > stat.high or not stat.count:
            stat.high, stat.top = highs[number], where_at(top_rows[number])
        stat.low = min(stat.low, lows[number])
        stat.count += int(counts[number])
        stat.total = totals[number]
        stat.last, stat.end = lasts[number], where_at(last_rows[number])


@dataclass(frozen=True, slots=True)
class _Columns:
    """The lines of one rank: metrics, 0 where a line lacks one, and which lines have them."""

    rows: Ints
    figures: dict[str, Values]
    has: dict[str, Mask]

    def filled(self, name: str) -> Values:
        """The values of a metric in all lines."""
        values = self.figures.get(name)
        return np.zeros(len(self.rows), np.int64) if values is None else values


def _fold_track(track: Track, columns: _Columns, decode: Mask, where_at: WhereAt, time_at: TimeAt) -> None:
    rows = columns.rows
    track.samples += len(rows)
    known = {}
    for name, mask in columns.has.items():
        if mask.all():
            known[name] = columns.figures[name], rows
        elif mask.any():
            known[name] = columns.figures[name][mask], rows[mask]
    for name in sorted(known, key=lambda name: known[name][1][0]):
        merge(track.stats.setdefault(name, Stat()), *known[name], where_at)
    usage = np.maximum(columns.filled("usage"), columns.filled("swa_usage"))
    running = columns.filled("running")
    queued = decode & (columns.filled("queued") != 0)
    _waiting(track, rows[queued], usage[queued], running[queued], where_at)
    full = rows[usage >= FULL_USAGE]
    track.full += len(full)
    if len(full) and track.full_first is None:
        track.full_first = where_at(int(full[0]))
    busy = decode & (running != 0)
    steady = np.concatenate([[track.steady], busy[:-1]])
    _batches(track, columns, busy, steady, where_at)
    track.decodes += int(busy.sum())
    track.steady = bool(busy[-1])
    _points(track, columns, time_at)


def _waiting(track: Track, rows: Ints, usage: Values, running: Values, where_at: WhereAt) -> None:
    """Decode lines with requests in the queue."""
    if not len(rows):
        return
    waiting = track.waiting
    waiting.samples += len(rows)
    waiting.first = waiting.first or where_at(int(rows[0]))
    waiting.last = where_at(int(rows[-1]))
    low = running[usage < LOW_USAGE]
    if len(low):
        waiting.pool_low += len(low)
        waiting.running_then = max(waiting.running_then, low.max().item() or 0.0)
    crowded = rows[usage >= CROWDED_USAGE]
    waiting.pool_full += len(crowded)
    if len(crowded):
        waiting.full_first = waiting.full_first or where_at(int(crowded[0]))


def _batches(track: Track, columns: _Columns, busy: Mask, steady: Mask, where_at: WhereAt) -> None:
    """Decode lines with requests running: acceptance by context, rate by batch."""
    batch = columns.filled("running").astype(np.int64)
    if {"accept_length", "tokens"} <= columns.figures.keys():
        tokens = columns.filled("tokens").astype(np.int64)
        which = busy & columns.has["accept_length"] & (tokens != 0)
        length = np.maximum(tokens[which] // batch[which], 1)
        bucket = np.frexp(length.astype(np.float64))[1].astype(np.int64)
        values = columns.filled("accept_length")[which]
        _merge_groups(track.by_context, bucket, values, columns.rows[which], 64, where_at)
    if "decode_rate" in columns.figures:
        rate = columns.filled("decode_rate")
        which = busy & steady & (rate != 0)
        _merge_groups(track.by_batch, batch[which], rate[which], columns.rows[which], MAX_BATCHES, where_at)


def _points(track: Track, columns: _Columns, time_at: TimeAt) -> None:
    """Every ``stride``-th line as a point for charts; the stride grows whenever there are too many."""
    count = len(columns.rows)
    at = (track.stride - track.skip) % track.stride
    last = None
    while at < count:
        places = np.arange(at, count, track.stride)[: track.room]
        values = [
            [value if there else None for value, there in zip(*pair, strict=True)]
            for pair in (_at(columns, name, places) for name in CHARTED)
        ]
        times = list(map(time_at, columns.rows[places].tolist()))
        track.points += zip(times, zip(*values, strict=True), strict=True)
        track.thin()
        last = int(places[-1])
        at = last + track.stride
    gone = track.skip + count if last is None else count - last
    track.skip = gone % track.stride


def _at(columns: _Columns, name: str, places: Ints) -> tuple[list[float], list[bool]]:
    """A metric in some lines, and which of them have it."""
    if name not in columns.figures:
        return [0.0] * len(places), [False] * len(places)
    return columns.figures[name][places].tolist(), columns.has[name][places].tolist()
