"""Tables that log services export (CSV and TSV of Grafana, CloudWatch, Datadog, Google, Azure, Kibana, Splunk):
their rows as lines, the message freed from its quotes.

A table is one that begins with names of columns, of which one is known to hold the message, or whose every row begins
with a time and a delimiter. The first ``SAMPLE`` bytes must bear that out; whatever does not passes as it is. Rows are
read as they come, so a table may be of any size. Each row becomes one line, also where its message holds several.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from analyzer.errors import UserError
from analyzer.patterns import on_demand
from analyzer.sources.ahead import look_ahead
from analyzer.sources.exports import entry_line
from analyzer.sources.table_rows import RowReader, fields
from analyzer.sources.table_times import iso

SAMPLE = 64 << 10
"""Bytes that decide."""
FEWEST = 3
"""Rows below which nothing is said of a table, unless its header names a time and the rows have one there."""
STRAY = 0.1
"""Share of the rows that may have another number of fields (a cut end, quotes that were not doubled)."""

NOTE = "a table that a log service exported: its rows are read as lines, and line numbers count rows, the header too"

_TEXTS = (
    "textpayload", "message", "logmessage", "log_message", "logentry", "line", "msg", "jsonpayload_message", "raw",
    "body", "content", "text", "log", "event",
)  # fmt: skip
_TIMES = ("timestamp", "time", "date", "timegenerated", "datetime", "ts", "dt", "eventtime", "tsns", "receivetimestamp")
_NAMES = (
    "pod", "pod_name", "podname", "kubernetes_pod_name", "resource_labels_pod_name", "container", "container_name",
    "containername", "logstream", "logstreamname", "service", "app",
)  # fmt: skip
_LABELS = ("labels", "stream")
_FIRST = ("1", "2", '"')
"""What a row without a header can begin with."""
_DELIMITERS = ",;\t|"

_TIME = r"(?:\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.]\d{1,9})?(?: ?(?:Z|UTC|[+-]\d\d:?\d\d))?|\d{10,19})"
_PATTERNS = {
    "name": r"(?:[@_A-Za-z][\w@ .\[\]()/:-]{0,60})?",
    # how a row without a header begins: a time, and no part of a second behind its delimiter, or labels and a time
    "row": (
        rf'(?P<quote>"?){_TIME}(?P=quote)(?P<delimiter>[,;]|\t(?="))(?=[^\d\s]|\d{{4}}-)'
        rf'|"\{{""[^\n]*?\}}"(?P<comma>,)(?P<q>"?){_TIME}(?P=q),'
    ),
}
_pattern = on_demand(_PATTERNS)


@dataclass(frozen=True, slots=True)
class Table:
    """How the rows of one table are read: its columns by their place."""

    delimiter: str
    quoted: bool
    width: int
    texts: tuple[int, ...]
    time: int | None
    name: int | None = None
    labels: int | None = None
    timed: bool = True
    """Whether the times differ; one time for all says nothing, and would hide what the messages say."""
    headed: bool = True
    starts: bool = False
    """Whether each row begins as one without a header does."""

    def rows(self) -> RowReader:
        """A reader of the rows."""
        return RowReader(quoted=self.quoted, start=_pattern("row") if self.starts else None)

    def cells(self, row: str) -> list[str] | None:
        """The fields of ``row``, as many as there are columns; None if it is no row of this table."""
        cells = fields(row, self.delimiter, quoted=self.quoted, width=self.width)
        last = self.width - 1
        if len(cells) > self.width and last in self.texts:
            cells[last:] = [self.delimiter.join(cells[last:])]
        if len(cells) != self.width and max(self.texts) >= len(cells):
            return None
        return cells if len(cells) <= self.width else None

    def line(self, row: str) -> bytes:
        """The line that ``row`` holds."""
        cells = self.cells(row) if row else None
        if cells is None:
            return self._part(row).encode("utf-8", "replace") + b"\n"
        text = next((cells[place] for place in self.texts if cells[place]), "")
        stamp = iso(cells[self.time]) if self.timed and self.time is not None else ""
        name = cells[self.name] if self.name is not None and self.name < len(cells) else ""
        if not name and self.labels is not None and self.labels < len(cells):
            name = _of_labels(cells[self.labels])
        return entry_line(text.rstrip("\r\n"), stamp, name)

    def _part(self, row: str) -> str:
        """What is no row: the rest of one whose head was cut off."""
        if self.quoted:
            text = row.replace('""', '"')
            return text.removesuffix('"') if row.count('"') % 2 else text
        return row


def rows_of_tables(chunks: Iterator[bytes], notes: list[str]) -> Iterator[bytes]:
    """``chunks``, or the lines in the rows of the table that they are; ``notes`` is told of the latter.

    An error of ``chunks`` is raised after what could be read was given.
    """
    ahead = look_ahead(chunks, lambda held, size: size >= SAMPLE)
    table = _table(b"".join(ahead.held)[:SAMPLE], whole=ahead.ended)
    if table is None:
        yield from ahead.all()
        return
    notes.append(NOTE)
    reader, headed = table.rows(), table.headed
    try:
        for chunk in ahead.all():
            rows = reader.feed(chunk)
            if rows and headed:  # the header is a line, too, and says nothing
                rows[0], headed = "", False
            if rows:
                yield b"".join(map(table.line, rows))
    except UserError:
        yield b"".join(map(table.line, reader.close()))
        raise
    if rows := reader.close():
        yield b"".join(map(table.line, rows))


def _table(head: bytes, *, whole: bool) -> Table | None:
    """The table that begins with ``head``; None if it is none."""
    text = head.decode("utf-8", "replace").removeprefix("\ufeff")
    first, _, body = text.partition("\n")
    table = _header(first.rstrip("\r"))
    if table is None:
        table = _without_header(text)
        body = text
    if table is None:
        return None
    starts = _pattern("row").match(body) is not None if table.headed else True
    table = replace(table, quoted='"' in body and _is_quoted(body, table.delimiter), starts=starts)
    reader = table.rows()
    rows = reader.feed(body.encode()) + (reader.close() if whole else [])
    cells = [found for row in rows if row and (found := table.cells(row)) is not None and len(found) == table.width]
    filled = sum(map(bool, rows))
    if filled - len(cells) > max(1, STRAY * filled) or not cells:
        return None
    if table.width == 1 and not table.quoted:
        return None  # a log whose first line happens to be such a word
    if table.time is not None:
        times = [found[table.time] for found in cells]
        if sum(map(bool, map(iso, times))) < (1 - STRAY) * len(times):
            table = replace(table, time=None)
        table = replace(table, timed=len(set(times)) > 1)
    return table if len(cells) >= FEWEST or (table.headed and table.time is not None) else None


def _is_quoted(body: str, delimiter: str) -> bool:
    """Whether quotes enclose fields here."""
    return re.search(f'(?m)^"|{re.escape(delimiter)}"', body) is not None


def _header(line: str) -> Table | None:
    """The table whose columns ``line`` names, if one of them is known to hold the message."""
    plain = line.strip('"')
    if plain.lower() in _TEXTS and line == f'"{plain}"':
        return Table(",", True, 1, (0,), None)
    for delimiter in _DELIMITERS:
        names = [name.strip() for name in fields(line, delimiter, quoted=True)]
        if len(names) < 2 or not all(map(_pattern("name").fullmatch, names)):
            continue
        known = [_plain_name(name) for name in names]
        if len(set(known)) < len(known):
            return None
        texts = tuple(known.index(name) for name in _TEXTS if name in known)
        if texts:
            return Table(
                delimiter, True, len(names), texts, _place(known, _TIMES), _place(known, _NAMES),
                _place(known, _LABELS),
            )  # fmt: skip
    return None


def _plain_name(name: str) -> str:
    """A column's name as services write it in many ways: ``@timestamp``, ``TimeGenerated [UTC]``, ``_raw``."""
    return re.sub(r"[ .-]", "_", re.sub(r" *[\[(].*", "", name).lstrip("@_")).lower()


