"""Lines with their prefixes read -> records, those of several lines joined per process, in the order of first lines.

A block that may still grow holds back what comes after it, so that records leave in order; a block that has not grown
for ``PATIENCE`` lines is closed as it is.
"""

from __future__ import annotations

import re
from collections import deque
from dataclasses import replace

from analyzer.framing.blocks import (
    TRACEBACK,
    Bar,
    Block,
    Lone,
    Message,
    Stack,
    Traceback,
    begins_traceback,
    names_error,
    pattern,
)  # fmt: skip
from analyzer.framing.record import Record

PATIENCE = 100
_BANNER = frozenset("█▄▀▌▐")
_SUMMARY = ("the current vLLM instance", "model weights take")  # lines 2 and 3 of the V0 memory summary


class Joiner:
    """Takes lines in order (``engine``, ``raw``, ``bar``, ``blank``) and appends finished records to ``out``."""

    def __init__(self) -> None:
        self.out: list[Record] = []
        self.last: Record | None = None
        """The latest engine line, not handed out yet: the next line may belong to it."""
        self.last_header = ""
        self.last_cr = False
        self.queue: deque[Block] = deque()
        self.crlf = False
        """Whether all lines end in CR LF, so that one CR says nothing about the record."""
        self.lf = False
        """Whether a line ended in LF alone."""
        self._by_header: dict[str, Block] = {}
        self._open: dict[str, list[Block]] = {}
        self._bar: Bar | None = None
        """The bar that the latest line was a frame of."""

    @property
    def idle(self) -> bool:
        """Whether there is nothing that an unprefixed line could belong to, or would end."""
        return self.last is None and not self.queue and not self._open and self._bar is None

    def engine(self, record: Record, header: str, cr: bool) -> None:
        """A line with an engine prefix.

        ``header`` is everything before the message where the engine repeats it on each line of a record, else empty.
        """
        self._close_bar()
        if (
            self.last is not None
            and header
            and header == self.last_header
            and self._continues(self.last.text, record.text, self.last_cr)
        ):
            self._promote()
        block = self._by_header.get(header)
        if block is not None and not block.closed and self._grow(block, record, cr):
            return
        lead = self.last.text if self.last is not None and header and header == self.last_header else ""
        self._settle(record, header)
        text = record.text
        if begins_traceback(text, record.level) or (header and record.level == "ERROR" and text.startswith("    ")):
            self._flush_last()
            traceback = Traceback(record, header, lead)
            traceback.set_cr(cr)
            self._begin(traceback, header, _key(record))
            return
        if self.last is not None and self.last_cr:
            if self._same_process(self.last, record):
                self.saw_cr()
            else:
                self._promote()
        self._flush_last()
        self.last, self.last_header, self.last_cr = record, header, cr
        if text.endswith(TRACEBACK):
            self._flush_last()
            traceback = Traceback(replace(record, text=text[text.rindex("Traceback") :]), header, text)
            traceback.set_cr(cr)
            self._begin(traceback, header, _key(record))

    def saw_cr(self) -> None:
        """Tells of a CR before LF where no message of several lines explains it."""
        self.crlf = not self.lf

    def raw(self, record: Record) -> None:
        """A line without an engine prefix; it may have a process tag."""
        self._close_bar()
        text, line, key = record.text, record.line, _key(record)
        opened = self._open.get(key)
        while opened:
            block = opened[-1]
            if not block.closed and block.accepts(text):
                block.append(text, line)
                return
            if (
                not block.closed
                and isinstance(block, Traceback)
                and not block.ended
                and len(opened) < 4
                and not text[0].isspace()
            ):
                break  # cut short or interrupted: its frames may go on after this line
            self._close(block)
            opened.pop()
        if begins_traceback(text) or text.endswith(TRACEBACK):
            at = 0 if begins_traceback(text) else text.rindex("Traceback")
            self._flush_last()
            if at:
                self._emit(Block(record))
            self._begin(Traceback(replace(record, text=text[at:])), "", key)
        elif pattern("stack").match(text):
            self._flush_last()
            self._begin(Stack(record), "", key)
        elif self.last is not None and not self.last_cr and key == _key(self.last) and Message.may_follow(self.last):
            message = Message(self.last)
            if message.accepts(text):
                self.last = None
                self._begin(message, "", key)
                message.append(text, line)
            else:
                self._plain(record, key)
        else:
            self._plain(record, key)

    def bar(self, record: Record) -> None:
        """One frame of a progress bar."""
        key = re.sub(r"[\d.\s]+", "0", record.text.partition("%")[0]) + "\0" + _key(record)
        if self._bar is not None and not self._bar.closed and self._bar.header == key:
            self._bar.frame(record.text, record.last_line)
            return
        self._close_bar()
        self._flush_last()
        self._bar = Bar(record, key)
        self.queue.append(self._bar)

    def pass_over(self) -> None:
        """Lines have gone by elsewhere that stand alone and end in LF: what was held back has ended."""
        self._flush_last()
        self.last_header = ""
        self.lf = self.lf or not self.crlf

    def blank(self, record: Record) -> None:
        """A line with nothing in it, or nothing behind the process tag."""
        if self._open:
            for block in self._open.get(_key(record), ()):
                block.blank(record.line)

    def close(self) -> None:
        """Finishes everything that was open."""
        self._flush_last()
        for block in self.queue:
            block.closed = True
        self._forget()
        self.drain()

    def drain(self) -> None:
        """Hands out what no earlier record holds back."""
        queue = self.queue
        while queue and queue[0].closed:
            self.out.append(queue.popleft().build())

    def _grow(self, block: Block, record: Record, cr: bool) -> bool:
        """Adds a line with the header of ``block`` to it, unless it is a record of its own."""
        text = record.text
        complete = block.had_cr and not block.cr and not text[:1].isspace()
        if isinstance(block, Traceback):
            own = complete or block.begins_anew(text)
        else:
            own = complete or not self._continues(block.last_text, text, block.cr)
        if own or record.line - block.latest > PATIENCE:
            self._close(block)
            return False
        block.append(text, record.line)
        block.set_cr(cr)
        return True

    def _continues(self, before: str, text: str, cr: bool) -> bool:
        """Whether a line that repeats the header of the line ``before`` is of the same record."""
        if begins_traceback(text, ""):
            return False
        return (
            cr
            or not before
            or not text
            or before.endswith(":")
            or (text[:1] == " " and before[:1] == " ")
            or text.startswith(_SUMMARY)
            or not _BANNER.isdisjoint(text)
        )

    def _settle(self, record: Record, header: str) -> None:
        """Closes what the process of ``record`` has ended by saying something else, and what waited too long."""
        if not self.queue:
            return
        for key in [key for key, block in self._by_header.items() if self._over(block, record)]:
            self._close(self._by_header.pop(key))
        for key, blocks in list(self._open.items()):
            while blocks and self._over(blocks[-1], record):
                self._close(blocks.pop())
            if not blocks:
                del self._open[key]
        self.drain()

    def _over(self, block: Block, record: Record) -> bool:
        if block.closed or record.line - block.latest > PATIENCE:
            return True
        if block.record.stream != record.stream:
            return False
        if block.header and block.record.process:
            return self._same_process(block.record, record)
        if block.header or isinstance(block, Traceback):
            own = block.record.process != "" and self._same_process(block.record, record)
            return own or (isinstance(block, Traceback) and block.ended and not block.header)
        return True

    @staticmethod
    def _same_process(one: Record, other: Record) -> bool:
        return one.process == other.process and one.pid == other.pid and one.stream == other.stream

    def _promote(self) -> None:
        """Turns the latest engine line into a block that grows under its header."""
        assert self.last is not None
        block = Message(self.last, self.last_header)
        block.set_cr(self.last_cr)
        self.last = None
        self._begin(block, self.last_header)

    def _begin(self, block: Block, header: str, key: str = "") -> None:
        self.queue.append(block)
        if header:
            old = self._by_header.get(header)
            if old is not None:
                self._close(old)
            self._by_header[header] = block
        else:
            self._open.setdefault(key, []).append(block)

    def _plain(self, record: Record, key: str) -> None:
        self._flush_last()
        if ":" in record.text and names_error(record.text):
            self._begin(Lone(record), "", key)
        else:
            self._emit(Block(record))

    def _emit(self, block: Block) -> None:
        block.closed = True
        if self.queue:
            self._wait(block)
        else:
            self.out.append(block.record)

    def _flush_last(self) -> None:
        last = self.last
        if last is None:
            return
        self.last = None
        if self.queue:
            block = Block(last)
            block.closed = True
            self._wait(block)
        else:
            self.out.append(last)

    def _wait(self, block: Block) -> None:
        """Lines up a finished record behind open ones; the first of these is closed if too many wait for it."""
        self.queue.append(block)
        if len(self.queue) > PATIENCE:
            self.queue[0].closed = True
        self.drain()

    def _close_bar(self) -> None:
        if self._bar is not None:
            self._close(self._bar)
            self._bar = None

    def _close(self, block: Block) -> None:
        block.closed = True
        self.drain()

    def _forget(self) -> None:
        self._by_header.clear()
        self._open.clear()
        self._bar = None


def _key(record: Record) -> str:
    """What unprefixed lines are joined by: the outer source and the process tag in front of the line, if any."""
    if record.pid is None:
        return f"{record.stream}\0{record.process if record.form == 'raw' else ''}"
    return f"{record.stream}\0{record.process}\0{record.pid}"
