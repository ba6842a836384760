"""One run while it is being read: what its records add, and the run as it stands at any time."""

from __future__ import annotations

import copy
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from analyzer.events import Event
from analyzer.framing.record import Record
from analyzer.run import signals, split
from analyzer.run.answers import write_unexplained
from analyzer.run.dull import frightening
from analyzer.run.facts import Where
from analyzer.run.failure_facts import add_failure_facts
from analyzer.run.failures import FailureLog
from analyzer.run.foreign import engine_of, engine_of_process, of_a_library, other_engine
from analyzer.run.model import STAGES, Run
from analyzer.run.outcome import decide
from analyzer.run.plan import ENGINES, EngineFolder, Plan, engine_folder
from analyzer.run.split import Mark
from analyzer.run.tracebacks import HEADER
from analyzer.run.unfinished import Unfinished

ACTIVITY = ("running", "decode_rate", "prefill_rate", "new_tokens", "tokens", "accepted")
_PROBES = re.compile(r"^/(?:health\w*|ping|metrics|version|v1/models|models|\w*model_info|\w*server_info|load)\b")
_MAX_EVENTS, _MAX_PER_KIND, _MAX_SCARY, _MAX_PIDS = 20_000, 400, 1_000, 4_096
_WARM_UP_LINES = 2
"""What a warm-up prints: a batch and the answer. With data parallelism each rank has one of its own."""
_MOST_WARM_RANKS = 64
_WARM_UP_TOKENS = 128
"""A warm-up's prompt is a few words, or one tiny picture; a longer prompt came from a client."""


