"""An analysis that is asked for its findings whenever something new was proved."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from analyzer.pipeline import Analysis, Options, Reader

if TYPE_CHECKING:
    from analyzer.events import Event
    from analyzer.framing.record import Record
    from analyzer.report.model import Finding, Report, RunReport

SOON = 0.04
"""Seconds between two judgements while start-up events arrive."""
LATER = 1.0
"""Seconds between two judgements while only runtime lines arrive, or while more has been written than was read."""
SHARE = 10
"""A judgement that takes long waits so many times its own length before it is made again in a backlog."""
BETWEEN = 1.0
"""Seconds that the rest of a traceback may take: its writer is slow, or a pipe has cut it."""
TAIL = 500
"""Bytes at the end of a chunk in which the latest frame of a progress bar is looked for."""
BAR = re.compile(r"[^:|]{0,80}: *\d{1,3}%.*")
OFTEN = 50
"""An event that comes more often than this is one of many: it can wait for the next judgement in its turn."""
DENSE = frozenset({"http_access", "prefill_batch", "decode_batch", "engine_stats", "spec_stats"})


@dataclass(slots=True)
class Notice:
    """Something that has just been proved: a finding, a failure, or a change of outcome."""

    run: int
    text: str
    severity: str
    line: int = 0
    rule: str = ""
    delay: float = 0.0
    """Seconds from the arrival of the bytes to this notice."""
    withdrawn: bool = False
    """A finding that later lines have refuted."""


@dataclass(slots=True)
class Session:
    """Feeds an analysis and turns what is new in its reports into notices."""

    options: Options = field(default_factory=Options)
    analysis: Analysis = field(init=False)
    _readers: dict[str, Reader] = field(default_factory=dict)
    _dirty: bool = False
    _urgent: bool = False
    _held: bool = False
    _arrived: float = 0.0
    _heard: float = 0.0
    _judged: float = 0.0
    _cost: float = 0.0
    _known: set[tuple[int, str, str]] = field(default_factory=set)
    _seen: Counter[str] = field(default_factory=Counter)
    _standing: dict[tuple[int, str], Finding] = field(default_factory=dict)
    report: Report | None = None
    progress: str = ""
    """The progress bar that is moving now, as its program prints it."""

    def __post_init__(self) -> None:
        self.analysis = Analysis(self.options, on_event=self._event)

    def feed(self, source: str, chunk: bytes, *, behind: bool = False) -> None:
        """Takes bytes of one input. ``behind``: more are waiting, so nobody is looking at each event as it comes."""
        if source not in self._readers:
            self._readers[source] = self.analysis.reader(source, live=True)
        if not self._dirty:
            self._arrived = time.monotonic()
        self.analysis.on_event = None if behind else self._event
        self._readers[source].feed(chunk)
        self.analysis.on_event = self._event
        self._urgent |= behind
        self._heard = time.monotonic()
        self._progress_in(chunk)
        self._dirty = self._held = True

    def _progress_in(self, chunk: bytes) -> None:
        """Keeps the last frame of a progress bar, which may go on for minutes without an end of line."""
        tail = chunk[-TAIL:].rstrip(b"\r\n ").replace(b"\r", b"\n").rpartition(b"\n")[2]
        found = BAR.search(tail.decode("utf-8", "replace"))
        self.progress = found[0] if found and "100%" not in found[0] else ""

    def silent(self) -> None:
        """Nothing came for a moment: the last record is whole, as far as anyone can tell."""
        if not self._held:
            return
        self._held = False
        late = time.monotonic() - self._heard > BETWEEN
        for reader in self._readers.values():
            if reader.framer.unfinished and not late:
                self._held = True
            else:
                reader.flush()

    @property
    def settled(self) -> bool:
        """Whether nothing that came is held back for a next line."""
        return not self._held

    def close(self) -> Iterator[Notice]:
        """Says that all inputs have ended."""
        for reader in self._readers.values():
            reader.close()
        self._dirty = self._urgent = True
        self._judged = 0.0
        yield from self.notices()

    def notices(self, *, behind: bool = False) -> Iterator[Notice]:
        """What is new since the last call, if it is time to judge again. ``behind``: more bytes are waiting."""
        now = time.monotonic()
        if behind:
            due = max(LATER, SHARE * self._cost)
        else:
            due = SOON if self._urgent else LATER
        if not self._dirty or now - self._judged < due:
            return
        if now - self._judged < BETWEEN and any(r.framer.unfinished for r in self._readers.values()):
            return  # its head alone would be taken for a failure without a name
        self.report = self.analysis.report()
        self._dirty = self._urgent = False
        self._judged = time.monotonic()
        self._cost = self._judged - now
        delay = self._judged - self._arrived
        for run in self.report.runs:
            yield from self._of_run(run, delay)

    def _of_run(self, run: RunReport, delay: float) -> Iterator[Notice]:
        if run.failure is not None and self._new(run.id, "failure", run.failure.cause):
            text = f"{run.failure.cause}: {run.failure.exception} {run.failure.message}".strip()
            line = run.failure.lines[0] if run.failure.lines else 0
            yield Notice(run.id, text, "critical", line, run.failure.rule, delay)
        for f in run.findings:
            if self._new(run.id, "finding", f.rule):
                yield Notice(run.id, _one_line(f), f.severity, f.evidence[0].line if f.evidence else 0, f.rule, delay)
        yield from self._withdrawn(run, delay)
        if run.outcome not in ("unknown",) and self._new(run.id, "outcome", run.outcome):
            line = run.outcome_basis[0].line if run.outcome_basis else 0
            yield Notice(run.id, f"outcome: {run.outcome}", "info", line, "", delay)

    def _withdrawn(self, run: RunReport, delay: float) -> Iterator[Notice]:
        """Findings that were said of ``run`` and no longer hold, each once."""
        now = {(run.id, f.rule): f for f in run.findings}
        for key in [key for key in self._standing if key[0] == run.id and key not in now]:
            finding = self._standing.pop(key)
            if self._new(run.id, "withdrawn", finding.rule):
                text = f"no longer holds: {finding.title}"
                yield Notice(run.id, text, "info", 0, finding.rule, delay, withdrawn=True)
        self._standing |= now

    def _new(self, run: int, kind: str, name: str) -> bool:
        key = (run, kind, name)
        if key in self._known:
            return False
        self._known.add(key)
        return True

    def _event(self, record: Record, event: Event | None) -> None:
        if record.form == "traceback":
            self._urgent = True
        elif event is not None and event.kind not in DENSE:
            self._seen[event.kind] += 1
            self._urgent |= self._seen[event.kind] <= OFTEN


def _one_line(finding: Finding) -> str:
    lost = f" ({finding.lost_tokens:,.0f} tokens)" if finding.lost_tokens else ""
    return f"{finding.title}{lost}: {finding.summary}"
