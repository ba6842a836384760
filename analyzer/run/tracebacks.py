"""Python tracebacks as text -> frames, exceptions and how they follow from each other.

Reads what servers really print: chains (``raise … from …`` and errors while handling errors), exception groups with
their margin of bars, a remote traceback inside the message of another exception (ray, multiprocessing), a traceback
that lost its first line in a paste, and one that ends before its exception.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from analyzer.run.glued import unfold
from analyzer.run.model import Frame

HEADER = "Traceback (most recent call last)"
_CAUSE = "The above exception was the direct cause of the following exception"
_CONTEXT = "During handling of the above exception, another exception occurred"
_FRAME = re.compile(r'^\s*File "([^"]{1,400})", line (\d+)(?:, (?:in )?(\S.*))?')
_CELL_FRAME = re.compile(r"^\s*File ([^\s\":]{1,400}):(\d+), in (?:\w+\.)*(\w+|<\w+>)")
"""A frame as a notebook prints it."""
_EXCEPTION = re.compile(r"^([A-Za-z_][\w.]*(?:\(\w+\))?)(?:: ?(.*))?$")
_INDENTED_ERROR = re.compile(r"^ ((?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception)): (.*)$")
"""An exception's line in a paste that is one blank further in than it was."""
_MARGIN = re.compile(r"^\s*(?:\+-\+-+ ?[\d.]* ?-*|\+ ?Exception Group |[|+](?: \||-)*)")
_MODULE = re.compile(r"^\[[\w./-]{1,80}\.py:\d+\] ")
"""A module that a cut prefix left in front of the text."""
_ERROR_NAME = re.compile(
    r"^(?:[A-Za-z_]\w*\.)*(?:[A-Z]\w*(?:Error|Exception|Exit|Interrupt|Failure|Timeout|NotFound|Died|Dead|Closed|Group)"
    r"|NotImplemented|NoSuchModule\w*|Empty|OutOfMemory\w*|OutOfResources)(?:\([A-Za-z]\w*\))?$"
)
_ASSERTED = re.compile(r"\s+assert\b.*[^(\\,]$")
"""A whole assertion in one line of source."""
HEADED = re.compile(r"[A-Z]\w+ hit an exception: ((?:[A-Za-z_]\w*\.)+[A-Z]\w*|[A-Z]\w*(?:Error|Exception)): (.*)")
"""SGLang's heading with an exception that has lost its own traceback."""
_NEXT_PROCESS = re.compile(
    r"^Process [\w:-]+:\s*$|^RuntimeError: (?:[Rr]ank \d+ scheduler (?:died|is dead)|Engine core initialization failed)"
)
"""Python announces the traceback of a child process, or its parent says that it died: the message before ends here."""
_MESSAGE_LINES = 12
_MESSAGE_CHARS = 4000
_LOW_INFORMATION = ("CalledProcessError", "KeyError", "AttributeError", "Empty", "StopIteration", "BlockingIOError")
_REPEATS_CAUSE = re.compile(
    r"^(?:Capture cuda graph failed|Failed to (?:import|load|apply)|Error in memory profiling|Worker failed with error"
    r"|Call to \S+ method failed|Exception from the )"
)


@dataclass(frozen=True, slots=True)
class Link:
    """One exception of a chain. ``start``/``end`` index lines of the text: its first line, its exception's line.

    ``relation`` to the link before it: ``cause`` (raised from it), ``context`` (raised while handling it),
    ``remote`` (quoted inside its message), ``group`` (member of an exception group), ``""`` (none).
    """

    exception: str
    message: str
    frames: tuple[Frame, ...]
    start: int
    end: int
    relation: str = ""
    key_line: int = -1
    """The line of the message that says most, where that is not the exception's own line (pydantic)."""

    @property
    def short(self) -> str:
        """The exception's class without its modules."""
        return self.exception.split("(", 1)[0].rsplit(".", 1)[-1]


