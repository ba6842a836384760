"""Tracebacks whose line breaks a paste lost: one line that holds frames and exception one behind the other.

A frame's ``File "…", line 3, in f`` begins a line, and so do the sentences between chained exceptions; the exception
stands behind the last frame's line of source. Process tags that ray repeats on each line show the breaks by themselves.
"""

from __future__ import annotations

import re

from analyzer.framing.blocks import TRACEBACK

_GLUED = re.compile(r"Traceback \(most recent call last\):\s*(?:\([^()]{1,90}\bpid=\d[^()]{0,60}\)\s*)?File \"")
_TAG = re.compile(r"\s*\((?:[\w.+-]{1,80} )?pid=\d+(?:, ip=[^()\s]{1,60})?\)\s*")
_BEGIN = re.compile(
    r"\s*(?=File \"[^\"\n]{1,400}\", line \d+, in |Traceback \(most recent call last\):"
    r"|The above exception was the direct cause of|During handling of the above exception, another)"
)
_FRAME = re.compile(r'(File "[^"\n]{1,400}", line \d+, in \S+)\s*(.*)', re.S)
_NAMED = re.compile(
    r"(?:^|\s)((?:[A-Za-z_]\w{0,60}\.){0,6}"
    r"[A-Z]\w{0,80}(?:Error|Exception|Interrupt|Exit|Timeout|OutOfMemory))(?=: |\s*$)"
)


def unfold(lines: list[str]) -> tuple[list[str], list[int]]:
    """``lines`` with those that hold a whole traceback taken apart, and for each the index of the line it came from."""
    out: list[str] = []
    origin: list[int] = []
    for index, line in enumerate(lines):
        parts = _parts(line) if TRACEBACK in line and _GLUED.search(line) else [line]
        out += parts
        origin += [index] * len(parts)
    return out, origin


def _parts(line: str) -> list[str]:
    at = line.index(TRACEBACK)
    parts = [line[:at] + TRACEBACK]
    for piece in _TAG.sub("\n", line[at + len(TRACEBACK) :]).split("\n"):
        for part in _BEGIN.split(piece):
            parts += _frame(part) if part.strip() else []
    return parts


def _frame(part: str) -> list[str]:
    """A frame, its source and the exception behind it as lines of their own; another text as it is."""
    match = _FRAME.match(part)
    if match is None:
        return [part.strip()]
    lines, rest = [f"  {match[1]}"], match[2].strip()
    named = _NAMED.search(rest)
    source = rest[: named.start()].strip() if named else rest
    if source:
        lines.append(f"    {source}")
    if named:
        lines.append(rest[named.start(1) :])
    return lines
