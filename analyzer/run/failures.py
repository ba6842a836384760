"""Collects what looks like a failure in one run and judges which of it is the cause.

Order in time decides: the first failure that is not a wrapper is the cause, what comes after it follows from it. What
comes after an orderly stop is an artefact of the stop, what the server outlived was not fatal, what a client was
refused concerns the client. Failures of the network between ranks are "soft": they yield to a harder one beside them.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from dataclasses import replace

from analyzer.framing.record import Record
from analyzer.run import signals
from analyzer.run.classify import CLIENT_HEAD, SIGQUIT, Entry, classify, swept
from analyzer.run.facts import Where
from analyzer.run.foreign import is_foreign
from analyzer.run.model import STAGES, Failure
from analyzer.run.noted import near, noted_before
from analyzer.run.signals import Signal
from analyzer.run.tracebacks import Link, Traceback, exception_line, parse

_LIMIT = 400
_TEXT = 20_000
_SPANS = 200
_IN_WORKER = re.compile(r"^Exception in worker \S+ while processing method \w+: ")
_LONELY_STAGE = STAGES.index("weights")
"""The last stage that one rank can reach without the others."""

_SIGTERM = -15
_NO_SOURCE = "<unknown>"
"""The file that a frame of compiled code has in a traceback."""

_PASTED_BEFORE = 5.0
"""Seconds by which a line must be older than a failure above it to have been moved by whoever pasted the log."""


def _with_reason(said: str, text: str, index: int) -> str:
    """``said``, line ``index`` of ``text``, with the next line if that is what a C++ exception says of itself."""
    following = text.split("\n", index + 2)[index + 1 : index + 2]
    return f"{said}\n{following[0]}" if following and following[0].lstrip().startswith("what():") else said


def _process(record: Record) -> tuple[int | None, str, str]:
    return record.pid, record.process, record.rank


class FailureLog:
    """The failures of one run as they come."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.stop: tuple[float, Where] | None = None
        self.first_death: float | None = None
        self._by_key: dict[str, Entry] = {}
        self._unended: Record | None = None
        self._progress: list[tuple[float, int]] = []
        self._served: list[float] = []
        self._heads: dict[tuple[int | None, str, str], tuple[int, str]] = {}
        self._ready: int | None = None
        self._head_line = 0
        self._refusal: Entry | None = None
        self._ended: tuple[float, Where] | None = None

    # what is seen

    def served(self, order: int, time: float | None = None) -> None:
        """A request was answered at ``order``: the server lives.

        A line whose ``time`` lies before that of a failure read already was pasted out of order: it shows no life
        after that failure, only that the server had served before it.
        """
        if self.pasted_late(time):
            for entry in self.entries:
                entry.ready = entry.ready or (entry.time is not None and time is not None and time < entry.time)
            return
        if self._served and (not self.entries or self._served[-1] > self.entries[-1].order):
            self._served[-1] = order
        else:
            self._served.append(order)

    def progressed(self, order: int, stage: str, time: float | None = None) -> None:
        """The start-up reached ``stage`` for the first time."""
        if not self.pasted_late(time):
            self._progress.append((order, STAGES.index(stage)))

    def pasted_late(self, time: float | None) -> bool:
        """Whether a line of ``time`` is older than a failure above it."""
        return time is not None and any(e.time is not None and time < e.time - _PASTED_BEFORE for e in self.entries)

    def became_ready(self, order: int) -> None:
        """The server said that it serves."""
        self._ready = order

    def traceback(self, record: Record, order: int, stage: str, ready: bool) -> None:
        """Takes a traceback record."""
        parsed = self._with_head(record, parse(record.text))
        self._unended = record if parsed.unended else None
        root = parsed.root
        said = _said_before(parsed.head) if root is None else ""
        if root is None and parsed.frames and all(frame.file == _NO_SOURCE for frame in parsed.frames):
            return  # a stack of compiled code in Python's form: what it belongs to is told elsewhere
        base = Failure(
            exception=root.exception if root else "",
            message=root.message if root else said,
            where=_places(record, parsed, root),
            first_line=self._head_line or record.line,
            frames=root.frames if root else parsed.frames,
            process=record.process,
            rank=record.rank,
            stage=stage,
            cut=root is None and not said,
            text=_bounded(record.text),
        )
        entry = Entry(base, order, record.time, ready, noted=record.level in ("WARNING", "INFO", "DEBUG"))
        classify(entry, parsed, self.entries)
        if root is not None and root.short == "KeyboardInterrupt":
            self._note_stop(order, record, Signal(signals.STOP, "interrupt", "KeyboardInterrupt"))
        self._drop_head_only(entry)
        self._add(entry, record)

    def _completed(self, record: Record) -> Record | None:
        """The last traceback with ``record`` as its end, if it had none and is of the same process, right before."""
        last = self._unended
        if last is None or _process(last) != _process(record) or record.line - last.last_line > 2:
            return None
        count = last.text.count("\n") + 1
        added = record.text.count("\n") + 1
        lines = (*map(last.line_of, range(count)), *map(record.line_of, range(added)))
        text = f"{last.text}\n{record.text}"
        return replace(last, text=text, last_line=max(last.last_line, record.last_line), lines=lines)

    def _forget_last(self) -> None:
        if self.entries and self._unended is not None and self.entries[-1].failure.first_line == self._unended.line:
            self._by_key.pop(self.entries.pop().key, None)

    def head(self, record: Record) -> None:
        """Takes a line that may announce the next traceback of its process ("Exception in ASGI application")."""
        if CLIENT_HEAD.search(record.text):
            self._heads[_process(record)] = (record.last_line, record.text.split("\n", 1)[0][:400])

    def _with_head(self, record: Record, parsed: Traceback) -> Traceback:
        line, text = self._heads.pop(_process(record), (-9, ""))
        if text and record.line - line <= 8:
            self._head_line = line
            return replace(parsed, head=f"{text}\n{parsed.head}")
        self._head_line = 0
        return parsed

    def _drop_head_only(self, entry: Entry) -> None:
        """Forgets the entry of a line that ends in "Traceback (most recent call last):" once the traceback is here."""
        last = self.entries[-1] if self.entries else None
        if last is None or not last.failure.cut or last.failure.frames or entry.failure.rank != last.failure.rank:
            return
        if entry.failure.first_line - last.failure.first_line <= 1:
            self.entries.pop()
            entry.failure.first_line = min(entry.failure.first_line, last.failure.first_line)

    def signal(self, record: Record, signal: Signal, order: int, stage: str, ready: bool) -> None:
        """Takes a line that bears on life and death."""
        if signal.kind == signals.ENDED:
            self._ended = (order, Where.of(record, signal.index))
        elif signal.kind == signals.STOP or signal.code in (-15, 143):
            self._note_stop(order, record, signal)
        else:
            self._fail(record, signal, order, stage, ready)

    def _fail(self, record: Record, signal: Signal, order: int, stage: str, ready: bool) -> None:
        kind = {
            signals.DEATH: "killed", signals.KILL: "killed", signals.WATCHDOG: "watchdog", signals.WRAPPER: "exit",
        }.get(signal.kind, "exit")  # fmt: skip
        failure = Failure(
            exception=signal.label,
            message=_with_reason(signal.text, record.text, signal.index),
            where=(Where.of(record, signal.index),),
            first_line=record.line,
            process=record.process,
            rank=record.rank,
            stage=stage,
            kind=kind,
            wrapper=signal.kind == signals.WRAPPER or signal.code == SIGQUIT,
            text=_bounded(record.text),
        )
        entry = Entry(failure, order, record.time, ready, code=signal.code)
        if signal.kind != signals.REFUSAL:
            self._add(entry, record)
        elif self._refusal is None and record.level in ("", "ERROR", "CRITICAL"):
            failure.kind, failure.spans = "exception", ((failure.first_line, record.last_line),)
            self._refusal = entry

    def lone_exception(self, record: Record, order: int, stage: str, ready: bool) -> bool:
        """Takes a record whose first line is the last line of a traceback that the log does not hold."""
        found = exception_line(record.text.split("\n", 1)[0])
        if found is None:
            return False
        if (whole := self._completed(record)) is not None:
            self._forget_last()
            self.traceback(whole, order, stage, ready)
            return True
        message = (found[1] + "\n" + record.text.partition("\n")[2]).strip()
        failure = Failure(
            found[0], message[:4000], (Where.of(record),), record.line, (), record.process, record.rank,
            stage=stage, text=_bounded(record.text),
        )  # fmt: skip
        entry = Entry(failure, order, record.time, ready)
        classify(entry, None, self.entries)
        self._add(entry, record)
        return True

    @property
    def ended(self) -> Where | None:
        """Where the engine ended its workers for a reason not in the log, if nothing was served after."""
        return self._ended[1] if self._ended is not None and not self._after(self._ended[0]) else None

    # how it is kept

    def _note_stop(self, order: int, record: Record, signal: Signal) -> None:
        if self.stop is None and self.first_death is None:
            self.stop = (order, Where.of(record, signal.index))

    def _add(self, entry: Entry, record: Record) -> None:
        known = self._by_key.get(entry.key) if entry.key else None
        span = (entry.failure.first_line, record.last_line)
        if known is not None and not (self._served and self._served[-1] > known.order):
            if len(known.failure.spans) < _SPANS:
                known.failure.spans += (span,)
            if len(entry.failure.frames) > len(known.failure.frames) and not entry.echo:
                # the first one may have lost its head in a paste; another rank printed it whole
                known.failure.frames, known.failure.text = entry.failure.frames, entry.failure.text
            if known.echo and not entry.echo:
                known.failure.where, known.echo = entry.failure.where, False
                known.failure.process, known.failure.rank = entry.failure.process, entry.failure.rank
            if not entry.echo:
                ranks = dict.fromkeys((*known.failure.ranks, entry.failure.rank or record.process))
                known.failure.ranks = tuple(r for r in ranks if r)
            return
        entry.failure.spans = (span,)
        entry.failure.ranks = (entry.failure.rank,) if entry.failure.rank else ()
        if len(self.entries) >= _LIMIT:
            return
        self.entries.append(entry)
        if entry.key:
            self._by_key[entry.key] = entry
        if self.first_death is None and (self._is_death(entry) or entry.failure.kind == "exit"):
            self.first_death = entry.order

    # how it is judged

    def joined(self, other: FailureLog, ready: bool) -> FailureLog:
        """This log and that of another stream of the same server (standard error), as a new one.

        What has no time is put where it makes sense: an exception of its own before the stop, the rest at the end.
        ``ready``: the server had served, as this stream shows.
        """
        result = FailureLog()
        result.stop, result._served, result._ready = self.stop, list(self._served), self._ready
        result._progress = list(self._progress)
        result._refusal, result._ended = self._refusal or other._refusal, self._ended or other._ended
        result._by_key, result.entries = dict(self._by_key), list(self.entries)
        end = max([0.0, *(e.order for e in self.entries), *self._served, *([self.stop[0]] if self.stop else [])]) + 1
        for number, entry in enumerate(other.entries):
            if entry.key and entry.key in result._by_key:
                continue
            order = float(end + number)
            if entry.time is not None:
                later = [e.order for e in self.entries if e.time is not None and e.time > entry.time]
                order = min(later) - 0.5 if later else order
            if self.stop is not None and entry.hard_exception and not entry.failure.wrapper:
                order = min(order, self.stop[0] - 0.5)
            result.entries.append(replace(entry, order=order, ready=entry.ready or ready))
        result.entries.sort(key=lambda e: e.order)
        if result.stop is None and other.stop is not None:
            result.stop = (end + len(other.entries), other.stop[1])
        return result

    def judged(self) -> tuple[list[Failure], Entry | None]:
        """All failures in order of time, each marked as cause, wrapper, consequence or one request's own; the cause."""
        deaths = sorted(entry.order for entry in self.entries if self._is_death(entry))
        marked = [(entry, self._fate(entry, deaths)) for entry in self.entries]
        alive = [e for e, fate in marked if fate == "candidate" and not e.noted and not swept(e, self.entries)]
        cause = self._stated(self._cause(alive), marked) or self._refused(marked) or self._last_resort(marked)
        cause = noted_before(cause, marked)
        result = []
        for entry, fate in marked:
            failure = replace(entry.failure)
            if entry is cause:
                if failure.wrapper:
                    signalled = (cause.code or 0) < 0 and cause.code not in (_SIGTERM, SIGQUIT)
                    failure.kind = "killed" if signalled else _last_kind(failure)
                failure.wrapper = failure.consequence = False
                failure.where += self._ended_by(cause, alive)
            elif fate == "request" or (fate == "survived" and not entry.noted and not entry.probe):
                failure.request_level = True
                failure.kind = "program" if entry.user_code and not entry.client else failure.kind
            elif fate in ("stopped", "candidate", "survived", "foreign"):
                failure.consequence = True
            result.append(failure)
        return result, cause

    def _fate(self, entry: Entry, deaths: list[float]) -> str:
        failure = entry.failure
        if is_foreign(failure.frames):
            return "foreign"
        if self.stop is not None and entry.order >= self.stop[0] and failure.kind != "watchdog":
            return "stopped"
        if entry.client:
            return "request"
        if failure.wrapper:
            return "wrapper"
        if entry.user_code and (entry.ready or failure.stage in ("graphs", "ready", "serving")):
            return "request"  # the program that uses the engine failed, not the engine
        later = bisect_right(deaths, entry.order)
        death = deaths[later] if later < len(deaths) else math.inf
        if entry.of_thread and death == math.inf:
            return "survived"
        outlives = failure.kind != "killed" and not entry.of_process
        if outlives and any(entry.order < order < death for order in self._after(entry.order)):
            return "survived"
        if self._ready is not None and entry.order < self._ready < death:
            return "survived"
        # the pool and the graphs need every rank: a start-up that got there afterwards was not ended by this
        reached = max(STAGES.index(failure.stage) if failure.stage else 0, _LONELY_STAGE)
        if failure.kind != "killed" and any(
            entry.order < order < death and stage > reached for order, stage in self._progress
        ):
            return "survived"
        return "candidate"

    def _after(self, order: float) -> list[float]:
        """Where the server first served after ``order``, if it did."""
        at = bisect_right(self._served, order)
        return self._served[at : at + 1]

    @staticmethod
    def _is_death(entry: Entry) -> bool:
        if entry.client or entry.teardown or entry.probe:
            return False
        return entry.failure.wrapper or entry.failure.kind in ("killed", "watchdog")

    def _cause(self, alive: list[Entry]) -> Entry | None:
        if not alive:
            return None
        first = next((e for e in alive if not e.probe), alive[0])
        unnamed = first.failure.kind == "killed" and first.code is None and first.failure.exception != signals.HOST_OOM
        if first.soft or unnamed or first.failure.cut:
            return next((e for e in alive if e.hard_exception and near(first, e)), first)
        return first

    @staticmethod
    def _ended_by(cause: Entry, alive: list[Entry]) -> tuple[Where, ...]:
        """For native code that failed without an exception: the exception with which the engine then ended."""
        if cause.failure.kind != "exit":
            return ()
        end = next((e for e in alive if e.order > cause.order and e.hard_exception and near(cause, e)), None)
        return end.failure.where[:1] if end else ()

    def _refused(self, marked: list[tuple[Entry, str]]) -> Entry | None:
        """The bare sentence of a refusal, if no traceback explains the end and the server did not live before or on."""
        entry = self._refusal
        if entry is not None and self._served and self._served[0] < entry.order:
            return None  # a start is refused before anything is served: this is quoted, or another server's
        if entry is None or self._after(entry.order) or (self._ready is not None and self._ready > entry.order):
            return None
        if self.stop is not None and entry.order >= self.stop[0]:
            return None
        marked.append((entry, "candidate"))
        return entry

    def _stated(self, cause: Entry | None, marked: list[tuple[Entry, str]]) -> Entry | None:
        """The refusal that the engine wrote right above a traceback whose exception is missing; else ``cause``."""
        said = self._refusal
        if cause is None or said is None or not cause.failure.cut or cause.failure.exception:
            return cause
        if not 0 <= cause.failure.first_line - said.failure.first_line <= 2:
            return cause
        if (found := self._refused(marked)) is not None:
            found.failure.frames = found.failure.frames or cause.failure.frames
        return found or cause

    def _last_resort(self, marked: list[tuple[Entry, str]]) -> Entry | None:
        """Only wrappers are left: the cause is elsewhere, and the first wrapper stands for it."""
        left = (e for e, fate in marked if fate == "wrapper" and not e.teardown)
        return next((e for e in left if e.failure.exception != signals.RAY_WORKER or not self._after(e.order)), None)


def _said_before(head: str) -> str:
    """The exception's message that vLLM's V0 puts before a traceback, in the same sentence; "" without one."""
    last = head.rsplit("\n", 1)[-1]
    return _IN_WORKER.sub("", last)[:-1].strip() if last.endswith(",") else ""


def _last_kind(failure: Failure) -> str:
    """Of a wrapper that nothing else explains: most point at an error elsewhere, a failed capture quotes its error."""
    return "exit" if failure.exception == "graph capture failed" else "elsewhere"


def _bounded(text: str) -> str:
    return text if len(text) <= _TEXT else text[: _TEXT // 2] + "\n…\n" + text[-_TEXT // 2 :]


def _places(record: Record, parsed: Traceback, root: Link | None) -> tuple[Where, ...]:
    """The exception's own line, the traceback's first line, the line that says most, the chain's other exceptions."""
    if root is None:
        return (Where.of(record),)
    rows = [root.end, root.start, *([root.key_line] if root.key_line >= 0 else [])]
    rows += [link.end for link in parsed.links if link is not root][:4]
    return tuple(Where.of(record, row) for row in dict.fromkeys(rows))