@dataclass(slots=True)
class Building:
    """One run while it is being read."""

    source: str
    stream: str
    first_line: int = 0
    last_line: int = 0
    order: int = 0
    marks: dict[str, Mark] = field(default_factory=dict)
    nodes: set[split.Node] = field(default_factory=set)
    """Ranks of the nodes whose arguments were seen."""
    stages: dict[str, Where] = field(default_factory=dict)
    votes: dict[str, int] = field(default_factory=dict)
    folders: dict[str, EngineFolder] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    scary: list[Record] = field(default_factory=list)
    log: FailureLog = field(default_factory=FailureLog)
    app_started: Where | None = None
    answers: int = 0
    worked: bool = False
    """Whether a prompt was read that is too long for a warm-up."""
    warm_ranks: set[str] = field(default_factory=set)
    """Ranks that printed of a batch before the server was ready."""
    answered: Where | None = None
    """Where a client got its answer (not only a line of a batch)."""
    ready_at: Where | None = None
    served_at: Where | None = None
    last: Record | None = None
    tagged: Record | None = None
    first_time: float | None = None
    last_time: float | None = None
    steps: Unfinished = field(default_factory=Unfinished)
    step_times: dict[int, float] = field(default_factory=dict)
    kinds: Counter[str] = field(default_factory=Counter)
    kept: Counter[str] = field(default_factory=Counter)
    pids: set[int] = field(default_factory=set)
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
        return max(self.votes, key=lambda name: self.votes[name]) if self.votes else None

    # evidence for outcome.decide

    @property
    def seen_start(self) -> bool:
        """Whether the log shows the server's start, so that a missing ready line means something."""
        if self.has_start or any(stage in self.stages for stage in ("arguments", "weights", "pool")):
            return True
        return self.app_started is not None and self.engine == "sglang"  # it warms up after this, then it is ready

    @property
    def about_engine(self) -> bool:
        """Whether it has to do with an engine at all, unlike another service whose lines stand in the same file."""
        if self.votes or self.marks or not self.stream:
            return True
        return engine_of([entry.failure for entry in self.log.entries]) is not None

    @property
    def has_start(self) -> bool:
        """Whether it shows how its server was started (a companion stream such as standard error does not)."""
        return bool(self.marks.keys() - {split.COMMAND, split.PREAMBLE})

    @property
    def stop(self) -> Where | None:
        """Where somebody asked the server to stop, or the engine ended its workers without saying why."""
        return self.log.stop[1] if self.log.stop else self.log.ended

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
        lines = _WARM_UP_LINES * max(1, len(self.warm_ranks))
        return None if warming and self.answers <= lines and not self.worked else self.served_at

    @property
    def end(self) -> Where | None:
        """The last line."""
        return Where.of(self.last) if self.last else None

    # what is seen

    def take(self, record: Record, event: Event | None, plan: Plan | None) -> None:
        """Adds one record to the run; ``plan`` is the plan for the event's kind."""
        self.saw(record)
        if event is None or plan is None:
            self._trouble(record, None)
            return
        self._event(event, plan)
        if not plan.dense:
            self._trouble(record, event)

    def saw(self, record: Record) -> None:
        """Notes that a record is one of the run's, whatever it says."""
        self.order += 1
        self.last = record
        if record.source == self.source and record.last_line > self.last_line:
            self.last_line = record.last_line
            self.first_line = self.first_line or record.line
        if record.pid is not None and len(self.pids) < _MAX_PIDS:
            self.pids.add(record.pid)
        if record.rank and self.tagged is None:
            self.tagged = record
        if (time := record.time) is not None:
            self.last_time = time
            if self.first_time is None:
                self.first_time = time

    def _event(self, event: Event, plan: Plan) -> None:
        engine, kind = event.engine, event.kind
        if plan.engine:
            folder = self.folders.get(engine)
            if folder is None:
                folder = self.folders[engine] = engine_folder(engine)
                self.votes[engine] = 0
            self.votes[engine] += 1
            folder.feed(event)
        self.kinds[kind] += 1
        if plan.step:
            self.steps.feed(event)
        if not plan.dense:
            self.keep(event)
            if plan.stage:
                self._stage(plan.stage, event)
        elif activity(event):
            self._serving(event)
        elif kind == "http_access" and event.fields["status"] >= 400:
            self.keep(event)

    def passed(self, count: int, last: Record, time: float | None = None) -> None:
        """``count`` plain lines went by, the last of which is ``last``; ``time``: of the last of them with a stamp."""
        self.order += count
        self.last = last
        self.last_line = max(self.last_line, last.last_line)
        time = last.time if last.time is not None else time
        if time is not None:
            self.last_time = time
            if self.first_time is None:
                self.first_time = time

    def answered_more(self, count: int, order: int, time: float | None) -> None:
        """``count`` lines showed a request being served, the last of them at ``order``; they are not the first ones."""
        self.answers += count
        self.log.served(order, time)

    def aside(self, record: Record, event: Event | None) -> None:
        """Takes a plain line that bears on no failure, out of turn; its place among the others is known already.

        ``event`` is of a kind that is only kept and counted; without one the line is kept if it frightens.
        """
        if event is None:
            if len(self.scary) < _MAX_SCARY and frightening(record):
                self.scary.append(record)
            return
        if event.engine in self.votes:
            self.votes[event.engine] += 1
        self.kinds[event.kind] += 1
        self.keep(event)

    def keeps(self, kind: str) -> bool:
        """Whether one more event of ``kind`` would be kept."""
        return self.room(kind)[0] > 0

    def room(self, kind: str) -> tuple[int, int]:
        """How many more events of ``kind`` would be kept, and how many of all kinds."""
        whole = max(0, _MAX_EVENTS - len(self.events))
        return min(whole, max(0, _MAX_PER_KIND - self.kept[kind])), whole

    @property
    def scary_room(self) -> int:
        """How many more lines that frighten would be kept."""
        return max(0, _MAX_SCARY - len(self.scary))

    def keep(self, event: Event) -> None:
        """Keeps an event for the rules, if there are not too many."""
        self.kept[event.kind] += 1
        if self.kept[event.kind] <= _MAX_PER_KIND and len(self.events) < _MAX_EVENTS:
            self.events.append(event)
            if event.record.time is not None:
                self.step_times[event.line] = event.record.time

    def _serving(self, event: Event) -> None:
        self.answers += 1
        if (event.fields.get("new_tokens") or 0) > _WARM_UP_TOKENS:
            self.worked = True
        if self.ready_at is None and event.record.rank and len(self.warm_ranks) < _MOST_WARM_RANKS:
            self.warm_ranks.add(event.record.rank)
        self.log.served(self.order, event.record.time)
        if self.served_at is None:
            self.served_at = Where.of(event.record)
            self._reach("serving", self.served_at, event.record.time)
        if self.answered is None and event.kind == "http_access":
            self.answered = Where.of(event.record)

    def _stage(self, stage: str, event: Event) -> None:
        where = Where.of(event.record)
        if stage == "ready":
            if event.kind == "supported_tasks" and not event.record.module.startswith(_OFFLINE):
                return  # a server says it before its HTTP application is up
            if event.engine in ENGINES:
                self.ready_at = self.ready_at or where
            else:
                self.app_started = self.app_started or where
                if self.engine == "sglang":
                    return
            self.log.became_ready(self.order)
        self._reach(stage, where, event.record.time)

    def _reach(self, stage: str, where: Where, time: float | None) -> None:
        if stage not in self.stages:
            self.stages[stage] = where
            if stage != "shutdown":
                self.log.progressed(self.order, stage, time)
                self.top = max(self.top, STAGES.index(stage))

    def _trouble(self, record: Record, event: Event | None) -> None:
        """Looks for what bears on the end of the run."""
        if record.form == "bar":
            return
        ready = self.ready is not None or self.served is not None
        if record.form == "traceback" or HEADER in record.text:
            self.log.traceback(record, self.order, self.stage, ready)
            return
        signal = signals.signal_of(event) if event is not None else None
        if signal is not None and self.votes and event is not None and signals.lacks_a_tool(event):
            signal = None
        if record.level in ("", "ERROR", "CRITICAL") and self.log.lone_exception(record, self.order, self.stage, ready):
            return
        if signal is not None:
            self.log.signal(record, signal, self.order, self.stage, ready)
        else:
            self.log.head(record)
        if event is None and len(self.scary) < _MAX_SCARY and frightening(record):
            self.scary.append(record)

    # what is made of it

    def run(self, number: int, closed: bool, companions: Sequence[Building] = ()) -> Run:
        """The run as it stands, with what other streams of the same server add.

        ``closed``: no more lines will come, so that a step that is under way means something.
        """
        run = Run(number, self.source, self.first_line, self.last_line, engine=self.engine)
        run.events, run.scary, run.stages = list(self.events), list(self.scary), dict(self.stages)
        run.kinds = dict(self.kinds)
        log = self.log
        for other in companions:
            run.events += other.events
            run.scary += other.scary
            run.kinds = dict(Counter(run.kinds) + other.kinds)
            log = log.joined(other.log, self.ready is not None or self.served is not None)
            run.notes.append(f"Read together with {other.source}, which is another stream of the same server.")
        run.failures, entry = log.judged()
        run.engine = run.engine or engine_of(run.failures) or engine_of_process(self.tagged or self.last)
        if run.engine is not None:
            self._fill(run, companions)
        elif (name := other_engine(run.failures)) is not None:
            run.failures, entry = [], None
            run.notes.append(f"The traceback is one of {name}: this is not the log of an SGLang or vLLM server.")
        cause = run.failure
        verdict = decide(self, run.failures, entry.ready if entry else False)
        startup = verdict.outcome == "crashed at startup"
        if run.engine is None and not self.stages and cause is not None and of_a_library(cause):
            verdict = replace(verdict, outcome="unknown")  # the line names no server that it ends
        run.outcome, run.outcome_basis = verdict.outcome, verdict.basis
        run.facts.add("outcome", run.outcome, run.outcome_basis)
        if run.stage:
            run.facts.add("stage", run.stage, run.stages[run.stage])
        if cause is not None:
            add_failure_facts(run, cause, entry, startup)
            if verdict.assumed:
                run.facts.add("failure.assumed", True, cause.where[:1], rank="")
        write_unexplained(run, bool(log.entries))
        if closed:
            self._note_end(run)
        return run

    def _fill(self, run: Run, companions: Sequence[Building]) -> None:
        """Lets the engine's folder write its facts; with companions a copy of it, that has seen their lines, too."""
        assert run.engine is not None
        folder = self.folders.get(run.engine) or engine_folder(run.engine)
        if any(run.engine in other.folders for other in companions):
            folder = copy.deepcopy(folder)
            for other in companions:
                for event in other.events:
                    if event.engine == run.engine:
                        folder.feed(event)
        folder.fill(run)

    def _note_end(self, run: Run) -> None:
        """Says what was under way when the log ended without an end."""
        if run.outcome not in ("starting", "serving") or self.last is None:
            return
        found = self.steps.under_way(run.outcome == "serving")
        if found is not None:
            step, where = found
            run.facts.add("end.unfinished", step, where, rank="")
            if self.last_time is not None and (begun := self.step_times.get(where.line)) is not None:
                run.facts.add("end.waited", max(0.0, self.last_time - begun), where, rank="")
        elif run.outcome == "starting" and not any(failure.kind == "program" for failure in run.failures):
            after = f" after the {_REACHED[run.stage]}" if run.stage in _REACHED else ""
            if run.stage == "pool" and not ("pool.tokens" in run.facts or "pool.blocks" in run.facts):
                after = " while the pool was being sized"
            elif run.stage == "graphs" and "engine.init_seconds" in run.facts:
                after = " after the engine was up"
            elif run.stage == "weights" and "weights.loaded" in run.facts:
                after = " after the weights were loaded"
            run.notes.append(f"The log ends at line {self.last.last_line}{after}, without an error and without an end.")


_OFFLINE = ("llm.py", "llm:")
"""The module of vLLM's offline interface: with its last line the engine takes prompts."""
_REACHED = {
    "arguments": "arguments were read", "init": "processes began", "weights": "loading of weights had begun",
    "pool": "pool was made", "graphs": "pool was made",
}  # fmt: skip


def activity(event: Event) -> bool:
    """Whether an event of the serving stage shows a request being served (not a probe, not an idle statistic)."""
    fields = event.fields
    if event.kind == "http_access":
        if fields.get("method") != "POST" or not 200 <= fields.get("status", 0) < 300:
            return False
        return _PROBES.match(fields.get("path", "")) is None
    known = False
    for name in ACTIVITY:
        value = fields.get(name)
        if value is not None:
            known = True
            if isinstance(value, int | float) and value > 0:
                return True
    return not known
