"""A vLLM server that goes on printing statistics while nothing moves any more.

When a step hangs, the front end still prints its line every few seconds: the same requests run, the pool is as full as
it was, and no token is read or written. A request that can never be admitted (longer than the pool in V0, waiting for
KV or a grammar that does not come in V1) leaves another picture: it waits and nothing runs. No error follows, for
nothing has a time limit. Only the end of the log counts: a pause in its middle is over.
"""

from __future__ import annotations

from collections import Counter

from analyzer.events import Event
from analyzer.run.facts import Facts, Where
from analyzer.run.series import CHARTED, Series, Track

_RUNNING, _QUEUED, _USAGE, _RATE = (CHARTED.index(name) for name in ("running", "queued", "usage", "decode_rate"))


def write_stall(series: Series, facts: Facts) -> None:
    """``load.stalled_*`` if the last lines of a rank show requests that stand, ``load.stuck_*`` if they only wait."""
    _write_stuck(series, facts)
    found = max((_standing(track) for track in series.tracks.values()), default=(0, 0.0))
    running = series.stat("running")
    if not found[0] or running is None or series.stat("prefill_rate") is None or _moves(series):
        return
    where = Where.of(running.end) if running.end is not None else None
    facts.add("load.stalled_lines", found[0], where, rank="")
    facts.add("load.stalled_running", found[1], where, rank="")


def _moves(series: Series) -> bool:
    """Whether the last line of an engine shows prompts read; of several engines, also tokens written by one of them."""
    names = ("prefill_rate",) if len(series.tracks) == 1 else ("prefill_rate", "decode_rate")
    return any(track.stats[name].last > 0 for track in series.tracks.values() for name in names if name in track.stats)


def write_waits(events: list[Event], serving: Where | None, facts: Facts) -> None:
    """``load.broadcast_waits``: processes that waited for a worker after ``serving``, where the server first served;
    ``load.lookups_repeated``: how often the KV store was asked for the request that it was asked for most often."""
    lookups = [event for event in events if event.kind == "lmcache_hit"]
    if serving is not None:
        waits = [event for event in events if event.kind == "broadcast_wait"]
        late = [e for e in waits if e.record.source != serving.source or e.line > serving.line]
        if late:
            facts.add("load.broadcast_waits", len(late), [Where.of(e.record) for e in (late[0], late[-1])], rank="")
    requests = Counter(str(event.get("request")) for event in lookups)
    request, count = next(iter(requests.most_common(1)), ("", 0))
    if count > 1:
        last = [event for event in lookups if str(event.get("request")) == request][-1]
        facts.add("load.lookups_repeated", count, last.record, rank="")


def _write_stuck(series: Series, facts: Facts) -> None:
    stuck = max((_waiting_alone(track) for track in series.tracks.values()), default=(0, 0.0))
    queued = series.stat("queued")
    if not stuck[0] or queued is None or _reads_prompts(series):
        return
    where = Where.of(queued.end) if queued.end is not None else None
    facts.add("load.stuck_lines", stuck[0], where, rank="")
    facts.add("load.stuck_queue", stuck[1], where, rank="")


def _reads_prompts(series: Series) -> bool:
    """Whether prompts are still read, or all that the server does is to read them (embeddings, scores)."""
    prompts, tokens = series.stat("prefill_rate"), series.stat("decode_rate")
    if prompts is None or tokens is None:
        return False
    return _moves(series) or (prompts.high > 0 and tokens.high == 0)


def _waiting_alone(track: Track) -> tuple[int, float]:
    """How many of the last lines show requests that wait while none runs and no token moves, and how many wait."""
    lines, waiting = 0, 0.0
    for _, values in reversed(track.points):
        running, queued, rate = values[_RUNNING], values[_QUEUED], values[_RATE]
        if running is None:
            continue
        if running or not queued or rate is None or rate > 0 or (lines and queued < waiting):
            break
        lines, waiting = lines + track.stride, queued
    return lines, waiting


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
