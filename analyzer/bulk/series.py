"""Runtime lines by columns into ``analyzer.run.series``: the same figures as ``Track.add`` line by line."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from analyzer.framing.record import Record
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

if TYPE_CHECKING:
    import polars as pl

RecordAt = Callable[[int], Record]
"""The record of a row."""


def fold(series: Series, frame: pl.DataFrame, record_at: RecordAt) -> None:
    """Counts the lines of ``frame``: ``row`` (ascending), ``rank``, ``decode`` and a column for each metric."""
    for (rank,), rows in frame.partition_by("rank", as_dict=True, maintain_order=True).items():
        track = series.tracks.get(str(rank))
        if track is None:
            if len(series.tracks) >= MAX_RANKS:
                continue
            track = series.tracks[str(rank)] = Track()
        _fold_track(track, rows, record_at)


def merge(stat: Stat, values: pl.Series, rows: pl.Series, record_at: RecordAt) -> None:
    """Counts ``values``, which stand in ``rows``, as ``Stat.add`` does one after the other."""
    if not len(values):
        return
    top = values.arg_max()
    assert top is not None
    high, low = values[top], values.min()
    if not stat.count:
        stat.first, stat.low = values[0], low  # type: ignore[assignment]
    if high > stat.high or not stat.count:
        stat.high, stat.top = high, record_at(rows[top])
    stat.low = min(stat.low, low)  # type: ignore[type-var,assignment]
    stat.count += len(values)
    stat.total = added(stat.total, values)
    stat.last, stat.end = values[-1], record_at(rows[-1])


def added(total: float, values: pl.Series) -> float:
    """``total`` and ``values`` added up one after the other: in another order the last digits would differ."""
    import polars as pl

    start = pl.Series(values.name, [total], dtype=pl.Float64)
    return float(start.append(values.cast(pl.Float64)).cum_sum()[-1])


def _fold_track(track: Track, frame: pl.DataFrame, record_at: RecordAt) -> None:
    import polars as pl

    rows = frame["row"]
    track.samples += frame.height
    found = []
    for name in frame.columns:
        if name in METRICS:
            values, kept = frame[name], rows
            if values.null_count():
                mask = values.is_not_null()
                values, kept = values.filter(mask), rows.filter(mask)
            if len(values):
                found.append((kept[0], name, values, kept))
    for _, name, values, kept in sorted(found, key=lambda item: item[0]):
        merge(track.stats.setdefault(name, Stat()), values, kept, record_at)
    zero = pl.lit(0)
    usage = pl.col("usage").fill_null(0.0) if "usage" in frame.columns else pl.lit(0.0)
    if "swa_usage" in frame.columns:
        usage = pl.max_horizontal(usage, pl.col("swa_usage").fill_null(0.0))
    queued = pl.col("queued").fill_null(0) if "queued" in frame.columns else zero
    running = pl.col("running").fill_null(0) if "running" in frame.columns else zero
    frame = frame.with_columns(
        usage.alias("_usage"),
        (pl.col("decode") & (queued > 0)).alias("_waiting"),
        (pl.col("decode") & (running > 0)).alias("_busy"),
        running.alias("_running"),
    )
    _waiting(track, frame, record_at)
    full = frame.filter(pl.col("_usage") >= FULL_USAGE)["row"]
    track.full += len(full)
    if len(full) and track.full_first is None:
        track.full_first = record_at(full[0])
    busy = frame["_busy"]
    steady = busy.shift(1, fill_value=track.steady)
    _batches(track, frame.with_columns(steady.alias("_steady")).filter(busy), record_at)
    track.decodes += int(busy.sum())
    track.steady = bool(busy[-1])
    _points(track, frame, record_at)


def _waiting(track: Track, frame: pl.DataFrame, record_at: RecordAt) -> None:
    import polars as pl

    frame = frame.filter("_waiting")
    if not frame.height:
        return
    waiting, rows = track.waiting, frame["row"]
    waiting.samples += frame.height
    waiting.first = waiting.first or record_at(rows[0])
    waiting.last = record_at(rows[-1])
    low = frame.filter(pl.col("_usage") < LOW_USAGE)["_running"]
    if len(low):
        waiting.pool_low += len(low)
        waiting.running_then = max(waiting.running_then, low.max() or 0.0)  # type: ignore[assignment]
    crowded = frame.filter(pl.col("_usage") >= CROWDED_USAGE)["row"]
    waiting.pool_full += len(crowded)
    if len(crowded):
        waiting.full_first = waiting.full_first or record_at(crowded[0])


def _batches(track: Track, frame: pl.DataFrame, record_at: RecordAt) -> None:
    """Decode lines with requests running: acceptance by context, rate by batch."""
    import polars as pl

    if {"accept_length", "tokens"} <= set(frame.columns):
        length = (pl.col("tokens") // pl.col("_running")).clip(1).cast(pl.UInt64)
        known = frame.filter(pl.col("accept_length").is_not_null() & (pl.col("tokens").fill_null(0) > 0)).with_columns(
            (64 - length.bitwise_leading_zeros().cast(pl.Int64)).alias("_bucket")
        )
        for (bucket,), rows in known.partition_by("_bucket", as_dict=True, maintain_order=True).items():
            stat = track.by_context.setdefault(int(str(bucket)), Stat())
            merge(stat, rows["accept_length"], rows["row"], record_at)
    if "decode_rate" in frame.columns:
        known = frame.filter(pl.col("_steady") & (pl.col("decode_rate").fill_null(0) > 0))
        for (batch,), rows in known.partition_by("_running", as_dict=True, maintain_order=True).items():
            running = int(str(batch))
            if running in track.by_batch or len(track.by_batch) < MAX_BATCHES:
                stat = track.by_batch.setdefault(running, Stat())
                merge(stat, rows["decode_rate"], rows["row"], record_at)


def _points(track: Track, frame: pl.DataFrame, record_at: RecordAt) -> None:
    """Every ``stride``-th line as a point for charts; the stride grows whenever there are too many."""
    rows = frame["row"]
    columns = [frame[name] if name in frame.columns else None for name in CHARTED]
    at = (track.stride - track.skip) % track.stride
    last = None
    while at < frame.height:
        values = tuple(None if column is None else column[at] for column in columns)
        track.points.append((record_at(rows[at]).time, values))
        track.thin()
        last, at = at, at + track.stride
    gone = track.skip + frame.height if last is None else frame.height - last
    track.skip = gone % track.stride
