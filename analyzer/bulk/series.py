"""Runtime lines by columns into ``analyzer.run.series``: the same figures as ``Track.add`` line by line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class Summary:
    """What ``Stat`` needs to know of several values in a row. ``top_row`` is the first row that holds ``high``."""

    count: int
    total: float
    """The sum of the values and what was there before, added up one after the other."""
    low: float
    high: float
    first: float
    last: float
    top_row: int
    last_row: int
    first_row: int

    def merge(self, stat: Stat, record_at: RecordAt) -> None:
        """Counts the values as ``Stat.add`` does one after the other."""
        if not stat.count:
            stat.first, stat.low = self.first, self.low
        if self.high > stat.high or not stat.count:
            stat.high, stat.top = self.high, record_at(self.top_row)
        stat.low = min(stat.low, self.low)
        stat.count += self.count
        stat.total, stat.last = self.total, self.last
        stat.end = record_at(self.last_row)


def merge(stat: Stat, values: pl.Series, rows: pl.Series, record_at: RecordAt) -> None:
    """Counts ``values``, which stand in ``rows``."""
    import polars as pl

    frame = pl.DataFrame({"row": rows, "value": values})
    for summary in _summaries(frame, {"value": stat.total}).values():
        summary.merge(stat, record_at)


def added(total: float, values: pl.Series) -> float:
    """``total`` and ``values`` added up one after the other: in another order the last digits would differ."""
    import polars as pl

    return float(pl.DataFrame({"value": values}).select(_total(pl.col("value"), total)).item())


def _total(values: pl.Expr, start: float) -> pl.Expr:
    import polars as pl

    first = pl.lit(pl.Series([start], dtype=pl.Float64))
    return first.append(values.cast(pl.Float64)).cum_sum().last()


def _summaries(frame: pl.DataFrame, totals: dict[str, float]) -> dict[str, Summary]:
    """A summary of each column named in ``totals`` (which holds the sums so far) that has values."""
    import polars as pl

    parts: list[pl.Expr] = []
    for name, total in totals.items():
        values, rows = pl.col(name).drop_nulls(), pl.col("row").filter(pl.col(name).is_not_null())
        parts += [
            part.alias(f"{name}:{number}")
            for number, part in enumerate(
                (
                    values.len(), _total(values, total), values.min(), values.max(), values.first(), values.last(),
                    rows.get(values.arg_max()), rows.last(), rows.first(),
                )
            )
        ]  # fmt: skip
    figures = frame.select(parts).row(0) if parts else ()
    width = len(Summary.__slots__)
    summaries = {name: figures[width * i : width * (i + 1)] for i, name in enumerate(totals)}
    return {name: Summary(*values) for name, values in summaries.items() if values[0]}


def _merge_groups(stats: dict[int, Stat], frame: pl.DataFrame, name: str, most: int, record_at: RecordAt) -> None:
    """Counts the column ``name`` in ``stats`` by the whole numbers in ``group``; no more than ``most`` groups."""
    import polars as pl

    if not frame.height:
        return
    before = {group: stat.total for group, stat in stats.items()}
    start = pl.col("group").replace_strict(before, default=0.0, return_dtype=pl.Float64) if before else pl.lit(0.0)
    value = pl.col(name).cast(pl.Float64)
    sums = pl.when(pl.col("group").is_first_distinct()).then(start + value).otherwise(value)
    values, rows = pl.col(name), pl.col("row")
    groups = (
        frame.with_columns(sums.alias("_sums"))
        .group_by("group", maintain_order=True)
        .agg(
            values.len().alias("count"), pl.col("_sums").cum_sum().last().alias("total"), values.min().alias("low"),
            values.max().alias("high"), values.first().alias("first"), values.last().alias("last"),
            rows.get(values.arg_max()).alias("top_row"), rows.last().alias("last_row"), rows.first().alias("first_row"),
        )
    )  # fmt: skip
    for group, *figures in groups.iter_rows():
        if group in stats or len(stats) < most:
            Summary(*figures).merge(stats.setdefault(group, Stat()), record_at)


def _fold_track(track: Track, frame: pl.DataFrame, record_at: RecordAt) -> None:
    import polars as pl

    track.samples += frame.height
    metrics = [name for name in frame.columns if name in METRICS]
    summaries = _summaries(frame, {name: track.stats[name].total if name in track.stats else 0.0 for name in metrics})
    for name in sorted(summaries, key=lambda name: summaries[name].first_row):
        summaries[name].merge(track.stats.setdefault(name, Stat()), record_at)
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
        bucket = 64 - length.bitwise_leading_zeros().cast(pl.Int64)
        known = frame.filter(pl.col("accept_length").is_not_null() & (pl.col("tokens").fill_null(0) > 0))
        _merge_groups(track.by_context, known.with_columns(bucket.alias("group")), "accept_length", 64, record_at)
    if "decode_rate" in frame.columns:
        known = frame.filter(pl.col("_steady") & (pl.col("decode_rate").fill_null(0) > 0))
        batch = pl.col("_running").alias("group")
        _merge_groups(track.by_batch, known.with_columns(batch), "decode_rate", MAX_BATCHES, record_at)


def _points(track: Track, frame: pl.DataFrame, record_at: RecordAt) -> None:
    """Every ``stride``-th line as a point for charts; the stride grows whenever there are too many."""
    rows = frame["row"]
    columns = [frame[name] if name in frame.columns else None for name in CHARTED]
    at = (track.stride - track.skip) % track.stride
    last = None
    while at < frame.height:
        places = range(at, frame.height, track.stride)[: track.room]
        values = [[None] * len(places) if c is None else c.gather(places).to_list() for c in columns]
        times = [record_at(row).time for row in rows.gather(places)]
        track.points += zip(times, zip(*values, strict=True), strict=True)
        track.thin()
        last = places[-1]
        at = last + track.stride
    gone = track.skip + frame.height if last is None else frame.height - last
    track.skip = gone % track.stride
