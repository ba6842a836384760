"""What stands close before an end that gives no reason of its own, and was written down as a warning only."""

from __future__ import annotations

from analyzer.run.classify import DEVICE_TEXT, Entry

_WINDOW_SECONDS = 180.0
_WINDOW_RECORDS = 600


def noted_before(cause: Entry | None, marked: list[tuple[Entry, str]]) -> Entry | None:
    """What failed on the device and was only noted, just before an end that gives no reason; else ``cause``."""
    if cause is None or cause.code is not None or not (cause.failure.kind == "killed" or cause.failure.wrapper):
        return cause
    noted = [
        e for e, fate in marked
        if fate == "candidate" and e.noted and e.order < cause.order and near(e, cause)
        and DEVICE_TEXT.search(f"{e.failure.exception}: {e.failure.message}")
    ]  # fmt: skip
    return noted[-1] if noted else cause


def near(a: Entry, b: Entry) -> bool:
    """Whether two entries are close enough for one to have led to the other."""
    if a.time is not None and b.time is not None:
        return abs(a.time - b.time) <= _WINDOW_SECONDS
    return abs(a.order - b.order) <= _WINDOW_RECORDS
