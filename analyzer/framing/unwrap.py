"""Pastes that a terminal wrapped at its width: physical lines put together again.

A wrapped paste has one greatest width, several lines of exactly that width, and after nearly each of them a line with
no prefix of any kind: the rest of the line before, cut in the middle of a word or a number if that is where the edge
was. Lines whose process tag was shortened after wrapping (names and pids made anonymous) are a little narrower. Some
terminals fill every line with blanks up to the edge: those are left aside.
A mail wraps between words: its lines are of any width, but each ends where the next word would have gone over the edge.
The first ``WINDOW`` lines decide; later windows are only looked at, and switch the joining on from there.
"""

from __future__ import annotations

import builtins
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

from analyzer.framing.engine import LEVELS
from analyzer.patterns import on_demand

WINDOW = 256
_NARROWEST, _WIDEST = 60, 500
_TAG_SLACK = 24
_WIDEST_OF_WORDS = 132
_PACKAGES = frozenset(
    {"torch", "vllm", "sglang", "ray", "triton", "transformers", "pydantic", "pydantic_core", "huggingface_hub",
     "safetensors", "zmq", "requests", "httpx", "asyncio", "subprocess", "multiprocessing"}
)  # fmt: skip
"""Where exceptions with a dotted name come from."""
_ENOUGH = 3
_HEAD = 4
"""Letters by which the rests of lines without prefixes must differ: equal ones would be a prefix that no rule knows."""

Span = tuple[str, int, int]
"""A line's text with the numbers of its first and last physical line."""

_PATTERNS = {
    # what cannot be the rest of a wrapped line
    "fresh": (
        rf"\s*$|\[?\d{{4}}[-/]\d\d[-/]\d\d[ T]|\([^()]*\bpid=\d+(?:, ip=[^(), ]+)?\)|(?:{LEVELS})[ :]|"
        r"\((?:raylet|autoscaler)|\[[a-z]+/|\[rank|"
        r"[A-Z][a-z]{2} [ \d]\d \d\d:|[\w.-]+ *\| |    |  File |\s+\^|Traceback |\{\"|> |```|\[[WIE]\d|[WIEF]\d{4} |"
        r"The above exception|During handling|Process \S+:$|Loading |Capturing |[\w.]+(?:Error|Exception): |"
        r".{0,120}?\d%(?:\|| Completed)|[-=_*#~\s]{3,}$|[\w.-]+:\d+:\d+ \[\d+\] "
    ),
    "prefixed": (
        rf"(?:[\w.-]+ *\| )?(?:\[?\d{{4}}-\d\d-\d\d[ T]|\([^()]*\bpid=\d+|(?:{LEVELS})[ :])|  File "
        r"|[\w.]+(?:Error|Exception): "
    ),
    "name_head": r"\b[A-Za-z_]\w*(?:\.\w+)*\.?$",
    "name_tail": r"\w*(?:\.\w+)*(?:Error|Exception|Exit|Interrupt)\b",
    # a message with figures that ends in a comma: no code, no dump, nothing within quotes
    "figures": r"(?:\[[^\]\n]{1,60}\] +)?[A-Za-z_](?:[^\n(){}'\"]|\(s\)){0,200}[\w)](?:=|: )[^\n(){}'\"]{1,300},$",
    "oom": r".{0,200}\bout of memory\. Tried to allocate ",
    "oom_goes_on": (
        r"\([GNX]PU \d+;|GPU \d+ has a total|Of the allocated memory|Including non-|If reserved but|but unallocated"
        r"|of which|is free|(?:and )?[\d.]+ [GMK]i?B\b|(?:is |memory )?(?:allocated|reserved|in use)\b|by PyTorch"
        r"|Process \d+ has"
    ),
    "figure": r"[A-Za-z_#][\w #-]{0,40}(?:=|: )[\w.\[]",
    "tagged": r"\([\w.+-]*(?: rank=\d+)? ?pid=\d+",
}
_pattern = on_demand(_PATTERNS)


