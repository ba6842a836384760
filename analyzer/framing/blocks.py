"""Multi-line records while they grow: which lines belong to a traceback, a stack dump or a message of several lines."""

from __future__ import annotations

import re
from collections import deque
from dataclasses import replace

from analyzer.framing.record import Record
from analyzer.patterns import on_demand

TRACEBACK = "Traceback (most recent call last):"
MAX_LINES = 2000
MAX_CHARS = 1 << 20
_CHAIN = ("The above exception was", "During handling of the above")
_TAIL_LINES = 60
_LONE_LINES = 12
_NATIVE_FRAME = r'  File "[^"]*", line \d+,? in [^,]*$'  # as faulthandler and C++ symbolisers print it

_PATTERNS = {
    # unprefixed text that begins something new and so ends the message of an exception
    "start": (
        r"(?:Traceback \(|Process \S+:$|Exception (?:ignored|in thread)|\[\w+[\]: ](?! ?\w+=\d)|\S+:\d+: |"
        r"[/.\w-]+:\d+:\d+ \[\d|nanobind|Killed|Segmentation fault|Aborted|terminate called|Fatal Python|\*\*\*|"
        r"[IWEF]\d{4} \d\d:|!!!!!|usage: |Loading |Warning: |WARNING|ERROR|INFO|DEBUG|PASSED|FAILED|SKIPPED|"
        r"\S+\.py::|sys:\d|\+ |\$ |={4}|-{4}|_ _ _|handle: )"
    ),
    "stack": (
        r"!!!!+ Segfault|Fatal Python error|\*\*\* (?:SIG|Process received|Aborted)|"
        r"\[[\w.-]+:\d+\] \*\*\* Process received|C\+\+ CapturedTraceback|Exception raised from |frame #\d+: |"
        r"terminate called after throwing|Thread 0x[0-9a-f]+.*\(most recent call first\)|Current thread 0x|"
        r"={4,} Backtrace|={4} backtrace|" + _NATIVE_FRAME
    ),
    "stack_line": (
        r"\s|#\d+ |frame #|@ 0x|PC: @|Thread 0x|Current thread|Extension modules:|<no Python frame>|\*\*\* |"
        r"\[[\w.-]+:\d+\] |\.\.\.|C\+\+ Captured|Exception raised from|CUDA |For debugging|Compile with|Stack "
    ),
    "frame": r' {2,12}File "[^"]*", line \d+, (?:in |\w+$)|\s+~*\^[~^]*\s*$',
    # frames that lost their indentation in a paste, and those of a notebook
    "flat_frame": r'File "[^"]*", line \d+(?:, in |$)',
    "cell_frame": r"File [^\s\":]+:\d+, in |(?:Cell|Input) In ?\[|-+> ?\d+ ",
    "cell_head": r"[A-Z]\w+ {2,}Traceback \(most recent call last\)$",
    "exception": r"[A-Za-z_][\w.]*(?:\([\w.]+\))?(?::\s|:?\s*$)",
    "after_blank": (
        r"\s|C\+\+ Captured|Exception raised from|frame #|CUDA kernel|For debugging|Compile with|Possible sol|\d+\. "
    ),
    "several_lines": (
        r"hit an exception|out of memory|[Mm]emory [Ll]eak|leak detected|[Pp]y-?spy|Possible solutions|dump|:$"
    ),
    "goes_on": r"[`'\"(\[<]|[a-z][\w.-]*[ ,;]",  # no name of a class, no setting, no sentence of its own
    "dump": r"[Aa]rgs\b|[Cc]onfig|Namespace\(",
    "dump_line": r"\s|Thread |Process |Python v|\d+[.)] |[-*] |Try to|Availa|Aval|[\w.#-]+ ?[=:]",
}
pattern = on_demand(_PATTERNS)
"""The expression of this module that has a name."""


