"""One JSON document that a log service answered (Loki, CloudWatch, Google Cloud, Elasticsearch): its entries as lines.

Such a document holds all lines of a log in strings, often newest first, on one physical line or spread over many. It is
read whole, up to a bound, and given as one JSON object a line, oldest first, which is what collectors write. So are
objects that are each spread over several lines (``journalctl -o json-pretty``, ``jq``), a list of strings, a whole log
in one string, of JSON or of Python, and the YAML of ``gcloud logging read``. Whatever is no such document, or is cut
off, passes as it is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from analyzer.sources.ahead import look_ahead

MOST = 32 << 20
"""Bytes of a document that are held."""
HEAD = 256
"""Bytes that decide whether an input may be one."""
DEPTH = 8
"""Levels of nesting in which entries are looked for."""
FEWEST = 2
"""Entries below which nothing is taken apart."""

NOTE = "an export of a log service: its entries are read oldest first, and line numbers count them"

_SPREAD = rb"\{[ \t]*\r?\n\s*\""
_BEGIN = re.compile(
    rb"\s*(?:\[\s*[\{\"]|" + _SPREAD + rb"|b?\"(?:[^\"\\\n]|\\.){100}|b'(?:[^'\\\n]|\\.){100}"
    rb"|---\r?\n(?:insertId|textPayload|jsonPayload|labels|logName): "
    rb"|\{\s*\"(?:status|data|events|logEvents|entries|hits|took|result|results|searchedLogStreams)\"\s*:)"
)
_PYTHON = re.compile(rb"b(?:'(?:[^'\\\n]|\\.)*'|\"(?:[^\"\\\n]|\\.)*\")")
_TEXTS = ("textPayload", "message", "MESSAGE", "log", "line", "msg")
_NESTED = ("jsonPayload", "_source", "attributes")
_STAMPS = ("timestamp", "@timestamp", "time", "ts", "__REALTIME_TIMESTAMP")
_NAMES = ("pod", "pod_name", "container", "container_name", "logStreamName", "app")
_ISO = re.compile(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:[.,](\d{1,9}))?")


@dataclass(frozen=True, slots=True)
class _Entry:
    text: str
    key: tuple[str, str]
    """The kind of time and the time as text that sorts; empty without one."""
    stamp: str = ""
    name: str = ""


def entries_of_exports(chunks: Iterator[bytes], notes: list[str]) -> Iterator[bytes]:
    """``chunks``, or the entries of the document that they hold; ``notes`` is told of the latter.

    An error of ``chunks`` is raised after what could be read was given.
    """
    ahead = look_ahead(
        chunks, lambda held, size: (size >= HEAD and not _BEGIN.match(b"".join(held)[:HEAD])) or size > MOST
    )
    held = ahead.held
    data = b"".join(held) if ahead.ended and held and _BEGIN.match(held[0][:HEAD]) else b""
    if data and (entries := _read(data)):
        held.clear()
        notes.append(NOTE)
        yield from _lines(entries)
        return
    yield from ahead.all()


def _read(data: bytes) -> list[_Entry]:
    """The entries of a document, oldest first; none if it is not one."""
    document = _parsed(data)
    entries = list(_found(document, "", DEPTH))
    if len(entries) < FEWEST:
        return []
    if all(e.key[0] for e in entries) and len({e.key[0] for e in entries}) == 1:
        if entries[0].key > entries[-1].key:
            entries.reverse()  # lines of the same instant keep their order, too
        entries.sort(key=lambda e: e.key)
    return entries


def _parsed(data: bytes) -> Any:
    """The document, a list where there are several, the lines of a log in one string; None if it is none of these."""
    try:
        if data.lstrip().startswith(b"---"):
            return _of_yaml(data)
        if data.lstrip().startswith(b"b"):
            import ast

            text = data.strip()
            if _PYTHON.fullmatch(text) is None:
                return None
            return ast.literal_eval(text.decode()).decode("utf-8", "backslashreplace").rstrip("\n").split("\n")
        try:
            value = json.loads(data)
        except ValueError:
            spread = re.match(rb"\s*" + _SPREAD, data)
            value = list(_one_by_one(data.decode("utf-8", "replace"))) if spread else None
        return value.rstrip("\n").split("\n") if isinstance(value, str) else value
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None


def _of_yaml(data: bytes) -> list[Any] | None:
    """The documents in ``data``; none of an input that nests or repeats itself as no log service writes it."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    depth = 0
    try:
        for event in yaml.parse(data, Loader=loader):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > 4 * DEPTH or isinstance(event, yaml.AliasEvent):
                return None
        return list(yaml.load_all(data, loader))
    except yaml.YAMLError:
        return None


