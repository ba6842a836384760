"""What all lines of a log begin with, found in its first lines: a prefix that no list knows, names of services.

``Peeler`` learns an unknown prefix from engine lines one after the other, and what went before keeps it. Here the first
lines are looked at together, before any is read: in a log that holds a traceback and little else, or whose engine lines
come late, each line is freed from the first on.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator

from analyzer.framing import engine
from analyzer.patterns import on_demand

_LEAST = 5
"""Lines that must begin alike."""
_SHARE = 0.9
"""Share of the lines that must, or of those with another prefix that is known."""
_LONGEST = 120
_ENDS = ":|]>-)›»"
"""With what a prefix may end, besides a blank."""
_PATTERNS = {
    # where a text begins that stands at the front of its line
    "start": (
        rf"Traceback \(most recent call last\)|  File \"[^\"\n]{{1,300}}\", line \d|"
        rf"\[\d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d|(?:{engine.LEVELS}) \d\d-\d\d |(?:{engine.LEVELS}):\s{{2,}}"
    ),
    "object": r"\{\"[\w@.]{1,40}\": ?\"",
    "compose": r"([A-Za-z][\w.-]*) *\| ",
    "number": r" *\d+",
    "task": r" *\d{1,4}: ",
}
_pattern = on_demand(_PATTERNS)


def begins(text: str) -> bool:
    """Whether an engine's line or a traceback begins with ``text``, or a frame of one."""
    return _pattern("start").match(text) is not None or (text[:1] == "(" and is_known(text))


def services(lines: Iterable[str]) -> Iterator[str]:
    """The names before ``|`` behind which an engine's line or a traceback begins."""
    for line in lines:
        match = _pattern("compose").match(line) if "|" in line[:80] else None
        if match and _pattern("start").match(line, match.end()):
            yield match[1]


def shape(head: str) -> str:
    """``head`` with each number as 0; blanks before a number, which pad it, are one."""
    return _pattern("number").sub(lambda match: " 0" if match[0][0] == " " else "0", head)


def expression(form: str) -> re.Pattern[str]:
    """What ``shape`` made ``form`` of, with any numbers."""
    parts = re.split("( ?0)", form)
    numbers = {"0": r"\d+", " 0": r" *\d+"}  # numbers of lines are often padded to one width
    return re.compile("".join(numbers.get(part) or re.escape(part) for part in parts))


def common_head(lines: list[str]) -> re.Pattern[str] | None:
    """The prefix that nearly all ``lines`` begin with, none of the engines'; None if there is none."""
    filled = [line for line in lines if line.strip()]
    heads = Counter(shape(head) for line in filled if (head := _head(line)))
    for form, _ in heads.most_common(3):
        found = expression(form)
        if sum(found.match(line) is not None for line in filled) >= max(_LEAST, _SHARE * len(filled)):
            return found
    return None


def is_known(line: str) -> bool:
    """Whether ``line`` begins as an engine's lines do (quick; it is only counted)."""
    if line[:1] == "(":
        match = engine.pattern("tag").match(line)
        return match is not None and engine.process_tag(match[1]) is not None
    return line[:3] == "[20" or line[:5] in ("INFO ", "WARNI", "ERROR")


def names_tasks(head: re.Pattern[str], lines: list[str]) -> bool:
    """Whether the number that ``head`` is tells tasks apart, as srun's does, and does not count the lines."""
    found = [match[0] for line in lines if (match := head.match(line))]
    return all(map(_pattern("task").fullmatch, found)) and 2 * len(set(found)) <= len(found)


def enclosing(lines: list[str]) -> str:
    """The mark that stands around nearly every line, as chats and lists of strings have it; empty if there is none."""
    filled = [line for line in map(str.strip, lines) if line]
    for mark, ends in (("`", ("`",)), ('"', ('"', '",'))):
        around = sum(len(line) > 1 and line.startswith(mark) and line.endswith(ends) for line in filled)
        if around >= max(_LEAST, _SHARE * len(filled)):
            return mark
    return ""


def _head(line: str) -> str:
    """What stands before the text of ``line``, if that is no engine's and looks like a prefix."""
    found = [match.start() for name in ("start", "object") if (match := _pattern(name).search(line, 1, _LONGEST + 40))]
    if not found or min(found) > _LONGEST:
        return ""
    head = line[: min(found)]
    if not head[-1].isspace() and head[-1] not in _ENDS:
        return ""
    if engine.looks_embedded(head) and engine.messages_in(head):
        return ""
    if head[0] == "(" and (tag := engine.pattern("tag").match(head)) and engine.process_tag(tag[1]):
        return ""
    return head