class Block:
    """A record that may still grow. ``closed`` records wait only for earlier ones to be handed out."""

    form = ""

    def __init__(self, record: Record, header: str = "") -> None:
        self.record = record
        self.header = header
        self.closed = False
        self.latest = record.last_line
        self.last_text = record.text
        self.cr = False
        """Whether the latest line ended in CR: vLLM's sign that its record goes on."""
        self.had_cr = False
        self._head: list[tuple[str, int]] = [(record.text, record.line)]
        self._tail: deque[tuple[str, int]] = deque()
        self._chars = len(record.text)
        self._tail_chars = 0
        self._left_out = 0
        self._left_out_line = 0
        self._blanks: list[int] = []

    def append(self, text: str, line: int) -> None:
        """Adds a line, keeping the first and the last lines of a record beyond the limits."""
        for blank in self._blanks:
            self._add("", blank)
        self._blanks.clear()
        self._add(text, line)

    def set_cr(self, cr: bool) -> None:
        """Notes how the latest line ended."""
        self.cr = cr
        self.had_cr = self.had_cr or cr

    def blank(self, line: int) -> None:
        """A blank line, kept if something follows it."""
        if len(self._blanks) < 8:
            self._blanks.append(line)

    def accepts(self, text: str) -> bool:
        """Whether an unprefixed line belongs here."""
        return False

    def build(self) -> Record:
        """The finished record."""
        parts = self._head
        if self._left_out:
            note = (f"[… {self._left_out} lines left out]", self._left_out_line)
            parts = [*parts, note]
        if self._tail:
            parts = [*parts, *self._tail]
        while len(parts) > 1 and not parts[-1][0].strip():
            parts = parts[:-1]
        if len(parts) == 1 and not self.form:
            return self.record
        numbers = tuple(line for _, line in parts)
        first, last = numbers[0], max(self.latest, numbers[-1])
        plain = numbers == tuple(range(first, first + len(numbers)))
        return replace(
            self.record,
            text="\n".join(text for text, _ in parts),
            last_line=last,
            lines=None if plain or len(parts) == 1 else numbers,
            form=self.form or self.record.form,
        )

    def _add(self, text: str, line: int) -> None:
        self.latest, self.last_text = line, text
        if not self._tail and len(self._head) < MAX_LINES // 2 and self._chars + len(text) < MAX_CHARS // 2:
            self._head.append((text, line))
            self._chars += len(text)
            return
        self._tail.append((text, line))
        self._tail_chars += len(text)
        while len(self._tail) > MAX_LINES // 2 or (self._tail_chars > MAX_CHARS // 2 and len(self._tail) > 1):
            dropped, number = self._tail.popleft()
            self._tail_chars -= len(dropped)
            self._left_out_line = self._left_out_line or number
            self._left_out += 1


class Traceback(Block):
    """A Python traceback: frames, then the exception and what its message holds, then perhaps a chained traceback."""

    form = "traceback"

    def __init__(self, record: Record, header: str = "", lead: str = "") -> None:
        super().__init__(record, header)
        self._lead = lead
        """The message in front of the traceback: when it is said again, another record begins."""
        self._group = "Exception Group" in record.text
        self.ended = False
        self._chained = False
        self._after = 0
        self._empty = False
        """Whether the exception's own line says nothing, so that its message is what follows."""
        self._code = pattern("flat_frame").match(record.text) is not None
        """Whether the next line is the source of a frame without indentation."""
        cell = pattern("cell_head").match(record.text) is not None
        inside = self._code or record.text.startswith((" ", "\t"))
        if not record.text.endswith(TRACEBACK) and not cell and not inside:
            self.ended = True

    def append(self, text: str, line: int) -> None:
        super().append(text, line)
        if text.startswith(_CHAIN):
            self._chained, self.ended, self._after = True, False, 0
        elif TRACEBACK in text or (text.startswith('  File "') and not self._after_frame_text(text)):
            self._chained, self.ended, self._after = False, False, 0
            self._group = self._group or "Exception Group" in text
        elif self.ended:
            self._after += 1
        elif self._flat(text):
            self._code = text.startswith('File "')
        elif self._code and not names_error(text):
            self._code = text[:1] in "^~"  # one line of source below its frame, and marks below that
        elif text and not text[0].isspace() and not self._chained:
            self.ended, self._after = True, 0
            self._empty = text.endswith((":", ": ")) and names_error(text)

    def begins_anew(self, text: str) -> bool:
        """Whether ``text``, under the same header, is a further traceback and not a part of this one."""
        if self.ended and text and text == self._lead:
            return True
        return TRACEBACK in text and not self._chained and (self.ended or len(self._head) > 1)

    def accepts(self, text: str) -> bool:
        if text.startswith(_CHAIN):
            return True
        if TRACEBACK in text:
            return self._chained or (self._group and text.lstrip().startswith(("|", "+")))
        if self._group and text.lstrip().startswith(("|", "+")):
            return True
        if self._chained:
            return False
        if not self.ended:
            if text[0].isspace() or self._flat(text) or (self._code and not _is_start(text)):
                return True
            # an unindented line ends the frames: the exception itself, unless a stranger's line got between
            return pattern("exception").match(text) is not None and not _is_start(text)
        if self._after >= _TAIL_LINES:
            return False
        if self._empty and len(self._blanks) < 2:
            return not text.startswith(("Traceback (", "Process ", "Exception in thread"))
        if self._blanks:
            return pattern("after_blank").match(text) is not None and len(self._blanks) < 3
        return text[0].isspace() or not _is_start(text)

    @staticmethod
    def _flat(text: str) -> bool:
        """Whether ``text`` is a frame without indentation."""
        return (pattern("flat_frame").match(text) or pattern("cell_frame").match(text)) is not None

    @staticmethod
    def _after_frame_text(text: str) -> bool:
        """A frame of a Python file continues a traceback; a C frame (``in`` without a comma) does not."""
        return ", in " not in text and " in " in text


