"""Answers of a server's front end that tell of a failure which no other line explains."""

from __future__ import annotations

from analyzer.events import Event
from analyzer.run.facts import Where
from analyzer.run.model import Run

_PROBES = ("/health", "/ready", "/live", "/metrics", "/ping")
"""Paths that are asked by machines; that such a one says 503 while a server starts is what it is for."""

_NO_ERROR = (501, 503)
"""The server does not do this, or not now: an answer it chose, without an error behind it."""
_TOLD = frozenset({
    "queue_full", "retraction_abort", "retraction_exhausted", "request_table_full", "request_over_context",
    "request_total_over_context", "request_over_pool", "transfer_failed", "transfer_aborted", "transfer_timeout",
    "transfer_worker_failed", "prefill_lost", "bootstrap_silent", "output_without_request", "health_failed",
    "embedding_mismatch", "kv_transfer_failed", "shutdown_aborts", "rpc_timeout",
})  # fmt: skip
"""Lines that say what became of a request; SGLang prints no level, so that they are known by their kind."""


def _failed(event: Event) -> bool:
    if event.kind != "http_access" or event.fields["status"] < 500 or event.fields["status"] in _NO_ERROR:
        return False
    return not str(event.fields["path"]).startswith(_PROBES)


def write_unexplained(run: Run, explained: bool) -> None:
    """Writes how many requests were answered with a server's error, where nothing in the log tells of one.

    ``explained``: an error stands in the log, of whatever kind. No more are counted than events of a kind are kept.
    """
    failed = [event for event in run.events if _failed(event)]
    told = explained or any(record.level == "ERROR" for record in run.scary)
    if failed and not told and not any(e.kind in _TOLD or e.record.level == "ERROR" for e in run.events):
        where = [Where.of(event.record) for event in [failed[0], *failed[1:][-1:]]]
        run.facts.add("requests.failed_unexplained", len(failed), where, rank="")
