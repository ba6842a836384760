"""Whether data-parallel engines share the work: one has requests waiting while another has next to nothing to do.

Each engine has a scheduler, a queue and a pool of its own, so a request that waits in one is not taken by another.
vLLM prints a line for each engine at the same times and leaves out those of one that is idle, which therefore count as
lines without load; SGLang's ranks print after so many steps, and only their own lines tell of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from analyzer.run.facts import Facts, Where
from analyzer.run.series import Line, Series, Track

_ENGINE = re.compile(r"\bDP\d+\b|^Engine \d+$")


def write_balance(series: Series, facts: Facts, *, timed: bool = False) -> None:
    """``load.pressed_*`` and ``load.spare_*``: the engine most often with a queue, and the one with the least load.

    ``timed``: lines are printed at fixed times. Nothing is written of a single engine, or where no request waits.
    """
    engines = _engines(series)
    if len(engines) < 2:
        return
    facts.add("load.engines", len(engines), None, rank="")
    name, pressed = max(engines.items(), key=lambda item: item[1].waiting.samples)
    waiting = pressed.waiting
    if not waiting.samples:
        return
    times = max(map(_lines, engines.values())) if timed else 0
    others = {other: track for other, track in engines.items() if track is not pressed}
    spare_name, spare = min(others.items(), key=lambda item: (_mean(item[1], "usage", times), item[1].waiting.samples))
    where = _places(record for record in (waiting.first, waiting.last))
    facts.add("load.pressed_engine", name, where, rank="")
    facts.add("load.pressed_lines", waiting.samples, where, rank="")
    facts.add("load.pressed_waiting", _share_waiting(pressed), where, rank="")
    facts.add("load.pressed_usage", _mean(pressed, "usage", 0), where, rank="")
    facts.add("load.pressed_running", _mean(pressed, "running", 0), where, rank="")
    where = _places(stat.top for metric in ("usage", "running") if (stat := spare.stats.get(metric)) is not None)
    facts.add("load.spare_engine", spare_name, where, rank="")
    facts.add("load.spare_waiting", _share_waiting(spare), where, rank="")
    facts.add("load.spare_usage", _mean(spare, "usage", times), where, rank="")
    facts.add("load.spare_running", _mean(spare, "running", times), where, rank="")


def _engines(series: Series) -> dict[str, Track]:
    """The series of each data-parallel engine; of one with several ranks that of most lines."""
    found: dict[str, Track] = {}
    names: dict[str, str] = {}
    for rank, track in series.named().items():
        match = _ENGINE.search(rank)
        if match is None or "running" not in track.stats or "queued" not in track.stats:
            continue
        known = names.get(match[0])
        if known is None or found[known].samples < track.samples:
            found.pop(known or "", None)
            names[match[0]] = rank
            found[rank] = track
    return found


def _lines(track: Track) -> int:
    return track.stats["running"].count


def _mean(track: Track, metric: str, times: int) -> float:
    """The mean over all times at which an engine printed, or would have if it had not been idle."""
    stat = track.stats.get(metric)
    return stat.total / max(stat.count, times) if stat is not None and stat.count else 0.0


def _share_waiting(track: Track) -> float:
    """The share of the lines under load that show requests waiting."""
    busy = max(track.decodes, track.waiting.samples)
    return track.waiting.samples / busy if busy else 0.0


def _places(records: Iterable[Line | None]) -> list[Where]:
    return list(dict.fromkeys(Where.of(record) for record in records if record is not None))
