"""Answers of a server's front end that tell of a failure which no other line explains."""

from __future__ import annotations

from analyzer.events import Event
from analyzer.run.facts import Where
from analyzer.run.model import Run

_PROBES = ("/health", "/ready", "/live", "/metrics", "/ping")
"""Paths that are asked by machines; that such a one says 503 while a server starts is what it is for."""


def _failed(event: Event) -> bool:
    if event.kind != "http_access" or event.fields["status"] < 500:
        return False
    return not str(event.fields["path"]).startswith(_PROBES)


def write_unexplained(run: Run, explained: bool) -> None:
    """Writes how many requests were answered with a server's error, where nothing in the log tells of one.

    ``explained``: an error stands in the log, of whatever kind. No more are counted than events of a kind are kept.
    """
    failed = [event for event in run.events if _failed(event)]
    if failed and not explained and not any(record.level == "ERROR" for record in run.scary):
        where = [Where.of(event.record) for event in [failed[0], *failed[1:][-1:]]]
        run.facts.add("requests.failed_unexplained", len(failed), where, rank="")
