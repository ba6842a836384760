"""A line freed from its outer prefixes -> the messages in it, each handed to the joiner with its prefix read.

A line may hold several: frames of progress bars, a text whose LF got lost and the next process's line behind it, or a
prefix that no rule knows in front of the engine's.
"""

from __future__ import annotations

import re

from analyzer.framing import bars, engine
from analyzer.framing.blocks import TRACEBACK
from analyzer.framing.join import Joiner
from analyzer.framing.outer import Outer, Peeler
from analyzer.framing.quotes import without_quoted
from analyzer.framing.record import Record

_UNENDED = "refleaks.html"
"""The end of nanobind's leak report, which it prints without LF: another process's text follows at once."""


class Context:
    """What the prefixes in front of a message said; it holds for what follows in the same physical line, too."""

    __slots__ = ("header", "last", "number", "outer", "pid", "process", "rank")

    def __init__(self, outer: Outer, number: int, last: int) -> None:
        self.outer, self.number, self.last = outer, number, last
        self.header = outer.stream
        self.process, self.rank = outer.process, ""
        self.pid: int | None = None

    def read_tags(self, text: str) -> str:
        """``text`` without the process tags at its front; the innermost counts."""
        header = self.outer.stream
        while text[:1] == "(" and (match := engine.pattern("tag").match(text)):
            tag = engine.process_tag(match[1])
            if tag is None:
                break
            self.process, self.rank, self.pid = tag
            header += match[0]
            self.header = header
            text = text[match.end() :]
        return text

    def record(self, source: str, text: str, form: str = "raw", *, timed: bool = True) -> Record:
        """A record of ``text`` with what is known of the line; not ``timed`` if its own stamp will be read."""
        outer = self.outer
        text, repeated = engine.repetition(text)
        time = outer.time if timed else None
        return Record(
            source, self.number, self.last, text, form, time, outer.stamp, "", self.rank, self.process, self.pid,
             "", outer.stream, None, repeated,
        )  # fmt: skip