class Unwrapper:
    """Holds the first lines back until it is clear whether they were wrapped; then passes lines on or joins them."""

    def __init__(self) -> None:
        self.idle = False
        """Whether lines need not pass through ``feed``: they are not wrapped as far as is known."""
        self._width = 0
        self._words = False
        """Whether lines were wrapped between words."""
        self._padded = False
        self._slack = _TAG_SLACK
        """How much narrower a full line may be: what was shortened after wrapping stands in prefixes."""
        self._held: list[str] = []
        self._held_first = 1
        self._open: tuple[list[str], int, int, str] | None = None

    @property
    def room(self) -> int:
        """How many lines ``watch`` or ``feed`` takes at a time."""
        return WINDOW - len(self._held)

    def watch(self, lines: list[str]) -> None:
        """Notes lines that went by while ``idle``."""
        self._held += lines
        if len(self._held) >= WINDOW:
            self._measure()
            self.idle = not self._width
            self._held.clear()

    def feed(self, lines: list[str], first: int) -> list[Span]:
        """What can be said now of ``lines``, of which the first has the number ``first``."""
        if self._width:
            spans = self._join(lines, first)
            if any(len(line) > self._width + _TAG_SLACK for line in lines):
                spans += self.flush()  # another paste, which was not wrapped
                self._width, self.idle = 0, True
            return spans
        if not self._held:
            self._held_first = first
        self._held += lines
        return self._decide() if len(self._held) >= WINDOW else []

    def flush(self) -> list[Span]:
        """Everything held back."""
        spans = [] if self.idle or self._width else self._decide()
        if self._open is not None:
            spans.append(_span(self._open))
            self._open = None
        return spans

    def _decide(self) -> list[Span]:
        self._measure()
        held, self._held = self._held, []
        self.idle = not self._width
        if self.idle:
            return list(_broken_at_commas(held, self._held_first))
        return self._join(held, self._held_first)

    def _measure(self) -> None:
        self._padded = _is_padded(self._held)
        self._slack = _TAG_SLACK if any(map(_pattern("prefixed").match, self._held)) else 0
        lines = [line.rstrip(" ") for line in self._held] if self._padded else self._held
        self._width = word_width(lines)
        self._words = self._width > 0
        if not self._words:
            self._width = wrap_width(lines)

    def _join(self, lines: list[str], first: int) -> list[Span]:
        spans = []
        fresh = _pattern("fresh").match
        if self._padded:
            lines = [line.rstrip(" ") for line in lines]
        for number, line in enumerate(lines, first):
            if self._open is not None:
                parts, begin, _, piece = self._open
                if self._words and len(parts) < 2000 and not fresh(line) and _goes_over(piece, line, self._width):
                    parts += (" ", line)
                    self._open = (parts, begin, number, line)
                    continue
                torn = len(piece) == self._width and _is_torn(piece, line)
                if (
                    len(parts) < 2000
                    and not self._words
                    and (
                        torn
                        or (not fresh(line) and _reaches_over(piece, line, self._width, self._slack, len(parts) > 1))
                    )
                ):
                    if len(piece.rstrip("\r")) == self._width - 1 and not piece.endswith(" "):
                        parts.append(" ")  # a blank at the edge got lost in copying
                    parts[-1] = parts[-1].rstrip("\r")
                    parts.append(line)
                    self._open = (parts, begin, number, line)
                    continue
                spans.append(_span(self._open))
            self._open = ([line], number, number, line)
        return spans


def _span(opened: tuple[list[str], int, int, str]) -> Span:
    return "".join(opened[0]), opened[1], opened[2]


def _reaches_over(line: str, rest: str, width: int, slack: int, inside: bool) -> bool:
    """Whether ``line`` reaches the edge, so that ``rest`` is its rest; ``inside`` a line that was joined already."""
    size = len(line.rstrip("\r"))
    if width - 1 <= size <= width:
        return True
    if abs(size - width) > slack:
        return False
    if inside or _pattern("tagged").match(line):
        return True
    return _is_broken(line, rest)


def _is_broken(line: str, rest: str) -> bool:
    """Whether ``rest`` cannot begin a sentence, nor ``line`` end one."""
    if rest[0] == " ":
        return True
    return (rest[0].islower() or rest[0] in "0123456789,.)]}'\"_/") and line.rstrip("\r")[-1:] not in (*".:!?", "")


def _is_torn(line: str, rest: str) -> bool:
    """Whether the edge went through the name of an exception: ``vllm.v1.engine.exce`` and ``ptions.EngineDeadError:``,
    ``to`` and ``rch.OutOfMemoryError:``, ``Val`` and ``ueError:``."""
    if not (rest[:1].isalnum() or rest[:1] == ".") or (tail := _pattern("name_tail").match(rest)) is None:
        return False
    if (head := _pattern("name_head").search(line)) is None:
        return False
    first = (head[0] + tail[0]).split(".")[0]
    return "." in head[0] or first in _PACKAGES or hasattr(builtins, first)


def _is_padded(lines: list[str]) -> bool:
    """Whether nearly all lines are equally long because blanks fill them up."""
    width, count = Counter(map(len, lines)).most_common(1)[0] if lines else (0, 0)
    if count < 0.9 * len(lines) or width < _NARROWEST:
        return False
    return sum(line.endswith("  ") for line in lines) >= max(_ENOUGH, 0.2 * count)