def _one_by_one(text: str) -> Iterator[Any]:
    """The objects that follow one another in ``text``. Raises ``ValueError`` if that is not all there is."""
    decode, at = json.JSONDecoder().raw_decode, 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        value, at = decode(text, at)
        yield value


def _found(value: Any, name: str, depth: int) -> Iterator[_Entry]:
    if depth < 0:
        return
    if isinstance(value, list):
        for item in value:
            if isinstance(item, str):
                if depth == DEPTH:
                    yield _Entry(item, ("", ""))
            elif _is_pair(item):
                yield _Entry(item[1], ("number", f"{int(item[0]):020}"), name=name)
            else:
                yield from _found(item, name, depth - 1)
    elif isinstance(value, dict):
        if (text := _text(value)) is not None:
            key, stamp = _time(value)
            yield _Entry(text, key, stamp, _name(value) or name)
            return
        name = _name(value) or name
        for inner in value.values():
            if isinstance(inner, list | dict):
                yield from _found(inner, name, depth - 1)


def _is_pair(item: Any) -> bool:
    """Whether ``item`` is Loki's ``[nanoseconds, line]``."""
    return (
        isinstance(item, list) and len(item) >= 2 and all(isinstance(i, str) for i in item[:2])
        and item[0].isascii() and item[0].isdigit() and len(item[0]) <= 20
    )  # fmt: skip


def _text(entry: dict[str, Any]) -> str | None:
    for holder in (entry, *(entry[key] for key in _NESTED if isinstance(entry.get(key), dict))):
        for key in _TEXTS:
            if isinstance(holder.get(key), str):
                return str(holder[key])
    return None


def _time(entry: dict[str, Any]) -> tuple[tuple[str, str], str]:
    source = entry.get("_source")
    for holder in (entry, source if isinstance(source, dict) else {}):
        for key in _STAMPS:
            value = holder.get(key)
            if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
                return ("number", f"{value:020}"), ""
            if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 20:
                return ("number", f"{int(value):020}"), ""
            if isinstance(value, str) and (match := _ISO.match(value)):
                return ("date", f"{match[1]} {match[2]}.{match[3] or '':0<9}"), value
    return ("", ""), ""


def _name(holder: dict[str, Any]) -> str:
    """The pod, container or stream that an entry, or the entries in it, came from."""
    labels: list[Any] = [holder.get("stream"), holder.get("labels"), holder]
    if isinstance(resource := holder.get("resource"), dict):
        labels.insert(0, resource.get("labels"))
    for label in labels:
        if isinstance(label, dict):
            found = next((label[key] for key in _NAMES if isinstance(label.get(key), str)), "")
            if found:
                return str(found)
    return ""


def _lines(entries: list[_Entry]) -> Iterator[bytes]:
    several = len({e.name for e in entries}) > 1
    timed = entries[0].key != entries[-1].key  # one time for all says nothing, and would hide what the lines say
    for entry in entries:
        yield entry_line(
            entry.text.removesuffix("\n"),
            entry.stamp if timed else "",
            entry.name if several else "",
        )


def entry_line(text: str, stamp: str, name: str) -> bytes:
    """One entry as the line that a collector would have written; ``stamp`` and ``name`` may be empty."""
    about = {"timestamp": stamp} if stamp else {}  # at the front, where the order of lines is read from
    about["message"] = text
    if name:
        about["pod"] = name
    return json.dumps(about, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
