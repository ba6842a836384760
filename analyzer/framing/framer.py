"""Bytes of one log -> records: the steps decode, unwrap, outer prefix, engine prefix and join, one after the other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

from analyzer.framing import bars, engine
from analyzer.framing.decode import LineReader
from analyzer.framing.join import Joiner
from analyzer.framing.outer import Outer, Peeler
from analyzer.framing.record import Record
from analyzer.framing.unwrap import Unwrapper

Bytes: TypeAlias = bytes
"""``bytes`` under a name that ``Framer.bytes`` does not hide."""


def frame(chunks: Iterable[Bytes], source: str) -> Iterator[Record]:
    """The records of one log; the same whatever the boundaries of ``chunks``."""
    framer = Framer(source)
    for chunk in chunks:
        yield from framer.feed(chunk)
    yield from framer.close()


class Framer:
    """Frames one log, fed piece by piece.

    Some records are held back because the next line may belong to them; ``flush`` hands them out when a live source
    falls silent. ``unwrap=False`` leaves out the look-ahead that detects pastes wrapped by a terminal.
    """

    def __init__(self, source: str, *, unwrap: bool = True) -> None:
        self.source = source
        self.lines = 0
        """Physical lines so far."""
        self._reader = LineReader()
        self._peeler = Peeler()
        self._unwrapper = Unwrapper() if unwrap else None
        self._joiner = Joiner()
        self._parts: dict[str, tuple[str, int]] = {}
        self._sglang = engine.pattern("sglang").match
        self._vllm = engine.pattern("vllm").match

    @property
    def bytes(self) -> int:
        """Bytes so far."""
        return self._reader.bytes

    def feed(self, data: Bytes) -> list[Record]:
        """The records that ``data`` completes."""
        self._take(self._reader.feed(data))
        return self._handed_out()

    def flush(self) -> list[Record]:
        """The records held back, as they are. A line without its LF is not among them."""
        if self._unwrapper is not None:
            self._spans(self._unwrapper.flush())
        self._joiner.close()
        return self._handed_out()

    def close(self) -> list[Record]:
        """The records that are left at the end of the input."""
        self._take(self._reader.close())
        if self._unwrapper is not None:
            self._spans(self._unwrapper.flush())
        for stream, (text, line) in list(self._parts.items()):
            self._inner(text, line, self.lines, Outer(stream=stream))
        self._parts.clear()
        self._joiner.close()
        return self._handed_out()

    def _handed_out(self) -> list[Record]:
        out, self._joiner.out = self._joiner.out, []
        return out

    def _take(self, lines: list[str]) -> None:
        if not lines:
            return
        first = self.lines + 1
        self.lines += len(lines)
        if self._unwrapper is None or self._unwrapper.idle:
            self._plain(lines, first)
            if self._unwrapper is not None:
                self._unwrapper.watch(lines)
        else:
            self._spans(self._unwrapper.feed(lines, first))

    def _spans(self, spans: Iterable[tuple[str, int, int]]) -> None:
        for text, first, last in spans:
            self._line(text, first, last)

    def _plain(self, lines: list[str], number: int) -> None:
        """The common path: lines that begin with an engine prefix and hold one whole message."""
        sglang, vllm, joiner, source = self._sglang, self._vllm, self._joiner, self.source
        looks_embedded, process_tag = engine.looks_embedded, engine.process_tag
        seconds, without_year = engine.seconds, engine.seconds_without_year
        number -= 1
        stamp, time = "", None
        for line in lines:
            number += 1
            first = line[:1]
            if first == "[":
                match = sglang(line)
                if match is not None:
                    header = match[0]
                    text = line[len(header) :]
                    when, fraction, ranks, encoder, level = match.groups("")
                    if (
                        text
                        and text[0] != " "
                        and text[-1] not in ":\r"
                        and not looks_embedded(text)
                        and not joiner.queue
                        and not encoder
                    ):
                        if when != stamp:
                            stamp, time = when, seconds(when)
                        if joiner.last is not None:
                            joiner.out.append(joiner.last)
                        joiner.last_cr = False
                        joiner.last_header = header
                        joiner.last = Record(
                            source, number, number, text, "log", time if not fraction else (time or 0.0) + float("0." + fraction[1:]),
                            when + fraction, level, ranks[1:],
                        )  # fmt: skip
                        continue
            elif first in "(IWEDC":
                match = vllm(line)
                if match is not None:
                    header = match[0]
                    text = line[len(header) :]
                    tag, level, when, module, uvicorn = match.groups("")
                    if (
                        header != joiner.last_header
                        and not joiner.queue
                        and not joiner.last_cr
                        and text
                        and text[0] != " "
                        and text[-1] not in ":\r"
                        and not looks_embedded(text)
                    ):
                        if tag:
                            process = process_tag(tag)
                            if process is None:
                                self._line(line, number, number)
                                continue
                            name, rank, pid = process
                        else:
                            name, rank, pid = "", "", None
                        if joiner.last is not None:
                            joiner.out.append(joiner.last)
                        joiner.last_header = header
                        joiner.last = Record(
                            source, number, number, text, "log", without_year(when) if when else None,
                            when, level or uvicorn, rank, name, pid, module,
                        )  # fmt: skip
                        continue
            self._line(line, number, number)

    def _line(self, line: str, number: int, last: int) -> None:
        """Any line: peel, split and read it piece by piece."""
        text, outer = self._peeler.peel(line)
        kept = self._parts.pop(outer.stream, None) if self._parts else None
        if kept is not None:
            text, number = kept[0] + text, kept[1]
        if outer.partial and len(text) < 1 << 20:
            self._parts[outer.stream] = (text, number)
            return
        self._inner(text, number, last, outer)

    def _inner(self, text: str, number: int, last: int, outer: Outer) -> None:
        if outer.fields is not None:
            self._formatted(text, number, last, outer)
            return
        if "\n" in text:  # a collector's entry of several lines
            for part in text.split("\n"):
                self._inner(part, number, last, outer)
            return
        cr = text.endswith("\r")
        if cr:
            text = text.rstrip("\r")
        context = _Context(outer)
        pieces = [piece for piece in text.split("\r") if piece] if "\r" in text else [text]
        for index, piece in enumerate(pieces):
            self._piece(piece, number, last, context, cr and index == len(pieces) - 1)
        if not pieces:
            self._joiner.blank(self._record("", number, last, context))

    def _piece(self, text: str, number: int, last: int, context: _Context, cr: bool) -> None:
        """Text between two CR: bars, glued messages, one message."""
        text = context.read_tags(text)
        if "%" in text and (frames := bars.split(text)):
            for frame_text in frames[0]:
                record = self._record(frame_text, number, last, context)
                record.form = "bar"
                self._joiner.bar(record)
            text = frames[1]
            if not text.strip():
                return
        while text:
            cut = self._embedded(text, context)
            if cut:
                self._message(text[:cut], number, last, context, False)
                text = text[cut:]
                continue
            self._message(text, number, last, context, cr)
            return
        self._message("", number, last, context, cr)

    def _embedded(self, text: str, context: _Context) -> int:
        """Where in ``text`` another message begins; 0 if it holds only one."""
        if not engine.looks_embedded(text):
            return 0
        start = 0
        if match := _header(text, self._sglang, self._vllm):
            start = match.end()
        if (match := engine.pattern("embedded").search(text, start)) is None or match.start() == 0:
            return 0
        if match.start() == start and start:  # the first prefix was an outer one
            return start
        if start == 0 and self._peeler.learn(text[: match.start()]):
            return match.start()
        return match.start()

    def _message(self, text: str, number: int, last: int, context: _Context, cr: bool) -> None:
        """One message: with an engine prefix or raw."""
        text = context.read_tags(text)
        joiner = self._joiner
        first = text[:1]
        match = None
        if first == "[":
            match = self._sglang(text)
        elif first.isdigit() and text[4:5] == "-":
            match = engine.pattern("sglang_cut").match(text)
        elif first in ("I", "W", "E", "D", "C"):
            match = self._vllm(text)
            if match is not None:
                _, level, when, module, uvicorn = match.groups("")
                record = self._record(text[match.end() :], number, last, context)
                record.form, record.level, record.module = "log", level or uvicorn, module
                if when:
                    record.stamp, record.time = when, engine.seconds_without_year(when)
                joiner.engine(record, context.header + match[0], cr)
                return
        if match is not None:
            when, fraction, ranks, encoder, level = match.groups("")
            record = self._record(text[match.end() :], number, last, context)
            record.form, record.level, record.stamp = "log", level, when + fraction
            time = engine.seconds(when)
            record.time = time + float("0." + fraction[1:]) if fraction and time is not None else time
            record.rank = ranks.strip() or context.rank
            record.process = encoder.strip() or context.process
            if cr:
                joiner.crlf = True
            joiner.engine(record, context.header + match[0], False)
            return
        if not text.strip():
            joiner.blank(self._record("", number, last, context))
            return
        if cr and not context.header:
            joiner.crlf = True
        if not any(character.isalnum() for character in text) and not text.isspace() and len(text) < 4:
            return  # what is left of a quote or a list mark
        joiner.raw(self._record(text, number, last, context))

    def _formatted(self, text: str, number: int, last: int, outer: Outer) -> None:
        """A JSON formatter's object: one record, and a second one for its traceback."""
        fields = outer.fields or {}
        context = _Context(outer)
        record = self._record(text, number, last, context)
        name, pid = str(fields.get("processName") or ""), fields.get("process")
        tag = engine.process_tag(f"{name} pid={pid}") if name and isinstance(pid, int) else None
        if tag is not None:
            record.process, record.rank, record.pid = tag
        record.form = "log"
        record.level = str(fields.get("levelname") or fields.get("level") or "").upper()
        place, line = fields.get("filename") or fields.get("module") or fields.get("name"), fields.get("lineno")
        record.module = f"{place}:{line}" if place and line else str(place or "")
        header = f"{{{number}"
        self._joiner.engine(record, header, False)
        trace = fields.get("exc_info") or fields.get("exception") or fields.get("stack_trace")
        if isinstance(trace, str) and trace.strip():
            for part in trace.rstrip().split("\n"):
                extra = self._record(part, number, last, context)
                extra.process, extra.rank, extra.pid = record.process, record.rank, record.pid
                extra.form, extra.level, extra.module, extra.stamp = "log", record.level, record.module, record.stamp
                self._joiner.engine(extra, header + "!", False)

    def _record(self, text: str, number: int, last: int, context: _Context) -> Record:
        outer = context.outer
        return Record(
            self.source, number, last, text, "raw", outer.time, outer.stamp, "", context.rank, context.process,
            context.pid, "", outer.stream, None, self._repeated(context),
        )  # fmt: skip

    @staticmethod
    def _repeated(context: _Context) -> int:
        return context.repeated


class _Context:
    """What the prefixes in front of a piece said: it holds for all pieces of the same physical line."""

    __slots__ = ("header", "outer", "pid", "process", "rank", "repeated")

    def __init__(self, outer: Outer) -> None:
        self.outer = outer
        self.process, self.rank = outer.process, ""
        self.pid: int | None = None
        self.header = ""
        self.repeated = 1

    def read_tags(self, text: str) -> str:
        """``text`` without the process tags at its front; the innermost counts."""
        while (
            text[:1] == "(" and (match := engine.pattern("tag").match(text)) and (tag := engine.process_tag(match[1]))
        ):
            self.process, self.rank, self.pid = tag
            self.header += match[0]
            text = text[match.end() :]
        return text


def _header(text: str, sglang, vllm):  # type: ignore[no-untyped-def]
    return sglang(text) if text[:1] == "[" else vllm(text) if text[:1] in "IWEDC" else None
