"""Searches for ``~`` and ``benign.lines`` that take linear time on any text.

A pattern is written like a regular expression and compiled into alternatives of *pieces*; ``.*`` between two pieces
means "then, later in the text" (line ends included), and each piece is searched after the end of the one before it.
So ``CUDA .*out of memory`` is two plain substring searches. What could take more than linear time is refused when
the rule is loaded: references back, look-around, a repetition inside a repetition, and a repetition that the one
after it could take over (``\\d+\\w+``). Most pieces are plain text and need no regular expression at all; the others
are compiled only in a text that holds their longest literal.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, TypeAlias

Pattern: TypeAlias = list[Any]
"""``[ignore_case, [alternative, …]]``; an alternative is a list of pieces: a text, or ``[expression, must_hold]``."""

MAX_PATTERN = 600
MAX_SUBJECT = 16_384
"""Characters of a text that are searched: its first and last half of this."""


class PatternError(ValueError):
    """A pattern that is refused; the text says why."""


def compile_pattern(text: str, *, ignore_case: bool = False) -> Pattern:
    """The compiled form (JSON-able) of the pattern ``text``. Raises ``PatternError``."""
    from analyzer.diagnosis.linear import check_piece

    shown = text if len(text) <= 60 else text[:57] + "..."
    if len(text) > MAX_PATTERN:
        raise PatternError(f"the pattern {shown!r} is longer than {MAX_PATTERN} characters")
    if text.startswith("(?i)"):
        text, ignore_case = text[4:], True
    alternatives: list[list[Any]] = []
    for alternative in _split(text, "|"):
        pieces: list[Any] = []
        for piece in _split(alternative, ".*"):
            if not piece:
                continue
            try:
                piece, literal = check_piece(piece, ignore_case)
            except PatternError as error:
                raise PatternError(f"the pattern {shown!r} {error}") from None
            if not piece:
                continue
            plain = _plain(piece)
            if plain is not None:
                pieces.append(plain.lower() if ignore_case else plain)
            else:
                pieces.append([piece, literal.lower() if ignore_case else literal])
        if not pieces:
            raise PatternError(f"the pattern {shown!r} finds everything")
        alternatives.append(pieces)
    return [ignore_case, alternatives]


def search(pattern: Pattern, subject: str) -> bool:
    """Whether ``subject`` (its first and last 8,192 characters) holds the compiled ``pattern``."""
    if len(subject) > MAX_SUBJECT:
        subject = subject[: MAX_SUBJECT // 2] + "\n" + subject[-MAX_SUBJECT // 2 :]
    ignore_case, alternatives = pattern
    folded = subject.lower() if ignore_case else subject
    if len(folded) != len(subject):  # a few letters grow when lowered: positions would no longer agree
        subject = folded
    return any(_holds(pieces, subject, folded, ignore_case) for pieces in alternatives)


def literals(pattern: Pattern) -> list[list[str]]:
    """For each alternative the plain texts that it cannot do without."""
    return [[p if isinstance(p, str) else p[1] for p in pieces] for pieces in pattern[1]]


def _holds(pieces: list[Any], subject: str, folded: str, ignore_case: bool) -> bool:
    at = 0
    for piece in pieces:
        if isinstance(piece, str):
            found = folded.find(piece, at)
            if found < 0:
                return False
            at = found + len(piece)
        else:
            if piece[1] and folded.find(piece[1], at) < 0:
                return False
            match = _expression(piece[0], ignore_case).search(subject, at)
            if match is None:
                return False
            at = match.end()
    return True


@lru_cache(maxsize=2048)
def _expression(text: str, ignore_case: bool) -> re.Pattern[str]:
    return re.compile(text, re.MULTILINE | (re.IGNORECASE if ignore_case else 0))


def _split(text: str, mark: str) -> list[str]:
    """``text`` split at each ``mark`` (``|`` or ``.*``) outside groups, classes and escapes."""
    parts, start, at, depth = [], 0, 0, 0
    while at < len(text):
        char = text[at]
        if char == "\\":
            at += 2
            continue
        if char == "[":
            at = _class_end(text, at)
            continue
        depth += (char == "(") - (char == ")")
        if depth == 0 and text.startswith(mark, at):
            end = at + len(mark)
            if mark == ".*" and text[end : end + 1] == "?":
                end += 1
            parts.append(text[start:at])
            start = at = end
            continue
        at += 1
    return [*parts, text[start:]]


def _class_end(text: str, at: int) -> int:
    """The index behind the character class that begins at ``at``."""
    end = at + 1
    if text[end : end + 1] == "^":
        end += 1
    if text[end : end + 1] == "]":
        end += 1
    while end < len(text) and text[end] != "]":
        end += 2 if text[end] == "\\" else 1
    return end + 1


def _plain(piece: str) -> str | None:
    """The text that ``piece`` stands for if it has no special character, else None."""
    out, at = [], 0
    while at < len(piece):
        char = piece[at]
        if char == "\\":
            at += 1
            if at >= len(piece) or piece[at].isalnum():
                return None
            out.append(piece[at])
        elif char in "^$.*+?{}[]()|":
            return None
        else:
            out.append(char)
        at += 1
    return "".join(out)
