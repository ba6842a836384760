"""Bytes of one log -> records: the steps decode, unwrap, outer prefix, engine prefix and join, one after the other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

from analyzer.framing import engine
from analyzer.framing.blocks import Traceback
from analyzer.framing.decode import LineReader
from analyzer.framing.doubles import Doubles
from analyzer.framing.join import Joiner
from analyzer.framing.messages import MessageReader
from analyzer.framing.outer import Outer, Peeler
from analyzer.framing.record import Record
from analyzer.framing.unwrap import Span, Unwrapper

_LONGEST_PART = 1 << 20
_MOST_PARTS = 64
"""Bounds for lines that a collector cut in parts: characters of one line, streams at a time."""

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
        self.peeler = Peeler()
        """Takes the prefixes of collectors off, and knows those that it has seen."""
        self._unwrapper = Unwrapper() if unwrap else None
        self.doubles = Doubles()
        self._decided = not unwrap
        self._joiner = Joiner()
        self._messages = MessageReader(source, self._joiner, self.peeler)
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

    @property
    def may_skip(self) -> bool:
        """Whether nothing is open that the next lines could belong to, so that plain lines need not pass through."""
        joiner = self._joiner
        return (
            not joiner.queue
            and not joiner.last_cr
            and not self._parts
            and not self.doubles.on
            and not self._reader.pending
            and (self._unwrapper is None or self._unwrapper.idle)
        )

    @property
    def crlf(self) -> bool:
        """Whether all lines so far end in CR LF."""
        return self._joiner.crlf

    @property
    def pending(self) -> bool:
        """Whether the last bytes were no whole line."""
        return self._reader.pending

    def skip(self, lines: int, size: int) -> list[Record]:
        """Passes over ``lines`` plain engine lines of ``size`` bytes in all, which the caller reads.

        Gives the records that were held back. Only where ``may_skip`` says so.
        """
        self._joiner.pass_over()
        self._reader.bytes += size
        self.lines += lines
        return self._handed_out()

    def flush(self) -> list[Record]:
        """The records held back, as they are. A line without its LF is not among them."""
        if self._unwrapper is not None:
            self._spans(self._unwrapper.flush())
        self._joiner.close()
        return self._handed_out()

    @property
    def unfinished(self) -> bool:
        """Whether a traceback is open whose exception has not come yet."""
        return any(isinstance(b, Traceback) and not b.ended and not b.closed for b in self._joiner.queue)

    def close(self) -> list[Record]:
        """The records that are left at the end of the input."""
        self._take(self._reader.close())
        if self._unwrapper is not None:
            self._spans(self._unwrapper.flush())
        for stream, (text, line) in list(self._parts.items()):
            self._messages.read(text, line, self.lines, Outer(stream=stream))
        self._parts.clear()
        self._joiner.close()
        return self._handed_out()

    def _handed_out(self) -> list[Record]:
        out, self._joiner.out = self._joiner.out, []
        return out

    def _take(self, lines: list[str]) -> None:
        unwrapper, at = self._unwrapper, 0
        while at < len(lines):
            first = self.lines + 1
            if unwrapper is None:
                part = lines
                self._plain(part, first)
            elif unwrapper.idle:
                part = lines[at : at + unwrapper.room]
                self._plain(part, first)
                unwrapper.watch(part)
            else:
                part = lines[at : at + unwrapper.room]
                self._spans(unwrapper.feed(part, first))
            self.lines += len(part)
            at += len(part)

    def _spans(self, spans: Iterable[Span]) -> None:
        spans = list(spans)
        if not self._decided and spans:
            self._decided = True
            first_lines = [text for text, _, _ in spans]
            self.doubles.decide(first_lines)
            self.peeler.look_ahead(first_lines)
        for text, first, last in spans:
            if not (self.doubles.on and self.doubles.drops(text)):
                self._line(text, first, last)

    def _plain(self, lines: list[str], number: int) -> None:
        """The common path: lines that begin with an engine prefix and hold one whole message."""
        if self.doubles.on:
            for at, line in enumerate(lines, number):
                if not self.doubles.drops(line):
                    self._line(line, at, at)
            return
        sglang, vllm, joiner, source, parts = self._sglang, self._vllm, self._joiner, self.source, self._parts
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
                    text = line[match.end() :]
                    when, fraction, ranks, encoder, level = match.groups("")
                    if (
                        text
                        and text[0] != " "
                        and text[-1] not in ": "
                        and "\r" not in text
                        and not looks_embedded(text)
                        and not joiner.queue
                        and not parts
                        and not encoder
                        and not joiner.last_cr
                    ):
                        if when != stamp:
                            stamp, time = when, seconds(when)
                        if joiner.last is not None:
                            joiner.out.append(joiner.last)
                        joiner.lf, joiner.last_header = True, ""
                        joiner.last = Record(
                            source, number, number, text, "log", _with_fraction(time, fraction) if fraction else time,
                            when + fraction, level, ranks[1:],
                        )  # fmt: skip
                        continue
            elif first in "(IWEDC":
                match = vllm(line)
                if match is not None:
                    text = line[match.end() :]
                    tag, level, when, module, uvicorn = match.groups("")
                    header = match[0] if module else ""
                    if (
                        not (header and header == joiner.last_header)
                        and not joiner.queue
                        and not parts
                        and not joiner.last_cr
                        and text
                        and text[0] != " "
                        and text[-1] not in ": "
                        and "\r" not in text
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
                        joiner.lf, joiner.last_header = True, header
                        joiner.last = Record(
                            source, number, number, text, "log", without_year(when) if when else None,
                            when, level or uvicorn, rank, name, pid, module,
                        )  # fmt: skip
                        continue
            if joiner.idle and not parts and line.isalnum() and self.peeler.leaves_words:  # nothing but a word
                joiner.lf = True
                joiner.out.append(Record(source, number, number, line))
                continue
            self._line(line, number, number)

    def _line(self, line: str, number: int, last: int) -> None:
        """Any line: its outer prefixes off, a line that a collector cut in parts put together, then its messages."""
        text, outer = self.peeler.peel(line)
        if self._parts and (kept := self._parts.pop(outer.stream, None)) is not None:
            if outer.stamp:
                text, number = kept[0] + text, kept[1]
            else:  # the collector's next line is missing
                self._messages.read(kept[0], kept[1], kept[1], Outer(stream=outer.stream))
        if outer.partial and len(text) < _LONGEST_PART and len(self._parts) < _MOST_PARTS:
            self._parts[outer.stream] = (text, number)
            return
        self._messages.read(text, number, last, outer)


def _with_fraction(time: float | None, fraction: str) -> float | None:
    return None if time is None else time + float("0." + fraction[1:])
