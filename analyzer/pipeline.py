"""From bytes to a report: the one place that knows the order of the steps.

``Analysis`` is fed with bytes and can be asked for its report at any time, so that a file, a pipe and a running
container go the same way.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from analyzer.errors import UserError
from analyzer.framing import Framer
from analyzer.parsing import Catalog, default_catalog
from analyzer.run.dull import is_dull
from analyzer.run.facts import Fact
from analyzer.run.fold import RunFolder
from analyzer.run.model import Run
from analyzer.run.outcome import refine_outcome, weigh_witnesses
from analyzer.sources.blocks import in_blocks

if TYPE_CHECKING:
    from analyzer.bulk import Lane
    from analyzer.diagnosis import RuleSet
    from analyzer.events import Event
    from analyzer.evidence.witnesses import Witnesses
    from analyzer.framing.record import Record
    from analyzer.report.model import InputSummary, Report
    from analyzer.sources import Interrupt

BULK_FROM = 2_000_000
"""Bytes of an input that are read line by line before columns are worth the loading of polars (0.2 s)."""
BULK_FIRST, BULK_SURE = 3_000_000, 8_000_000
"""Bytes of a chunk that are worth it at once, bytes read after which smaller ones are, too."""
BULK_CHUNK = 1 << 19
"""Least bytes of a chunk that is read by columns."""
_BLOCK = 8 << 20
"""Bytes read at a time from there on."""
_SHORT, _MOST_DULL = 40, 4096
"""Characters of a line that is remembered as meaningless, and how many are."""
_CUT = "interrupted (Ctrl-C): read as far as it had come, what follows is not in this report"
_HEARD_OUT = "interrupted (Ctrl-C): its writer ended as well, and was read to the end"


@dataclass(frozen=True, slots=True)
class Options:
    """What the caller knows beside the log."""

    model_dir: Path | None = None
    draft_dir: Path | None = None
    rule_dirs: tuple[Path, ...] = ()
    facts: tuple[Fact, ...] = ()
    """Facts of other witnesses (exit code, metrics, probes), put into every run."""
    merge: bool = False
    """Treat all inputs as streams of one run (stdout and stderr of one server)."""
    read_facts: Witnesses | None = None
    """Reads further facts once a run's own are known (metrics whose range is the run's)."""
    interrupt: Interrupt | None = None
    """Asked by the caller when the reading of a pipe is to end with what has come."""


@lru_cache(maxsize=8)
def _rules(dirs: tuple[Path, ...]) -> RuleSet:
    """The rules of ``dirs`` and the shipped ones, read once a process."""
    from analyzer.diagnosis import RuleSet

    return RuleSet.load(dirs)


@dataclass(slots=True)
class Analysis:
    """An analysis in progress over one or several inputs."""

    options: Options = field(default_factory=Options)
    catalog: Catalog = field(default_factory=default_catalog)
    on_event: Callable[[Record, Event | None], None] | None = None
    inputs: list[InputSummary] = field(default_factory=list)
    _folder: RunFolder | None = None
    _rules: RuleSet | None = None
    _started: float = field(default_factory=time.monotonic)

    def reader(self, source: str, *, live: bool = False) -> Reader:
        """A reader for one more input, named ``source`` in the report.

        ``live``: no look-ahead that holds back the first lines (it detects pastes wrapped by a terminal).
        """
        from analyzer.report.model import InputSummary

        summary = InputSummary(source)
        self.inputs.append(summary)
        return Reader(self, Framer(source, unwrap=not live), summary)

    @property
    def folder(self) -> RunFolder:
        """What has been read so far, folded into runs."""
        if self._folder is None:
            self._folder = RunFolder(merge=self.options.merge)
        return self._folder

    @property
    def rules(self) -> RuleSet:
        """The rules that judge, the shipped ones and the caller's."""
        if self._rules is None:
            self._rules = _rules(self.options.rule_dirs)
        return self._rules

    def runs(self) -> list[Run]:
        """The runs seen so far, with the facts of the other witnesses."""
        runs = self.folder.runs()
        for run in runs:
            for fact in self._witness_facts(run):
                known = run.facts.get(fact.name)
                if known is None or known.origin != "log":  # what the server printed of itself comes first
                    run.facts.put(fact)
            weigh_witnesses(run)
        return runs

    def _witness_facts(self, run: Run) -> Iterator[Fact]:
        yield from self.options.facts
        if self.options.model_dir is not None:
            from analyzer.evidence.model_dir import facts_for_run

            yield from facts_for_run(run, self.options.model_dir, self.options.draft_dir)
        if self.options.read_facts is not None:
            yield from self.options.read_facts(run)

    def report(self) -> Report:
        """The report on what has been read so far."""
        from analyzer.report.build import build
        from analyzer.sizing import check, model_for

        judged = []
        for run in self.runs():
            model = model_for(run)
            outcome = None if model is None else check(model, run)
            judgement = self.rules.judge(run, model)
            refine_outcome(run, judgement.findings)
            judged.append((run, model, outcome, judgement))
        return build(judged, self.inputs, notes=self.missing, seconds=time.monotonic() - self._started)

    @property
    def missing(self) -> list[str]:
        """What is said of witnesses that could not be had."""
        return [] if self.options.read_facts is None else self.options.read_facts.missing