def wrap_width(lines: list[str]) -> int:
    """The width at which ``lines`` were wrapped, 0 if they were not."""
    sizes = list(map(len, lines))
    widest = max(sizes, default=0)
    if not _NARROWEST <= widest <= _WIDEST + _TAG_SLACK:
        return 0
    if lines[sizes.index(widest)].endswith("\r"):
        sizes = [len(line) - line.endswith("\r") for line in lines]
    counts = Counter(size for size in sizes if size >= widest - _TAG_SLACK)
    fresh = _pattern("fresh").match
    wider = 0
    for width in sorted(counts, reverse=True):
        if wider > len(sizes) * 0.03:
            return 0
        wider += counts[width]
        if max(counts[width], counts[width - 1]) < 2:  # a blank at the edge gets lost in copying
            continue
        rests = sum(
            width - 1 <= size <= width and not fresh(rest) for size, rest in zip(sizes, lines[1:], strict=False)
        )
        if rests >= 2 and _is_wrapped_at(width, lines, sizes):
            return width
    return 0


def _broken_at_commas(lines: list[str], first: int) -> Iterator[Span]:
    """``lines`` as they are, but for messages that a writer broke behind a comma between two of their figures, or an
    account of memory that ran out anywhere between its words."""
    fresh, figure, begun = _pattern("fresh").match, _pattern("figure").match, _pattern("figures").match
    oom, oom_goes_on = _pattern("oom").match, _pattern("oom_goes_on").match
    parts: list[str] = []
    sentence = False
    for number, line in enumerate(lines, first):
        bare = line.lstrip(" ") if len(line) - len(line.lstrip(" ")) < 16 else line
        goes_on = oom_goes_on if sentence else figure
        if parts and goes_on(bare) and not (line[:1] != " " and fresh(line)) and len(parts) < 20:
            parts.append(bare)
        else:
            if parts:
                yield " ".join(parts), number - len(parts), number - 1
            parts = [line]
            sentence = "out of memory" in line and oom(line) is not None
        if not sentence and not (parts[-1].endswith(",") and begun(parts[0])):
            yield " ".join(parts), number - len(parts) + 1, number
            parts = []
    if parts:
        yield " ".join(parts), first + len(lines) - len(parts), first + len(lines) - 1


def word_width(lines: list[str]) -> int:
    """The greatest width of ``lines`` if they were wrapped between words, 0 if they were not."""
    widest = max((len(line) for line in lines if " " in line.strip()), default=0)
    if not _NARROWEST <= widest <= _WIDEST_OF_WORDS:
        return 0
    fresh, prefixed = _pattern("fresh").match, _pattern("prefixed").match
    pairs = of_prefixed = broken = short = 0
    sizes: set[int] = set()
    headed = False
    for line, rest in pairwise(lines):
        if fresh(line):
            headed = prefixed(line) is not None
        if not headed or not line.strip() or fresh(rest):
            continue
        pairs += 1
        if _goes_over(line, rest, widest):
            of_prefixed += 1
            broken += _is_broken(line, rest)
            short += len(line) < widest - 1
            sizes.add(len(line))
    enough = of_prefixed >= 2 * _ENOUGH and len(sizes) > _ENOUGH and short >= 0.3 * pairs
    return widest if enough and of_prefixed >= 0.9 * pairs and broken >= 0.6 * of_prefixed else 0


def _goes_over(line: str, rest: str, width: int) -> bool:
    """Whether the first word of ``rest`` would have gone over the edge behind ``line``."""
    return len(line.rstrip()) + 1 + len(rest.split(None, 1)[0]) > width


def _is_wrapped_at(width: int, lines: list[str], sizes: list[int]) -> bool:
    """Whether lines of ``width`` (or one less) are mostly followed by their rest, beginning from lines with a prefix.

    Two such lines are enough if nothing is wider and what follows cannot begin a sentence; of lines without a prefix it
    takes more, and rests that differ.
    """
    fresh, prefixed = _pattern("fresh").match, _pattern("prefixed").match
    full = rests = of_prefixed = broken = torn = 0
    heads: set[str] = set()
    headed = False
    for at in range(len(lines) - 1):
        line, rest = lines[at], lines[at + 1]
        if fresh(line):
            headed = prefixed(line) is not None
        if not width - 1 <= sizes[at] <= width or not any(map(str.isalnum, line[:40])):
            continue
        full += 1
        if not fresh(rest):
            rests += 1
            of_prefixed += headed
            is_broken = _is_broken(line, rest)
            broken += headed and is_broken
            if is_broken and (rest[0].isalpha() or rest[0] == " "):
                torn += 1
                heads.add(rest[:_HEAD])
    if of_prefixed >= _ENOUGH:
        return rests >= 0.6 * full and of_prefixed >= 0.5 * rests
    if max(sizes) > width:
        return False
    return (broken >= 2 and broken == full) or (len(heads) >= 2 * _ENOUGH and torn >= 0.8 * full)