class MessageReader:
    """Reads lines of any kind; plain engine lines need not come here (``Framer`` has a short cut for them)."""

    def __init__(self, source: str, joiner: Joiner, peeler: Peeler) -> None:
        self._source = source
        self._joiner = joiner
        self._peeler = peeler

    def read(self, text: str, number: int, last: int, outer: Outer) -> None:
        """Reads the physical lines ``number`` to ``last``, whose text was ``text`` behind the outer prefixes."""
        if outer.fields is not None:
            self._formatted(text, number, last, outer)
            return
        if "\n" in text:  # a collector's entry of several lines
            for part in text.split("\n"):
                self.read(part, number, last, outer)
            return
        context = Context(outer, number, last)
        bare = text.rstrip("\r")
        cr = len(text) - len(bare) > self._joiner.crlf
        if len(text) == len(bare):
            self._joiner.lf = True
        pieces = [piece for piece in bare.split("\r") if piece]
        for piece in pieces[:-1]:
            self._piece(piece, context, False)
        if pieces:
            self._piece(pieces[-1], context, cr)
        else:
            self._joiner.blank(context.record(self._source, ""))

    def _piece(self, text: str, context: Context, cr: bool) -> None:
        """Text without CR: frames of bars, then messages."""
        text = context.read_tags(text)
        if "%" in text and _header(text) is None and (split := bars.split(text)):
            for frame in split[0]:
                if engine.looks_embedded(frame) and (places := engine.messages_in(frame)):
                    self._messages(frame[places[0][1] :], context, False)
                else:
                    self._joiner.bar(context.record(self._source, frame, "bar"))
            text = split[1]
            if not text.strip():
                return
        self._messages(text, context, cr)

    def _messages(self, text: str, context: Context, cr: bool) -> None:
        """One message, or several glued together."""
        text = context.read_tags(text)
        header = _header(text)
        places = _glued(text, header.end() if header is not None else 0)
        if not places:
            self._message(text, header, context, cr)
            return
        begin = 0
        for at, own in [*places, (len(text), len(text))]:
            part = context.read_tags(text[begin:at])
            header = _header(part)
            if part and not (
                header is None and begin == 0 and at < len(text) and (_is_markup(part) or self._peeler.learn(part))
            ):
                self._message(part, header, context, cr and at == len(text))
            if own > at and not context.outer.stamp:
                context.outer.stamp = text[at:own].strip("[] ")
            begin = own

    def _message(self, text: str, header: re.Match[str] | None, context: Context, cr: bool) -> None:
        if text.endswith("  "):  # copied from a terminal that pads its lines
            text = text.rstrip(" ")
        if header is not None:
            record = self._engine_record(text, header, context)
            # vLLM repeats its header on each line of a record; SGLang and uvicorn do not: equal ones mean nothing there
            repeated = context.header + header[0] if record.module else ""
            self._joiner.engine(record, repeated + " " if repeated.endswith("]") else repeated, cr)
        elif not text.strip() or (text.startswith("```") and len(text) < 20):
            self._joiner.blank(context.record(self._source, ""))
        elif not (record := context.record(self._source, text)).text:  # nothing but a count of repetitions
            self._joiner.blank(record)
        else:
            if cr and context.pid is None:
                self._joiner.saw_cr()
            self._joiner.raw(record)

    def _engine_record(self, text: str, header: re.Match[str], context: Context) -> Record:
        timed = header.re is engine.pattern("vllm") and not header[3]
        record = context.record(self._source, text[header.end() :], "log", timed=timed)
        if header.re is engine.pattern("vllm"):
            _, level, stamp, module, uvicorn = header.groups("")
            record.level, record.module = level or uvicorn, module
            if stamp:
                record.stamp, record.time = stamp, engine.seconds_without_year(stamp)
            return record
        if header.re is engine.pattern("ranks"):
            record.time, record.rank = context.outer.time, header[1]
            return record
        stamp, fraction, ranks, encoder, record.level = header.groups("")
        if (source := engine.pattern("source").match(record.text)) is not None:
            record.level, record.text = source[1], record.text[source.end() :]
        record.stamp, record.time = stamp + fraction, engine.seconds(stamp)
        if fraction and record.time is not None:
            record.time += float("0." + fraction[1:])
        record.rank = ranks[1:] or context.rank
        record.process = encoder[1:] or context.process
        return record

    def _formatted(self, text: str, number: int, last: int, outer: Outer) -> None:
        """A JSON formatter's object: one record, and a second one for its traceback."""
        fields = outer.fields or {}
        context = Context(outer, number, last)
        name, pid = str(fields.get("processName") or ""), fields.get("process")
        if isinstance(pid, int) and (tag := engine.process_tag(f"{name} pid={pid}")):
            context.process, context.rank, context.pid = tag
        place, line = fields.get("filename") or fields.get("module") or fields.get("name"), fields.get("lineno")
        trace = fields.get("exc_info") or fields.get("exception") or fields.get("stack_trace")
        lines = text.split("\n")
        at = next((index for index, part in enumerate(lines) if part.startswith(TRACEBACK)), len(lines))
        messages = ["\n".join(lines[:at])] if at else []
        frames = lines[at:]
        if isinstance(trace, str) and not frames:
            frames = trace.strip().split("\n")
        for index, part in enumerate(messages + frames):
            record = context.record(self._source, part, "log")
            record.level = str(fields.get("levelname") or fields.get("level") or "").upper()
            record.module = f"{place}:{line}" if place and line else str(place or "")
            self._joiner.engine(record, f"{{{number}:{index < len(messages)}", False)


def _header(text: str) -> re.Match[str] | None:
    """The engine prefix at the front of ``text``, process tags left aside."""
    first = text[:1]
    if first == "[":
        return engine.pattern("sglang").match(text) or engine.pattern("ranks").match(text)
    if first in ("I", "W", "E", "D", "C"):
        return engine.pattern("vllm").match(text)
    if first.isdigit() and text[4:5] == "-":
        return engine.pattern("sglang_cut").match(text)
    return None


def _glued(text: str, start: int) -> list[tuple[int, int]]:
    """Where messages begin in ``text`` besides the one at its front, whose own text begins at ``start``."""
    if engine.looks_embedded(text[start:] if start else text):
        places = engine.messages_in(text)
        places = places[1:] if places and places[0] == (0, 0) else places
        return without_quoted(text, start, places) if places else places
    at = text.find(_UNENDED) + len(_UNENDED)
    return [(at, at)] if len(_UNENDED) <= at < len(text) else []


def _is_markup(head: str) -> bool:
    """Whether nothing but quote, list or emphasis marks stands before an engine prefix."""
    return len(head) < 8 and not any(character.isalnum() for character in head)
