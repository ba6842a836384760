"""Decides whether one piece of a pattern can be searched in linear time, and finds its longest literal.

The piece is read by a small descent over the syntax that rules may use: literals, escapes, classes, groups without
look-around, alternatives, and repetition. What one item can match is approximated by the set of sample characters
that it matches: all of ASCII and a few beyond it.
"""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass, field

from analyzer.diagnosis.patterns import PatternError, _class_end

SAMPLE = frozenset(map(chr, range(128))) | frozenset("éßЖ中🚨\u2028")
SHORT = 8
"""A repetition of at most so many characters is no danger."""
ENDLESS = 200
"""Characters that an endless repetition takes at most."""
BOUNDED_PRODUCT = 20_000
"""The most ways in which the bounded repetitions of one piece may combine."""


@dataclass(slots=True)
class _Item:
    """One step of a sequence: what it can begin with or consist of, and how often it repeats."""

    chars: frozenset[str]
    least: int = 1
    most: float = 1
    literal: str = ""
    items: list[list[_Item]] = field(default_factory=list)
    """The alternatives of a group."""

    @property
    def long(self) -> bool:
        return self.most > SHORT


def check_piece(piece: str, ignore_case: bool) -> tuple[str, str]:
    """``piece`` as it is searched, and the longest text that every match of it holds.

    An endless repetition at the beginning finds no more than its last character would, and is cut down to that; any
    other is bounded by ``ENDLESS``, because a text may begin a match at each of its characters.
    Raises ``PatternError`` when the piece may be slow or is wrong.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", FutureWarning)  # a doubtful class such as [[a]
            re.compile(piece, re.MULTILINE)
    except (re.error, OverflowError, RecursionError, FutureWarning) as error:
        raise PatternError(f"is no pattern: {error}") from None
    reader = _Reader(piece, ignore_case)
    alternatives = reader.alternatives(0)
    _check(alternatives, frozenset())
    if reader.product > BOUNDED_PRODUCT:
        raise PatternError("has too many long repetitions")
    return reader.rewritten(), _longest(alternatives[0])


def _longest(sequence: list[_Item]) -> str:
    best = run = ""
    for item in sequence:
        if item.literal and item.least == item.most == 1:
            run += item.literal
            best = max(best, run, key=len)
        else:
            run = ""
    return best


def _check(alternatives: list[list[_Item]], pending: frozenset[str]) -> frozenset[str]:
    """Refuses a long repetition that can follow another one over the same characters.

    ``pending`` are the characters that an earlier long repetition, not yet closed by a fixed other character, takes.
    """
    result: frozenset[str] = frozenset()
    for sequence in alternatives:
        current = pending
        for item in sequence:
            if item.long and item.chars & current:
                raise PatternError("has two long repetitions of the same characters: put something fixed between them")
            if item.items:
                if item.most > 1 and any(inner.most != inner.least for part in item.items for inner in part):
                    raise PatternError("repeats a group that repeats something itself")
                inner = _check(item.items, current)
                current = current | inner if item.least == 0 else inner
                if item.long:
                    current = current | item.chars
            elif item.long:
                current = current | item.chars
            elif item.least and not item.chars & current:
                current = frozenset()
        result |= current
    return result


class _Reader:
    """Reads one piece. Only called on what ``re`` accepts, so that syntax errors need no care here."""

    def __init__(self, text: str, ignore_case: bool) -> None:
        self.text, self.at, self.ignore_case = text, 0, ignore_case
        self.product = 1.0
        self._edits: list[tuple[int, int, str]] = []
        """What stands for a part of the text: its begin, its end, the new text; in order."""

    def alternatives(self, depth: int) -> list[list[_Item]]:
        if depth > 6:
            raise PatternError("is nested too deep")
        out: list[list[_Item]] = [[]]
        while self.at < len(self.text) and self.text[self.at] != ")":
            if self.text[self.at] == "|":
                self.at += 1
                out.append([])
            else:
                item = self._item(depth)
                if item is not None:
                    out[-1].append(item)
        return out

    def _item(self, depth: int) -> _Item | None:
        start, char = self.at, self.text[self.at]
        if char == "(":
            item = self._group(depth)
        elif char == "[":
            self.at = _class_end(self.text, self.at)
            item = _Item(self._chars(self.text[start : self.at]))
        elif char == "\\":
            following = self.text[self.at + 1]
            if following.isdigit():
                raise PatternError("refers back to a group")
            self.at += 2
            if following == "x":
                self.at += 2
            elif following == "u":
                self.at += 4
            if following in "bBAZ":
                return None
            atom = self.text[start : self.at]
            item = _Item(self._chars(atom), literal="" if following.isalnum() else following)
        elif char in "^$":
            self.at += 1
            return None
        else:
            self.at += 1
            item = _Item(self._chars(char), literal="" if char == "." else char)
        return self._repeated(item, start)

    def _chars(self, atom: str) -> frozenset[str]:
        text = atom if len(atom) > 1 or atom == "." else re.escape(atom)
        pattern = re.compile(text, re.IGNORECASE if self.ignore_case else 0)
        return frozenset(c for c in SAMPLE if pattern.fullmatch(c))

    def _group(self, depth: int) -> _Item:
        self.at += 1
        if self.text[self.at] == "?":
            named = re.compile(r"\?(:|P<\w+>)").match(self.text, self.at)
            if named is None:
                raise PatternError("looks around, refers back or sets a flag inside: none of them is allowed")
            self.at = named.end()
        parts = self.alternatives(depth + 1)
        self.at += 1
        chars = frozenset().union(*(item.chars for part in parts for item in part))
        least = min((sum(item.least for item in part) for part in parts), default=0)
        return _Item(chars, least=1 if least else 0, items=parts)

    def rewritten(self) -> str:
        """The text with its endless repetitions bounded."""
        out, at = [], 0
        for begin, end, new in self._edits:
            out += [self.text[at:begin], new]
            at = end
        return "".join([*out, self.text[at:]])

    def _repeated(self, item: _Item, start: int) -> _Item:
        rest = self.text[self.at :]
        match = re.match(r"[*+?]|\{(\d*)(,?)(\d*)\}", rest)
        if match is None or (match[0][0] == "{" and not match[1] and not match[3]):
            return item
        atom_end = self.at
        self.at += match.end()
        if self.text[self.at : self.at + 1] in ("?", "+"):
            self.at += 1
        match match[0][0]:
            case "*":
                least, most = 0, float("inf")
            case "+":
                least, most = 1, float("inf")
            case "?":
                least, most = 0, 1.0
            case _:
                least = int(match[1] or 0)
                most = float("inf") if match[2] and not match[3] else float(match[3] or least)
        if most != float("inf") and most > 1_000:
            raise PatternError("repeats something more than 1,000 times")
        if most != float("inf"):
            self.product *= max(most, 1)
        elif start == 0:
            self._edits = [(atom_end if least else 0, self.at, "")]
        else:
            self._edits.append((atom_end, self.at, f"{{{least},{max(least, ENDLESS)}}}"))
        fixed = least == most == 1
        return _Item(item.chars, min(least, item.least), most, item.literal if fixed else "", item.items)