@dataclass(frozen=True, slots=True)
class Traceback:
    """A parsed traceback record. ``head`` is what the record says before it, ``cut`` that it has no end."""

    head: str
    links: tuple[Link, ...]
    cut: bool
    headless: bool = False
    frames: tuple[Frame, ...] = ()
    """Frames of a part that has no exception."""
    unended: bool = False
    """The last part, were it only a traceback quoted inside a message, has frames and no exception."""

    @property
    def root(self) -> Link | None:
        """The exception that explains the others; None if the text holds none."""
        if not self.links:
            return None
        at = len(self.links) - 1
        while at > 0:
            link, before = self.links[at], self.links[at - 1]
            if link.relation == "remote":
                break
            if link.relation == "group":
                at = next((i for i in range(at, -1, -1) if self.links[i].relation != "group"), at)
                members = [i for i in range(at + 1, len(self.links)) if self.links[i].relation == "group"]
                at = members[0] if members else at
                break
            quotes = _REPEATS_CAUSE.match(link.message) or _quoted(before.message, link.message)
            if before.short in _LOW_INFORMATION or not (quotes or link.relation == "cause"):
                break
            at -= 1
        return self.links[at]


def _quoted(inner: str, outer: str) -> bool:
    """Whether ``outer`` only repeats ``inner`` inside a longer sentence."""
    first = inner.split("\n", 1)[0].strip()
    return len(first) >= 12 and first in outer and first != outer.split("\n", 1)[0].strip()


@dataclass(slots=True)
class _Open:
    """A link that is being read."""

    start: int
    relation: str
    frames: list[Frame] = field(default_factory=list)
    exception: str = ""
    message: list[str] = field(default_factory=list)
    end: int = -1
    key_line: int = -1

    def closed(self) -> Link:
        message = "\n".join(self.message).strip().strip('"').rstrip()
        frames = tuple(self.frames)
        text = message[:_MESSAGE_CHARS]
        return Link(self.exception, text, frames, self.start, self.end, self.relation, self.key_line)


def looks_like_error_name(name: str) -> bool:
    """Whether ``name`` reads like the class of an exception (``torch.OutOfMemoryError``), not like a label."""
    return _ERROR_NAME.match(name) is not None


def exception_line(text: str) -> tuple[str, str] | None:
    """Class and message if ``text`` is the last line of a traceback standing alone (``ValueError: …``)."""
    if headed := HEADED.match(text):
        return headed.group(1), headed.group(2)
    bare = text.strip()
    if " " in bare.partition(":")[0] and bare[:1] != "[":
        return None  # no name of a class: most lines end here
    match = _EXCEPTION.match(_MODULE.sub("", bare))
    if match is None or not looks_like_error_name(match.group(1)):
        return None
    return match.group(1), match.group(2) or ""