class Stack(Block):
    """Native frames: a segfault dump, ``Fatal Python error`` or a C++ exception's frames."""

    form = "stack"

    def accepts(self, text: str) -> bool:
        return (pattern("stack_line").match(text) or pattern("stack").match(text)) is not None


class Message(Block):
    """A message of several lines whose later lines have no prefix (SGLang) or repeat the header (vLLM)."""

    def __init__(self, record: Record, header: str = "") -> None:
        super().__init__(record, header)
        self._depth = depth(record.text) if pattern("dump").search(record.text) else 0
        self._dump = pattern("several_lines").search(record.text) is not None

    @staticmethod
    def may_follow(record: Record) -> bool:
        """Whether unprefixed lines after ``record`` could be a part of it."""
        text = record.text
        return pattern("several_lines").search(text) is not None or (
            depth(text) > 0 and pattern("dump").search(text) is not None
        )

    def append(self, text: str, line: int) -> None:
        super().append(text, line)
        if self._depth > 0:
            self._depth += depth(text)

    def accepts(self, text: str) -> bool:
        if self._depth > 0:
            return not _is_start(text) and not begins_traceback(text) and len(self._head) < 1000
        if not self._dump or _is_start(text):
            return False
        if names_error(text) and "hit an exception" in self.record.text:
            return False  # the exception stands for itself
        return pattern("dump_line").match(text) is not None


class Lone(Block):
    """The last line of a traceback, standing alone, and what its message says on further lines."""

    def accepts(self, text: str) -> bool:
        if self._blanks or len(self._head) > _LONE_LINES or begins_traceback(text) or _is_start(text):
            return False
        if text[:1].isspace():
            return pattern("stack").match(text) is None
        return len(self._head) == 1 and self.record.text.endswith(":") and pattern("goes_on").match(text) is not None


class Bar(Block):
    """A progress bar, of which the last frame counts."""

    form = "bar"

    def __init__(self, record: Record, key: str) -> None:
        super().__init__(record, key)

    def frame(self, text: str, line: int) -> None:
        """The next frame in place of the one before."""
        self._head = [(text, line)]
        self.latest = line

    def build(self) -> Record:
        text, line = self._head[0]
        return replace(
            self.record, text=text, last_line=line, form="bar", lines=None if line == self.record.line else (line,)
        )


def depth(text: str) -> int:
    """How many brackets ``text`` leaves open (quotes are not looked at: a guess, good enough to go on reading)."""
    return sum(text.count(mark) for mark in "([{") - sum(text.count(mark) for mark in ")]}")


def begins_traceback(text: str, level: str = "ERROR") -> bool:
    """Whether ``text`` is the first line of a traceback, or a line from within one whose beginning is missing."""
    if text.endswith(TRACEBACK) and text.lstrip(" +|").startswith(("Traceback", "Exception Group")):
        return True
    if text.endswith(TRACEBACK[:-1]) and pattern("cell_head").match(text):
        return True
    if level != "ERROR":
        return False
    return (pattern("frame").match(text) if text[:1] == " " else pattern("flat_frame").match(text)) is not None


def names_error(text: str) -> bool:
    """Whether an unindented line reads like the exception that ends a traceback."""
    return re.match(r"[A-Za-z_][\w.]*(?:Error|Exception|Exit|Interrupt|OutOfMemory\w*)(?:: |:?\s*$)", text) is not None


def _is_start(text: str) -> bool:
    return pattern("start").match(text) is not None
