"""Recordings that hold a log in pieces: journald's export format and asciinema's casts, read as they come.

``journalctl -o export`` writes a block of fields for each entry; the entries become the objects that ``journalctl -o
json`` would have written. A cast (v2, v3) is a header and one JSON list for each piece of output, which together are
what the terminal was sent. Whatever is neither passes as it is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from analyzer.errors import UserError
from analyzer.sources.ahead import look_ahead

HEAD = 64 << 10
"""Bytes among which the first line must end, if it is to be looked at."""
MOST = 1 << 20
"""Bytes of a message, or of a piece of output, that are read."""

EXPORT = "journalctl -o export: its entries are read as lines, and line numbers count them"
CAST = "a recording of a terminal (asciinema): read as what it was sent, and line numbers count that"

_JOURNAL = re.compile(rb"\n*__(?:CURSOR|REALTIME_TIMESTAMP|SEQNUM|MONOTONIC_TIMESTAMP)=[^\n]")
_CAST = re.compile(rb'\s*\{.*"version"\s*:\s*[23]\b')
_WANTED = {
    b"MESSAGE": "MESSAGE", b"_SYSTEMD_UNIT": "_SYSTEMD_UNIT", b"CONTAINER_NAME": "container_name",
    b"__REALTIME_TIMESTAMP": "timestamp",
}  # fmt: skip
_COUNT = 8
"""Bytes of the number before a value that is no text."""
_LARGEST = 1 << 30
"""More bytes than a journal holds for one value."""


def out_of_recordings(chunks: Iterator[bytes], notes: list[str]) -> Iterator[bytes]:
    """``chunks``, or the log that they hold in pieces; ``notes`` is told of the latter.

    An error of ``chunks`` is raised after what could be read was given.
    """
    ahead = look_ahead(chunks, lambda held, size: size >= HEAD or _is_decided(b"".join(held)))
    head = b"".join(ahead.held)
    if _JOURNAL.match(head):
        notes.append(EXPORT)
        yield from _journal(ahead.all())
    elif _CAST.match(head) and _is_cast(head.lstrip().partition(b"\n")[0]):
        notes.append(CAST)
        yield from _cast(ahead.all())
    else:
        yield from ahead.all()


def _is_decided(head: bytes) -> bool:
    """Whether more would not tell more."""
    first = head.lstrip()
    return len(first) >= 32 and (not first.startswith(b"{") or b"\n" in first)


def _is_cast(line: bytes) -> bool:
    try:
        header = json.loads(line)
    except ValueError:
        return False
    return isinstance(header, dict) and header.get("version") in (2, 3) and ("width" in header or "term" in header)


@dataclass(slots=True)
class _Bytes:
    """A stream read by lines and by numbers of bytes. Of what is longer than ``MOST`` the rest is passed over."""

    chunks: Iterator[bytes]
    _held: bytes = b""
    _at: int = 0
    _failure: UserError | None = field(default=None)

    def line(self) -> bytes | None:
        """The next line without its line feed; None at the end."""
        line = bytearray()
        while (end := self._held.find(b"\n", self._at)) < 0:
            line += self._rest()[: MOST - len(line)]
            if not self._more():
                return bytes(line) or None
        rest, self._at = self._held[self._at : end], end + 1
        return bytes(line) + rest[: MOST - len(line)] if line else rest

    def exactly(self, size: int) -> bytes:
        """The next ``size`` bytes, fewer at the end."""
        taken = bytearray()
        while size > 0:
            part = self._held[self._at : self._at + size]
            self._at += len(part)
            size -= len(part)
            taken += part[: MOST - len(taken)]
            if size and not self._more():
                break
        return bytes(taken)

    def _rest(self) -> bytes:
        rest, self._at = self._held[self._at :], len(self._held)
        return rest

    def _more(self) -> bool:
        try:
            self._held, self._at = next(self.chunks, b""), 0
        except UserError as error:
            self._failure, self._held, self._at = error, b"", 0
        return bool(self._held)

    def close(self) -> None:
        """Raises what ended the stream, if it was an error."""
        if self._failure is not None:
            raise self._failure


def _journal(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """The entries as the lines of ``journalctl -o json``."""
    source = _Bytes(chunks)
    entry: dict[str, Any] = {}
    while (line := source.line()) is not None:
        if not line:
            yield from _entry(entry)
            entry = {}
            continue
        name, is_text, value = line.partition(b"=")
        if not is_text:
            size = int.from_bytes(source.exactly(_COUNT), "little")
            if size > _LARGEST:  # no entry of a journal: what follows is read as fields again
                continue
            value = source.exactly(size)
            source.exactly(1)
        if (key := _WANTED.get(name)) is not None:
            entry[key] = value
    yield from _entry(entry)
    source.close()


def _entry(fields: dict[str, bytes]) -> Iterator[bytes]:
    message = fields.pop("MESSAGE", None)
    if message is None:
        return
    entry: dict[str, Any] = {}
    stamp = fields.pop("timestamp", b"")
    if stamp.isdigit() and len(stamp) <= 17:  # microseconds; at the front, where the order of lines is read from
        entry["timestamp"] = datetime.fromtimestamp(int(stamp) / 1e6, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    entry |= {key: value.decode("utf-8", "replace") for key, value in fields.items()}
    plain = message.isascii() and b"\x1b" not in message
    entry["MESSAGE"] = message.decode() if plain else list(message)  # as journald does with what is no plain text
    yield json.dumps(entry).encode() + b"\n"


def _cast(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """What the terminal was sent."""
    source = _Bytes(chunks)
    source.line()
    while (line := source.line()) is not None:
        try:
            event = json.loads(line)
        except ValueError:  # a comment, or where the recording was cut
            continue
        if isinstance(event, list) and len(event) == 3 and event[1] == "o" and isinstance(event[2], str):
            yield event[2].encode("utf-8", "replace")
    source.close()
