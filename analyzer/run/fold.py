"""Folds the stream of records and events into runs: which run a record belongs to.

What a record adds to its run is ``building``'s business, where one run ends and the next begins ``split``'s.
"""

from __future__ import annotations

import re

from analyzer.events import Event
from analyzer.framing.record import Record
from analyzer.run import split
from analyzer.run.building import Building
from analyzer.run.companions import paired
from analyzer.run.foreign import engine_of_process
from analyzer.run.loops import note_loop
from analyzer.run.model import Run
from analyzer.run.plan import plan_of
from analyzer.run.split import Mark

_STREAM_NAMES = re.compile(r"(?:^|[./: -])(?:stdout|stderr|std|out|err)$")
_Key = tuple[str, str]
_MOST_RUNS, _MOST_STREAMS, _MOST_PIDS = 4_096, 4_096, 65_536
"""Bounds of what is kept apart. Beyond them: the first runs and the last one, one stream for all others."""


class RunFolder:
    """Splits a stream of records into runs.

    Sources that belong together are read as one run (see ``companions``); ``merge``: the caller says that they do.
    """

    def __init__(self, merge: bool = False) -> None:
        self._merge = merge
        self._keys: dict[_Key, _Key] = {}
        self._current: dict[_Key, Building] = {}
        self._all: list[Building] = []
        self._by_pid: dict[_Key, dict[int, Building]] = {}
        self._closed = False
        self._left_out = 0

    def feed(self, record: Record, event: Event | None) -> None:
        """Takes the next record, with the event that it is."""
        key = self._keys.get((record.source, record.stream)) or self._key(record)
        plan, mark = None, None
        if event is not None:
            plan = plan_of(event.engine, event.kind)
            mark = plan.mark
            if event.kind == "python_warning":  # SGLang warns before it prints its arguments
                mark = split.command_or_preamble(record.text)
        elif record.form == "raw":
            mark = split.command_or_preamble(record.text)
        current = self._current.get(key)
        if current is None:
            current = self._begin(key, record, None, mark)
        elif mark is not None and split.begins_run(mark, record, current, split.node_of(event)):
            current = self._begin(key, record, current, mark)
        elif record.pid is not None:
            current = self._by_pid[key].get(record.pid, current)
        if mark is not None:
            current = self._joined(key, current, split.node_of(event))
            current.marks[mark] = Mark(current.order, record.pid, record.time)
        if record.pid is not None and len(self._by_pid[key]) < _MOST_PIDS:
            self._by_pid[key].setdefault(record.pid, current)
        current.take(record, event, plan)

    def pass_by(self, record: Record) -> bool:
        """Takes an unprefixed line that means nothing to any run (``dull.is_dull``); false where it begins one."""
        key = self._keys.get((record.source, record.stream))
        if key is None or record.pid is not None or (current := self._current.get(key)) is None:
            return False
        current.saw(record)
        return True

    def where(self, source: str, stream: str, pid: int | None) -> Building | None:
        """The run that a record of ``source``, ``stream`` and ``pid`` would be added to, if it is known already."""
        key = self._keys.get((source, stream))
        if key is None or (current := self._current.get(key)) is None:
            return None
        return current if pid is None else self._by_pid[key].get(pid)

    def close(self) -> None:
        """Says that no more lines will come: what was begun and not ended is then a fact."""
        self._closed = True

    def runs(self) -> list[Run]:
        """The runs seen so far. May be called at any time; each call makes fresh objects."""
        meaningful = [b for b in self._all if b.votes or b.marks or b.log.entries]
        engines = {b.source for b in meaningful if b.votes}
        meaningful = [b for b in meaningful if b.about_engine or b.source not in engines]
        meaningful = meaningful or ([b for b in self._all if engine_of_process(b.tagged or b.last)] or self._all)[:1]
        pairs = paired(meaningful, forced=self._merge)
        runs = [b.run(number, self._closed, others) for number, (b, others) in enumerate(pairs, 1)]
        note_loop(runs, [(b.first_time, b.last_time) for b, _ in pairs])
        if self._left_out and runs:
            runs[-1].notes.append(
                f"{self._left_out:,} more runs before this one are left out: more than {_MOST_RUNS:,} in one report; "
                "audit reads any number of files."
            )
        return runs

    def _key(self, record: Record) -> _Key:
        """What keeps services apart: the source, and the name of the stream but for its standard output or error."""
        if len(self._keys) >= _MOST_STREAMS:
            key = (record.source, "")
            self._by_pid.setdefault(key, {})
            return key
        key = (record.source, _STREAM_NAMES.sub("", record.stream))
        self._keys[record.source, record.stream] = key
        self._by_pid.setdefault(key, {})
        return key

    def _begin(self, key: _Key, record: Record, before: Building | None, mark: str | None) -> Building:
        """A new run. A service that still lives under other pids keeps its own records (two services in one file)."""
        building = Building(record.source, record.stream)
        pids = self._by_pid[key]
        parallel = before is not None and not before.ended and mark == split.BANNER and record.pid is not None
        if not parallel or record.pid in pids:
            pids.clear()
        self._current[key] = building
        if len(self._all) >= _MOST_RUNS:
            self._all.pop()
            self._left_out += 1
        self._all.append(building)
        return building

    def _joined(self, key: _Key, current: Building, node: split.Node | None) -> Building:
        """The run that ``current`` is part of: another node of a run whose arguments another stream has shown."""
        if node is None:
            return current
        current.nodes.add(node)
        if node.count < 2:
            return current
        for other in self._all:
            if other is not current and not current.votes and any(map(node.joins, other.nodes)):
                self._all.remove(current)
                self._current[key] = other
                other.nodes.add(node)
                return other
        return current
