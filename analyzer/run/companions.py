"""Streams of one server that came as several sources: which belong together.

Standard error of a run has no start of its own: it belongs to the run whose processes it names, else to the one whose
time it shares, else to the only one there is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

_SLACK_SECONDS = 120.0


class Stream(Protocol):
    """What must be known of a run to pair it."""

    source: str
    pids: set[int]
    first_time: float | None
    last_time: float | None

    @property
    def has_start(self) -> bool: ...


S = TypeVar("S", bound=Stream)


def paired(streams: Sequence[S], *, forced: bool = False) -> list[tuple[S, list[S]]]:
    """Each run with its companions, in the order of the runs. ``forced``: the caller says that all belong together."""
    mains = [s for s in streams if s.has_start]
    if not mains:
        mains = list(streams[:1]) if forced else list(streams)
    companions: dict[int, list[S]] = {id(main): [] for main in mains}
    order = list(mains)
    for stream in streams:
        if id(stream) in companions:
            continue
        home = _home(stream, mains, forced)
        if home is None:
            companions[id(stream)] = []
            order.append(stream)
        else:
            companions[id(home)].append(stream)
    place = {id(stream): number for number, stream in enumerate(streams)}
    return [(main, companions[id(main)]) for main in sorted(order, key=lambda s: place[id(s)])]


def _home(stream: S, mains: Sequence[S], forced: bool) -> S | None:
    others = [main for main in mains if main.source != stream.source]
    by_pid = [main for main in others if main.pids & stream.pids]
    if by_pid:
        return by_pid[-1]
    if stream.pids and any(main.pids for main in others) and not forced:
        return None  # both name their processes, and they are others
    by_time = [main for main in others if _share_time(main, stream)]
    if by_time:
        return by_time[-1]
    if forced or stream.first_time is None:
        return others[0] if len(others) == 1 or (forced and others) else None
    return None


def _share_time(a: Stream, b: Stream) -> bool:
    if a.first_time is None or a.last_time is None or b.first_time is None or b.last_time is None:
        return False
    return b.first_time <= a.last_time + _SLACK_SECONDS and a.first_time <= b.last_time + _SLACK_SECONDS
