"""Drafts that were accepted and then, to the end of the log, never again: the output went bad, not the draft.

SGLang prints the accept length with each decode line. A draft that never fitted is at 1.00 from the first line on; here
the length was sound before, and every later line of the same rank says 1.00 while requests run. Only the end of the log
counts: a few such lines in its middle are one odd prompt.
"""

from __future__ import annotations

from statistics import fmean

from analyzer.run.facts import Facts, Where
from analyzer.run.series import CHARTED, Series, Track

_RUNNING, _LENGTH = (CHARTED.index(name) for name in ("running", "accept_length"))
_NOTHING = 1.02
"""An accept length as printed that means no draft token at all."""
_SOUND = 1.3
_FEWEST_BEFORE = 3


def write_collapse(series: Series, facts: Facts) -> None:
    """``spec.collapsed_lines``, ``spec.accept_length_before``: if the last lines of a rank accept nothing any more."""
    lines, before = max((_collapsed(track) for track in series.tracks.values()), default=(0, 0.0))
    length = series.stat("accept_length")
    if not lines or length is None:
        return
    where = [Where.of(record) for record in (length.top, length.end) if record is not None]
    facts.add("spec.collapsed_lines", lines, where, rank="")
    facts.add("spec.accept_length_before", before, where, rank="")


def _collapsed(track: Track) -> tuple[int, float]:
    """How many of the last decode lines accept nothing, and the mean accept length before them."""
    lengths = [values[_LENGTH] for _, values in track.points if values[_RUNNING] and values[_LENGTH] is not None]
    accepted = [length for length in lengths if length is not None]
    sound = next((at for at, length in enumerate(reversed(accepted)) if length > _NOTHING), len(accepted))
    earlier = accepted[: len(accepted) - sound]
    if len(earlier) < _FEWEST_BEFORE or fmean(earlier) < _SOUND:
        return 0, 0.0
    return sound * track.stride, fmean(earlier)
