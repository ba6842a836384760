"""Folds the stream of records and events into runs: which run a record belongs to, what it adds, how the run stands."""

from __future__ import annotations

import importlib
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Protocol

from analyzer.events import Event
from analyzer.framing.record import Record
from analyzer.run import leaks, signals, split
from analyzer.run.facts import Where
from analyzer.run.failures import Entry, FailureLog, engine_frame
from analyzer.run.loops import note_loop
from analyzer.run.model import STAGES, Failure, Run
from analyzer.run.outcome import decide
from analyzer.run.split import Mark
from analyzer.run.tracebacks import HEADER
from analyzer.run.unfinished import Unfinished

ENGINES = ("sglang", "vllm")
_FOLDERS = {"sglang": "SglangFolder", "vllm": "VllmFolder"}
COMMON_STAGE_OF = {
    "http_app_started": "ready",
    "http_running": "ready",
    "http_access": "serving",
    "processed_prompts": "serving",
}
"""Stages of shapes that both engines print. SGLang is ready only when it says so itself: its warm-up comes later."""

_ACTIVITY = ("running", "decode_rate", "prefill_rate", "new_tokens", "tokens", "accepted")
_PROBES = re.compile(r"^/(?:health\w*|ping|metrics|version|v1/models|models|\w*model_info|\w*server_info|load)\b")
_SCARY = re.compile(
    r"(?i)\berror|exception|\bfail|fatal|\bwarn|traceback|\bkill|\babort|crash|leak|denied|refused|cannot|could not"
    r"|unable|invalid|deprecat|not (?:found|supported|available|installed)|unsupported|missing|\U0001f6a8"
)
_MAX_EVENTS, _MAX_PER_KIND, _MAX_SCARY = 20_000, 400, 1_000
_WARM_UP_LINES = 2
"""What a warm-up prints: a batch and the answer."""
_STREAM_NAMES = re.compile(r"(?:^|[./: -])(?:stdout|stderr|std|out|err)$")


class EngineFolder(Protocol):
    """What each engine's own folder gives."""

    def feed(self, event: Event) -> None:
        """Takes one event of this engine."""

    def fill(self, run: Run) -> None:
        """Writes what was learnt into ``run``."""


def _engine_folder(engine: str) -> EngineFolder:
    module = importlib.import_module(f"analyzer.run.{engine}")
    folder: EngineFolder = getattr(module, _FOLDERS[engine])()
    return folder


def _stages_of(engine: str) -> dict[str, str]:
    if engine not in ENGINES:
        return COMMON_STAGE_OF
    table: dict[str, str] = importlib.import_module(f"analyzer.run.{engine}").STAGE_OF
    return table


