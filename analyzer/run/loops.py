"""Several runs of one service in one log: a restart loop is itself a finding worth a sentence."""

from __future__ import annotations

from collections.abc import Sequence

from analyzer.run.model import Run


def note_loop(runs: Sequence[Run], times: Sequence[tuple[float | None, float | None]]) -> None:
    """Adds to the last run of each source how many runs there were, how long each lived, and whether one cause."""
    by_source: dict[str, list[int]] = {}
    for index, run in enumerate(runs):
        by_source.setdefault(run.source, []).append(index)
    for indexes in by_source.values():
        if len(indexes) < 2:
            continue
        lives = [_life(*times[i]) for i in indexes if i < len(times)]
        failed = [runs[i].failure for i in indexes]
        names = {f"{f.exception}: {f.message[:80]}" for f in failed if f is not None}
        known = [f for f in failed if f is not None]
        if len(known) >= 2 and len(names) == 1:
            same = f", {len(known)} of them with the same cause"
        elif len(known) >= 2:
            same = f", {len(known)} of them failed, with {len(names)} different causes"
        else:
            same = ""
        lived = ", ".join(life for life in lives if life)
        note = f"This log holds {len(indexes)} runs{same}." + (f" They lived {lived}." if lived else "")
        runs[indexes[-1]].notes.append(note)


def _life(first: float | None, last: float | None) -> str:
    return "" if first is None or last is None or last < first else f"{last - first:.0f} s"