@dataclass(slots=True)
class Reader:
    """Feeds one input into an analysis."""

    analysis: Analysis
    framer: Framer
    summary: InputSummary
    _last_line: int = 0
    _lane: Lane | None = None
    _dull: set[str] = field(default_factory=set)
    """Short lines without a prefix that mean nothing, of which a log may hold millions. Bounded."""
    _engine: str = ""
    """The engine whose shapes were read last: the one to try first where both print a sentence."""

    def feed(self, chunk: bytes) -> None:
        """Takes the next bytes of this input; large chunks of a long log go by columns (``analyzer.bulk``)."""
        if self._lane is None and self._is_bulk(chunk):
            self._lane = self._open_lane()
        if self._lane is None:
            self._take(self.framer.feed(chunk))
        else:
            self._lane.engine = self._engine
            self._lane.feed(chunk)
            self._count()

    def _is_bulk(self, chunk: bytes) -> bool:
        """Whether ``chunk`` is a large one of a long log of which nobody wants to see each event."""
        read = self.framer.bytes
        long = len(chunk) >= (BULK_CHUNK if read > BULK_SURE else BULK_FIRST) and read + len(chunk) > BULK_FROM
        return long and self.analysis.on_event is None

    def _open_lane(self) -> Lane:
        from analyzer.bulk import Lane

        return Lane(self.framer, self.analysis.folder, self.analysis.catalog, self._take, self._recognised)

    def _recognised(self, lines: int) -> None:
        self.summary.recognised_lines += lines

    def flush(self) -> None:
        """Takes what is held back for a next line that may belong to it: the input has fallen silent."""
        self._take(self.framer.flush())

    def close(self) -> None:
        """Says that this input has ended."""
        self._take(self.framer.close())
        self.analysis.folder.close()
        self._count()

    def _take(self, records: Iterable[Record], before: Callable[[Record, Event | None], None] | None = None) -> None:
        match, feed, on_event = self.analysis.catalog.match, self.analysis.folder.feed, self.analysis.on_event
        recognised, dull = 0, self._dull
        for record in records:
            if record.text in dull and record.form == "raw" and self.analysis.folder.pass_by(record):
                if before is not None:
                    before(record, None)
                if on_event is not None:
                    on_event(record, None)
                continue
            event = match(record, self._engine)
            if event is not None and event.engine != "common":
                self._engine = event.engine
            if event is not None or record.form in ("traceback", "bar"):
                if record.last_line != self._last_line:  # glued messages share a line, which counts once
                    recognised += record.last_line - record.line + 1 if record.lines is None else len(set(record.lines))
                    recognised -= record.line == self._last_line  # a traceback begins in the line that announces it
                self._last_line = record.last_line
            if before is not None:
                before(record, event)
            feed(record, event)
            if on_event is not None:
                on_event(record, event)
            if event is None and len(record.text) <= _SHORT and len(dull) < _MOST_DULL and is_dull(record):
                dull.add(record.text)
        self.summary.recognised_lines += recognised
        self._count()

    def _count(self) -> None:
        self.summary.bytes, self.summary.lines = self.framer.bytes, self.framer.lines
        doubles = self.framer.doubles
        read = self.summary.recognised_lines + doubles.dropped
        self.summary.unrecognised_lines = max(0, self.summary.lines - read)
        if doubles.on and not self.summary.note:
            self.summary.note = "each line stands twice (two handlers print it) and was read once"


def gathered(chunks: Iterable[bytes], size: int = 0) -> Iterator[bytes]:
    """``chunks`` of an input as a ``Reader`` likes them: a long one in blocks once it is read by columns.

    ``size`` of a block in bytes where memory is short; a process takes about 20 times as much.
    """
    return in_blocks(chunks, size or _BLOCK, BULK_FROM)


def explain(paths: Sequence[str], options: Options | None = None) -> Report:
    """The report on ``paths`` (files, archives, folders, ``-`` for standard input).

    Raises ``UserError`` (status 3) for an input that cannot be read or that holds nothing.
    """
    return read(paths, options).report()


def read_runs(paths: Sequence[str], options: Options | None = None) -> list[Run]:
    """The runs in ``paths``, not judged. Raises as ``explain`` does."""
    return read(paths, options).runs()


def read(paths: Sequence[str], options: Options | None = None) -> Analysis:
    """The analysis of ``paths``, read to their ends. Raises as ``explain`` does.

    A pipe that is interrupted counts as far as it was read; ``KeyboardInterrupt`` where nothing had come.
    """
    from analyzer.sources import open_sources

    analysis = Analysis(options or Options())
    interrupt = analysis.options.interrupt
    refused: UserError | None = None
    for source in open_sources(paths, interrupt=interrupt):
        reader = analysis.reader(source.name)
        try:
            for chunk in gathered(source.chunks()):
                reader.feed(chunk)
        except UserError as error:
            if source.error is None and not reader.framer.lines:
                raise
            refused = refused or source.error
            # A cut archive: what it held counts. One file of a folder: the others do.
            reader.summary.note = f"not read{' to its end' * (source.error is None)}: {error}"
        reader.close()
        reader.summary.note = "; ".join(n for n in (reader.summary.note, *source.notes) if n)
        if interrupt is not None and interrupt.asked:
            reader.summary.note = "; ".join((_CUT if interrupt.cut else _HEARD_OUT, *source.notes))
            break
    if not any(i.lines or i.bytes for i in analysis.inputs):
        if interrupt is not None and interrupt.asked:
            raise KeyboardInterrupt
        if refused is not None:
            raise refused
        names = ", ".join(i.source for i in analysis.inputs) or "the input"
        raise UserError(f"{names} is empty: give a log that an SGLang or vLLM server printed", status=3)
    return analysis