class _Reader:
    """Reads a traceback line by line."""

    def __init__(self) -> None:
        self.head: list[str] = []
        self.links: list[Link] = []
        self.open: _Open | None = None
        self.relation = ""
        self.headless = False
        self.grouped = False
        self.lost: tuple[Frame, ...] = ()
        self.dangling = False
        self.unended = False
        self.flat = -9
        """The last line that is a frame without any indentation: its source follows without one, too."""
        self.depth = 0
        """How far in the last frame stands."""
        self.asserted = ""
        """The last frame's source if it asserts something: what an exception without a message has to say."""

    def line(self, index: int, raw: str) -> None:
        text = raw
        if (margin := _MARGIN.match(raw)) and (self.grouped or "Exception Group" in raw):
            self.grouped = True
            text = raw[margin.end() :]
            if "Exception Group" in raw:
                text = text if HEADER in text else HEADER
            elif text.startswith(" "):
                text = text[1:]
        if _CAUSE in text or _CONTEXT in text:
            self.finish()
            self.relation = "cause" if _CAUSE in text else "context"
        elif HEADER in text:
            self.begin(index, text)
        elif frame := _FRAME.match(text) or _CELL_FRAME.match(text):
            self.flat = -9 if text[:1].isspace() else index
            self.depth = len(text) - len(text.lstrip())
            self.asserted = ""
            self.frame(index, frame)
        else:
            self.other(index, text)

    def begin(self, index: int, text: str) -> None:
        before = text[: text.find(HEADER)].strip()
        if before and not self.links and self.open is None:
            self.head.append(before)
        relation = self.relation
        if self.open is not None and self.open.exception:
            relation = "group" if self.grouped else "remote"
        self.finish()
        self.open = _Open(index, relation)
        self.relation = ""

    def frame(self, index: int, match: re.Match[str]) -> None:
        if self.open is None or self.open.exception:
            nested = self.open is not None
            if not nested:
                self.headless = self.headless or not self.links
            self.finish()
            self.open = _Open(index, "remote" if nested else self.relation)
            self.relation = ""
        self.open.frames.append(Frame(match.group(1), int(match.group(2)), (match.group(3) or "").strip()))

    def other(self, index: int, text: str) -> None:
        if self.open is None:
            if not self.links and text.strip():
                self.head.append(text.strip())
            return
        if self.open.exception:
            self.message(index, text)
            return
        match = _EXCEPTION.match(text.rstrip()) or _INDENTED_ERROR.match(text.rstrip())
        if match is None and 0 < len(text) - len(text.lstrip()) <= self.depth and exception_line(text) is not None:
            match = _EXCEPTION.match(text.strip())  # as far in as its frame, whose source stands further in
        named = match is not None and looks_like_error_name(match.group(1))
        if match and (named or (self.open.frames and index != self.flat + 1)):
            self.open.exception = match.group(1)
            self.open.end = index
            bare = self.asserted if match.group(1) == "AssertionError" else ""
            self.open.message.append(match.group(2) or bare)
        elif text.strip(" ~^"):
            self.asserted = text.strip() if _ASSERTED.match(text) else ""

    def message(self, index: int, text: str) -> None:
        part = self.open
        assert part is not None
        excerpt = part.message[0].startswith("at ")  # triton quotes the kernel first and gives its reason last
        if _NEXT_PROCESS.match(text):
            self.finish()
            return
        if excerpt and "(" in text and exception_line(text.split("(", 1)[0]):
            part.key_line = index
            part.message.insert(1, text.strip())
        elif len(part.message) >= _MESSAGE_LINES or (not text.strip() and len(part.message) > 1):
            return
        elif part.key_line < 0 and self._says_most(part, text):
            part.key_line = index
        part.message.append(text.rstrip())

    @staticmethod
    def _says_most(part: _Open, text: str) -> bool:
        """Whether this line of a message tells what its first line does not: pydantic's error, NCCL's last error."""
        if "validation error" in part.message[0] and text.startswith("  "):
            return True
        return part.message[-1].strip() == "Last error:"

    def finish(self) -> None:
        """Closes the part that is being read; what has no exception is kept as lost frames."""
        part, self.open = self.open, None
        if part is None:
            return
        self.unended = not part.exception
        if part.exception:
            self.links.append(part.closed())
            self.dangling = False
        elif part.relation != "remote":
            self.lost = tuple(part.frames)
            self.dangling = True


def _indent(lines: list[str]) -> int:
    """By how much a pasted traceback is indented as a whole: its frames stand two further in than its exception."""
    for line in lines:
        if _FRAME.match(line):
            return max(0, len(line) - len(line.lstrip(" ")) - 2)
    return 0


def _last_line_only(reader: _Reader, lines: list[str]) -> None:
    """Reads the exception of a traceback of which a paste kept no frame, only its last lines of source."""
    for index, line in enumerate(lines):
        found = exception_line(line)
        if found is None and line.startswith("Exception: "):
            found = "Exception", line.removeprefix("Exception: ")
        if found is not None:
            message = "\n".join([found[1], *lines[index + 1 : index + _MESSAGE_LINES]]).strip()[:_MESSAGE_CHARS]
            reader.links.append(Link(found[0], message, (), index, index))
            reader.headless, reader.dangling, reader.unended = True, False, False
            return


def _placed(link: Link, origin: list[int]) -> Link:
    """``link`` with the lines of the text as it was read, not as it was taken apart."""
    key = origin[link.key_line] if link.key_line >= 0 else -1
    return replace(link, start=origin[link.start], end=origin[link.end], key_line=key)


def parse(text: str) -> Traceback:
    """The traceback in ``text``; never raises. A text without one gives a cut traceback without links."""
    reader = _Reader()
    lines, origin = unfold(text.split("\n"))
    indent = _indent(lines)
    for index, line in enumerate(lines):
        line = line.rstrip("\r").removesuffix("^M")
        reader.line(index, line[indent:] if line[:indent].isspace() else line)
    reader.finish()
    if not reader.links and not reader.lost:
        _last_line_only(reader, lines)
    return Traceback(
        head="\n".join(reader.head)[:_MESSAGE_CHARS],
        links=tuple(_placed(link, origin) for link in reader.links),
        cut=reader.dangling,
        headless=reader.headless,
        frames=reader.lost,
        unended=reader.unended,
    )
