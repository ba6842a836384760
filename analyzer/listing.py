"""Events as lines to read or to pipe on, and what no grammar recognised, by template."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from analyzer.event_lines import json_line
from analyzer.events import Event
from analyzer.framing import frame
from analyzer.framing.record import Record
from analyzer.parsing import default_catalog
from analyzer.redact import clean
from analyzer.sources import open_sources
from analyzer.units import show

_VARIABLE = re.compile(r"0x[0-9a-fA-F]+|\d+(?:[.,:]\d+)*|'[^'\n]{0,200}'|\"[^\"\n]{0,200}\"|(?:/[\w.+-]+)+")
_TEMPLATES = 5000
_BLOCK = 4 << 20
"""Bytes that are read before their events are written."""
_SLOW = 1 << 16


def records_and_events(paths: Sequence[str]) -> Iterator[tuple[Record, Event | None]]:
    """Every record of ``paths`` with the event it holds, as they stand there."""
    catalog = default_catalog()
    for source in open_sources(paths, as_it_stands=True):
        for record in frame(source.chunks(), source.name):
            yield record, catalog.match(record)


def list_events(paths: Sequence[str], format: str, kinds: frozenset[str] = frozenset()) -> Iterator[str]:
    """One line of text or JSON for each recognised record; only ``kinds`` if any are given."""
    if format == "jsonl":
        for text in all_events(paths, kinds):
            yield from text[:-1].split("\n")
        return
    for _, event in records_and_events(paths):
        if event is None or (kinds and event.kind not in kinds):
            continue
        fields = "  ".join(f"{k}={show(v, event.units.get(k, 'any'))}" for k, v in event.fields.items())
        rank = f" {event.rank}" if event.rank else ""
        yield clean(f"{event.line:>7}{rank}  {event.kind}  {fields}")


def all_events(paths: Sequence[str], kinds: frozenset[str] = frozenset()) -> Iterator[str]:
    """Every event as a line of JSON, many lines at once; of long inputs they are read by columns.

    Only ``kinds``, if any are given.
    """
    from analyzer.event_stream import EventStream

    for source in open_sources(paths):
        stream = EventStream(source.name, kinds=kinds)
        held: list[bytes] = []
        for chunk in source.chunks():
            held.append(chunk)
            if len(chunk) < _SLOW or sum(map(len, held)) >= _BLOCK:  # a pipe that brings little is not waited for
                stream.feed(b"".join(held))
                held = []
                if text := stream.take():
                    yield text
        stream.feed(b"".join(held))
        stream.close()
        if text := stream.take():
            yield text


def list_unrecognised(paths: Sequence[str], format: str) -> Iterator[str]:
    """The records that nothing recognised, grouped by template, most frequent first."""
    groups: dict[str, list[Any]] = {}
    left_out = 0
    for record, event in records_and_events(paths):
        if event is not None or record.form in ("traceback", "bar"):
            continue
        first = record.text.split("\n", 1)[0][:300]
        template = _VARIABLE.sub("<*>", first)
        if (group := groups.get(template)) is not None:
            group[0] += 1
        elif len(groups) < _TEMPLATES:
            groups[template] = [1, record.source, record.line, first]
        else:
            left_out += 1
    for template, (count, source, line, text) in sorted(groups.items(), key=lambda item: -item[1][0]):
        if format == "jsonl":
            row = {"count": count, "source": source, "line": line, "template": template, "text": text}
            yield json_line(row)
        else:
            yield clean(f"{count:>7}  l. {line:<7} {template}")
    if left_out:
        yield f"{left_out} records of further templates are not shown: more than {_TEMPLATES} templates"