@dataclass(slots=True)
class Building:
    """One run while it is being read."""

    source: str
    stream: str
    first_line: int = 0
    last_line: int = 0
    order: int = 0
    marks: dict[str, Mark] = field(default_factory=dict)
    stages: dict[str, Where] = field(default_factory=dict)
    votes: Counter[str] = field(default_factory=Counter)
    folders: dict[str, EngineFolder] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    scary: list[Record] = field(default_factory=list)
    log: FailureLog = field(default_factory=FailureLog)
    app_started: Where | None = None
    answers: int = 0
    answered: Where | None = None
    """Where a client got its answer (not only a line of a batch)."""
    ready_at: Where | None = None
    served_at: Where | None = None
    last: Record | None = None
    first_time: float | None = None
    last_time: float | None = None
    steps: Unfinished = field(default_factory=Unfinished)
    step_times: dict[int, float] = field(default_factory=dict)
    kinds: Counter[str] = field(default_factory=Counter)
    kept: Counter[str] = field(default_factory=Counter)
    sources: dict[str, None] = field(default_factory=dict)
    top: int = 0
    """Index of the furthest stage."""

    @property
    def stage(self) -> str:
        """The furthest stage reached, ``""`` for none."""
        return STAGES[self.top] if self.stages else ""

    @property
    def ended(self) -> bool:
        """Whether the log already shows an end: a stop, a death, or an exception that is nobody's request."""
        return self.log.stop is not None or any(not e.client for e in self.log.entries)

    @property
    def engine(self) -> str | None:
        """The engine that most events belong to."""
        return self.votes.most_common(1)[0][0] if self.votes else None

    # evidence for outcome.decide

    @property
    def seen_start(self) -> bool:
        """Whether the log shows the server's start, so that a missing ready line means something."""
        return bool(self.marks.keys() - {split.COMMAND, split.PREAMBLE}) or any(
            s in self.stages for s in ("arguments", "weights", "pool")
        )

    @property
    def stop(self) -> Where | None:
        """Where somebody asked the server to stop."""
        return self.log.stop[1] if self.log.stop else None

    @property
    def ready(self) -> Where | None:
        """Where the server said that it serves. For SGLang the web application alone is no proof."""
        if self.ready_at is None and self.app_started is not None and self.engine != "sglang":
            return self.app_started
        return self.ready_at

    @property
    def served(self) -> Where | None:
        """Where a request was answered; the warm-up of a server that is not yet ready does not count."""
        warming = self.engine == "sglang" and self.seen_start and self.ready_at is None
        return None if warming and self.answers <= _WARM_UP_LINES else self.served_at

    # what is seen

    def take(self, record: Record, event: Event | None) -> None:
        """Adds one record to the run."""
        self.order += 1
        if not self.first_line:
            self.first_line = record.line
        if record.source == self.source:
            self.last_line = max(self.last_line, record.last_line)
        self.sources.setdefault(record.source)
        self.last = record
        if record.time is not None:
            self.last_time = record.time
            if self.first_time is None:
                self.first_time = record.time
        if event is not None:
            self._event(event)
        if event is None or not self._dense(event):
            self._trouble(record, event)

    def _event(self, event: Event) -> None:
        engine, kind = event.engine, event.kind
        if engine in ENGINES:
            self.votes[engine] += 1
            folder = self.folders.get(engine)
            if folder is None:
                folder = self.folders[engine] = _engine_folder(engine)
            folder.feed(event)
        self.kinds[kind] += 1
        self.steps.feed(event)
        if not self._dense(event):
            self._keep(event)
        if stage := _stages_of(engine).get(kind):
            self._stage(stage, event)

    def _keep(self, event: Event) -> None:
        self.kept[event.kind] += 1
        if self.kept[event.kind] <= _MAX_PER_KIND and len(self.events) < _MAX_EVENTS:
            self.events.append(event)
            if event.record.time is not None:
                self.step_times[event.line] = event.record.time

    def _dense(self, event: Event) -> bool:
        """Whether the event is one of the many of a serving run; a request that was refused is not."""
        if event.kind == "http_access":
            return int(event.get("status", 0)) < 400
        return _stages_of(event.engine).get(event.kind) == "serving"

    def _stage(self, stage: str, event: Event) -> None:
        if stage == "serving":
            if not _activity(event):
                return
            self.answers += 1
            if event.kind == "http_access":
                self.answered = self.answered or Where.of(event.record)
            self.log.served(self.order)
            if self.served_at is None:
                self.served_at = Where.of(event.record)
        elif stage == "ready":
            if event.engine in ENGINES:
                self.log.became_ready(self.order)
                self.ready_at = self.ready_at or Where.of(event.record)
            else:
                self.app_started = self.app_started or Where.of(event.record)
                if self.engine == "sglang":
                    return
                self.log.became_ready(self.order)
        if stage not in self.stages:
            self.stages[stage] = Where.of(event.record)
            if stage != "shutdown":
                self.top = max(self.top, STAGES.index(stage))

    def _trouble(self, record: Record, event: Event | None) -> None:
        if record.form == "bar":
            return
        ready = self.ready is not None or self.served is not None
        if record.form == "traceback" or HEADER in record.text:
            self.log.traceback(record, self.order, self.stage, ready)
            return
        signal = signals.signal_of(event) if event is not None else None
        if record.level in ("", "ERROR", "CRITICAL") and self.log.lone_exception(record, self.order, self.stage, ready):
            return
        if signal is not None:
            self.log.signal(record, signal, self.order, self.stage, ready)
        else:
            self.log.head(record)
        if event is None and len(self.scary) < _MAX_SCARY and _frightening(record):
            self.scary.append(record)

    # what is made of it

    def run(self, number: int, closed: bool) -> Run:
        """The run as it stands. ``closed``: no more lines will come, so that an open step means something."""
        run = Run(number, self.source, self.first_line, self.last_line, engine=self.engine)
        run.events, run.scary, run.stages = list(self.events), list(self.scary), dict(self.stages)
        run.kinds = dict(self.kinds)
        run.failures = self.log.judged(self.order)
        run.engine = run.engine or _engine_by_frames(run.failures)
        if run.engine is not None:
            (self.folders.get(run.engine) or _engine_folder(run.engine)).fill(run)
        cause, entry = run.failure, self.log.cause_entry()
        verdict = decide(self, run.failures, entry.ready if entry else False)
        run.outcome, run.outcome_basis = verdict.outcome, verdict.basis
        run.facts.add("outcome", run.outcome, run.outcome_basis)
        if run.stage:
            run.facts.add("stage", run.stage, run.stages[run.stage])
        if cause is not None:
            _failure_facts(run, cause, entry)
        if closed:
            self._note_end(run)
        return run

    def _note_end(self, run: Run) -> None:
        """Says what was under way when the log ended without an end."""
        if run.outcome not in ("starting", "serving") or self.last is None:
            return
        line = self.last.last_line
        found = self.steps.under_way(run.outcome == "serving")
        if found is not None:
            step, where = found
            run.facts.add("end.unfinished", step, where, rank="")
            if self.last_time is not None and (begun := self.step_times.get(where.line)) is not None:
                run.facts.add("end.waited", max(0.0, self.last_time - begun), where, rank="")
        if run.outcome == "starting":
            doing = f"while {found[0]}" if found else f"after stage {run.stage!r}"
            run.notes.append(f"The log ends at line {line} {doing}, without an error and without an end.")

    @property
    def end(self) -> Where | None:
        """The last line."""
        return Where.of(self.last) if self.last else None


