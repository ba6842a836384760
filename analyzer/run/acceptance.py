"""How vLLM's acceptance length moves: with the context of the running requests, and with time.

vLLM prints a statistics line and, right after it, one of speculation. The first gives the requests that run and the
share of the pool that they hold, so the tokens of one request; the second what was accepted in the same interval. Both
are read from the thinned points of the series: a few hundred samples tell as much as all of them.
"""

from __future__ import annotations

from itertools import pairwise
from statistics import fmean

from analyzer.run.facts import Facts, Where
from analyzer.run.series import CHARTED, Series, Track

_RUNNING, _USAGE, _LENGTH = (CHARTED.index(name) for name in ("running", "usage", "accept_length"))
_FEWEST_OF_A_CONTEXT = 3
"""Samples that make a mean of one range of contexts."""
_APART = 2
"""Doublings of the context that two ranges must be apart to be compared."""
_FEWEST_OF_A_THIRD = 6
"""Samples that make a mean of one third of the run."""

Sample = tuple[float | None, float]
"""Tokens of one running request, where they are known, and the acceptance length."""


def write_acceptance(series: Series, facts: Facts) -> None:
    """The facts of a falling acceptance; none where the lines are too few."""
    pool = facts.value("pool.tokens")
    tracks = [_samples(track, pool if isinstance(pool, int | float) else None) for track in series.tracks.values()]
    samples = max(tracks, key=len, default=[])
    length = series.stat("accept_length")
    if length is None or not samples:
        return
    where = [Where.of(record) for record in (length.top, length.end) if record is not None]
    _write_by_context(samples, where, facts)
    _write_by_time([accepted for _, accepted in samples], where, facts)


def _samples(track: Track, pool: float | None) -> list[Sample]:
    """The lines of speculation of one rank, each with the statistics line right before it."""
    samples: list[Sample] = []
    for (_, before), (_, values) in pairwise([(None, (None,) * len(CHARTED)), *track.points]):
        accepted = values[_LENGTH]
        if accepted is None:
            continue
        running, usage = before[_RUNNING], before[_USAGE]
        known = pool is not None and running and usage and before[_LENGTH] is None
        samples.append((usage * pool / running if known else None, accepted))  # type: ignore[operator]
    return samples


def _write_by_context(samples: list[Sample], where: list[Where], facts: Facts) -> None:
    ranges: dict[int, list[float]] = {}
    for context, accepted in samples:
        if context is not None:
            ranges.setdefault(max(1, int(context)).bit_length(), []).append(accepted)
    found = sorted((size, lengths) for size, lengths in ranges.items() if len(lengths) >= _FEWEST_OF_A_CONTEXT)
    if len(found) < 2 or found[-1][0] - found[0][0] < _APART:
        return
    facts.add("spec.accept_length_short", fmean(found[0][1]), where, rank="")
    facts.add("spec.accept_length_long", fmean(found[-1][1]), where, rank="")
    facts.add("spec.accept_long_context", float(1 << found[-1][0] - 1), where, rank="")


def _write_by_time(lengths: list[float], where: list[Where], facts: Facts) -> None:
    third = len(lengths) // 3
    if third < _FEWEST_OF_A_THIRD:
        return
    parts = lengths[:third], lengths[third:-third], lengths[-third:]
    for name, part in zip(("early", "middle", "late"), parts, strict=True):
        facts.add(f"spec.accept_length_{name}", fmean(part), where, rank="")