def _place(names: list[str], wanted: tuple[str, ...]) -> int | None:
    return next((names.index(name) for name in wanted if name in names), None)


def _without_header(text: str) -> Table | None:
    """The table whose rows begin with a time: what is longest in them is the message."""
    row = _pattern("row")
    starts = [match for line in text.split("\n") if line[:1] in _FIRST and (match := row.match(line))]
    if len(starts) < FEWEST:
        return None
    delimiter = starts[0]["delimiter"] or starts[0]["comma"]
    rows = RowReader(quoted=True, start=row).feed(text.encode())
    found = [
        fields(line, delimiter, quoted=True) for line in rows
        if (match := row.match(line)) and delimiter in (match["delimiter"], match["comma"])
    ]  # fmt: skip
    if not found:
        return None
    width = Counter(map(len, found)).most_common(1)[0][0]
    found = [cells for cells in found if len(cells) == width]
    time = next((place for place in range(min(2, width)) if all(iso(cells[place]) for cells in found)), None)
    if width < 2 or time is None:
        return None
    message = max(range(time + 1, width), key=lambda place: sum(len(cells[place]) for cells in found), default=None)
    if message is None:
        return None
    return Table(delimiter, True, width, (message,), time, labels=0 if time else None, headed=False)


@lru_cache(maxsize=1024)
def _of_labels(text: str) -> str:
    """The pod or container in a column of labels: an object in JSON."""
    if not text.startswith("{"):
        return ""
    import json

    try:
        labels = json.loads(text)
    except ValueError:
        return ""
    found = (labels.get(name) for name in _NAMES)
    return next((name for name in found if isinstance(name, str) and name), "")