def _engine_by_frames(failures: list[Failure]) -> str | None:
    """The engine whose files a traceback passes through, for a log that holds nothing else."""
    files = [frame.file for failure in failures for frame in failure.frames]
    return next((engine for engine in ENGINES if any(f"/{engine}/" in file for file in files)), None)


def _frightening(record: Record) -> bool:
    """Whether a reader might take ``record`` for an error."""
    if not record.text.strip():
        return False
    return record.level in ("ERROR", "CRITICAL", "WARNING") or _SCARY.search(record.text) is not None


def _activity(event: Event) -> bool:
    """Whether an event of the serving stage shows a request being served (not a probe, not an idle statistic)."""
    path = event.get("path")
    if path is not None:
        answered = event.get("method") == "POST" and 200 <= int(event.get("status", 0)) < 300
        return answered and _PROBES.match(str(path)) is None
    values = [event.get(name) for name in _ACTIVITY if event.get(name) is not None]
    return not values or any(isinstance(v, int | float) and v > 0 for v in values)


def _failure_facts(run: Run, cause: Failure, entry: Entry | None) -> None:
    facts, where = run.facts, cause.where
    frames = "\n".join(f"{f.file}:{f.function}" for f in cause.frames[-60:])
    values: dict[str, Any] = {
        "failure.exception": cause.exception,
        "failure.message": cause.message,
        "failure.kind": cause.kind,
        "failure.text": cause.text or cause.message,
        "failure.frames": frames or None,
        "failure.origin": cause.process or cause.rank or None,
        "failure.stage": cause.stage or None,
        "failure.cut": cause.cut,
        "failure.startup": run.outcome == "crashed at startup",
        "failure.exit_code": entry.code if entry else None,
    }
    if recount := leaks.explain(cause.text):
        values["leak.text"] = recount
    if frame := engine_frame(cause.frames):
        values["failure.engine_frame"] = f"{frame.file}:{frame.function}"
    if cause.frames:
        values["failure.raised_in"] = f"{cause.frames[-1].file}:{cause.frames[-1].function}"
    for name, value in values.items():
        facts.add(name, value, where, rank="")


class RunFolder:
    """Splits a stream of records into runs. ``merge``: all sources are streams of the same runs (stdout and stderr)."""

    def __init__(self, merge: bool = False) -> None:
        self._merge = merge
        self._current: dict[tuple[str, str], Building] = {}
        self._all: list[Building] = []
        self._by_pid: dict[tuple[str, str, int], Building] = {}
        self._closed = False

    def close(self) -> None:
        """Says that no more lines will come: what was begun and not ended is then a fact."""
        self._closed = True

    def feed(self, record: Record, event: Event | None) -> None:
        """Takes the next record, with the event that it is."""
        key = ("" if self._merge else record.source, _STREAM_NAMES.sub("", record.stream))
        current = self._current.get(key)
        mark = split.mark_of(record)
        if current is None or (mark is not None and split.begins_run(mark, record, current)):
            current = self._begin(key, record, current, mark)
        elif record.pid is not None:
            current = self._by_pid.get((*key, record.pid), current)
        if mark is not None:
            current.marks[mark] = Mark(current.order, record.pid, record.time)
        if record.pid is not None:
            self._by_pid.setdefault((*key, record.pid), current)
        current.take(record, event)

    def _begin(self, key: tuple[str, str], record: Record, before: Building | None, mark: str | None) -> Building:
        """A new run. A service that still lives under other pids keeps its own records (two services in one file)."""
        building = Building(record.source, record.stream)
        pids = [pid for pid in self._by_pid if pid[:2] == key]
        interleaved = before is not None and not before.ended and mark == split.BANNER and record.pid is not None
        if not interleaved or (*key, record.pid) in self._by_pid:
            for pid in pids:
                del self._by_pid[pid]
        self._current[key] = building
        self._all.append(building)
        return building

    def runs(self) -> list[Run]:
        """The runs seen so far. May be called at any time; each call makes fresh objects."""
        meaningful = [b for b in self._all if b.votes or b.marks or b.log.entries]
        runs = [b.run(number, self._closed) for number, b in enumerate(meaningful or self._all[:1], 1)]
        note_loop(runs, [(b.first_time, b.last_time) for b in meaningful])
        return runs
