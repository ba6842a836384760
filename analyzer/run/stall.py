"""A vLLM server that goes on printing statistics while nothing moves any more.

When a step hangs, the front end still prints its line every few seconds: the same requests run, the pool is as full as
it was, and no token is read or written. No error follows, for nothing has a time limit. Only the end of the log counts:
a pause in its middle is over.
"""

from __future__ import annotations

from analyzer.run.facts import Facts, Where
from analyzer.run.series import CHARTED, Series, Track

_RUNNING, _USAGE, _RATE = (CHARTED.index(name) for name in ("running", "usage", "decode_rate"))


def write_stall(series: Series, facts: Facts) -> None:
    """``load.stalled_lines`` and ``load.stalled_running``, if the last lines of a rank show requests that stand."""
    found = max((_standing(track) for track in series.tracks.values()), default=(0, 0.0))
    running = series.stat("running")
    if not found[0] or running is None or (prompts := series.stat("prefill_rate")) is None or prompts.last > 0:
        return
    where = Where.of(running.end) if running.end is not None else None
    facts.add("load.stalled_lines", found[0], where, rank="")
    facts.add("load.stalled_running", found[1], where, rank="")


def _standing(track: Track) -> tuple[int, float]:
    """How many of the last lines show the same requests, the same usage and no token, and how many requests run."""
    lines, state = 0, (0.0, 0.0)
    for _, values in reversed(track.points):
        running, usage, rate = values[_RUNNING], values[_USAGE], values[_RATE]
        if running is None:
            continue
        if not running or rate is None or rate > 0:
            break
        if lines and (running, usage or 0.0) != state:
            break
        lines, state = lines + track.stride, (running, usage or 0.0)
    return lines, state[0]
