"""The fixed text of a shape: by what its candidates are found, and how far a search for it may run.

- *heads*: literals with which matches begin (for a look-up by the first characters of a message); a shape is *headed*
  if every match begins with one of them;
- *keys*: literals of which every match contains at least one (for the search anywhere in a text);
- *forms*: for each alternative of the rule its *weight*, how many fixed characters every match of it has, and the
  literals that every match of it contains. Heavier is more specific and is tried first; the literals are a cheap test
  before an expression is compiled or run;
- *reach*: how much text is searched, so that the time for one record is bounded whatever it holds;
- *whole*: whether a match then runs on to the end of the record, however long that is.
"""

from __future__ import annotations

from collections.abc import Iterator

from analyzer.parsing.index import FULL_REACH, HEAD_LENGTHS
from analyzer.parsing.lower import BEGIN, END, WHOLE, Choice, Loop, Part, Sequence, Slot
from analyzer.parsing.regexes import unbounded_characters
from analyzer.parsing.syntax import Literal

_REACHES = {True: (FULL_REACH, 1 << 13, 1 << 11, 1 << 9), False: (1 << 10, 1 << 9, 1 << 8)}
"""Reach by whether a shape begins with a literal and by its number of wide terminals: trying all ways to split a text
among these takes a power of its length, and trying all beginnings one power more."""

_MOST_HEADS = 48
_MOST_MUST = 3


def flat(part: Part) -> Iterator[Literal | Slot]:
    """All literals and slots of a shape in order of writing."""
    if isinstance(part, Literal | Slot):
        yield part
    elif isinstance(part, Sequence):
        for item in part.items:
            yield from flat(item)
    elif isinstance(part, Choice):
        for option in part.options:
            yield from flat(option)
    else:
        yield from flat(part.item)


def heads(part: Part) -> tuple[list[str], bool]:
    """The literals with which matches begin, and whether all do; none if there are too many."""
    found = _beginnings((part,), HEAD_LENGTHS[0]) or set()
    long_enough = sorted(head for head in found if len(head) >= HEAD_LENGTHS[-1])
    return long_enough, 0 < len(long_enough) == len(found)


def _beginnings(parts: tuple[Part, ...], length: int) -> set[str] | None:
    """The first ``length`` fixed characters of every way to match ``parts``; shorter where a terminal follows."""
    if not parts or length <= 0:
        return {""}
    first, rest = parts[0], parts[1:]
    if isinstance(first, Slot):
        return _beginnings(rest, length) if first.terminal.name == BEGIN else {""}
    if isinstance(first, Literal):
        if first.any_case:
            return {""}
        text = first.text[:length]
        after = _beginnings(rest, length - len(text))
        return None if after is None else {text + more for more in after}
    if isinstance(first, Sequence):
        return _beginnings((*first.items, *rest), length)
    if isinstance(first, Choice):
        ways = [(option, *rest) for option in first.options]
    else:  # a loop: its item first (what follows a second round is left open), or without it
        once = (first.item, *rest) if first.high == 1 else (first.item,)
        ways = [once] if first.low else [once, rest]
    found: set[str] = set()
    for way in ways:
        more = _beginnings(way, length)
        if more is None or len(found) + len(more) > _MOST_HEADS:
            return None
        found |= more
    return found


def keys(part: Part) -> list[str]:
    """The best set of literals of which every match holds at least one; empty if there is none."""
    return sorted(_keys(part) or ())


def _keys(part: Part) -> frozenset[str] | None:
    if isinstance(part, Literal):
        return None if part.any_case or not part.text.strip() else frozenset({part.text})
    if isinstance(part, Sequence):
        sets = [found for item in _joined(part.items) if (found := _keys(item))]
        return max(sets, key=lambda found: (min(map(len, found)), -len(found)), default=None)
    if isinstance(part, Choice):
        options = [_keys(option) for option in part.options]
        return None if None in options else frozenset().union(*(found for found in options if found))
    if isinstance(part, Loop) and part.low:
        return _keys(part.item)
    return None


def _joined(items: tuple[Part, ...]) -> list[Part]:
    """The items with sequences opened and neighbouring literals joined."""
    joined: list[Part] = []
    for item in items:
        inner = _joined(item.items) if isinstance(item, Sequence) else [item]
        if isinstance(item, Choice) and len(item.options) == 1:
            inner = _joined((item.options[0],))
        for each in inner:
            last = joined[-1] if joined else None
            if isinstance(each, Literal) and isinstance(last, Literal) and not each.any_case and not last.any_case:
                joined[-1] = Literal(last.text + each.text)
            else:
                joined.append(each)
    return joined


def forms(part: Part) -> list[tuple[int, list[str]]]:
    """Weight and longest mandatory literals of each alternative of the rule, the heaviest first."""
    options = part.options if isinstance(part, Choice) else (part,)
    return sorted(((weight(option), _must(option)) for option in options), key=lambda form: -form[0])


def _must(part: Part) -> list[str]:
    """The longest literals that every match contains."""
    found = [literal.text for literal in _mandatory(part) if not literal.any_case]
    return sorted(set(found), key=len, reverse=True)[:_MOST_MUST]


def _mandatory(part: Part) -> Iterator[Literal]:
    if isinstance(part, Literal):
        yield part
    elif isinstance(part, Sequence):
        for item in _joined(part.items):
            yield from _mandatory(item)
    elif isinstance(part, Choice) and len(part.options) == 1:
        yield from _mandatory(part.options[0])
    elif isinstance(part, Loop) and part.low:
        yield from _mandatory(part.item)


def weight(part: Part) -> int:
    """The least number of fixed characters in a match."""
    if isinstance(part, Literal):
        return len(part.text)
    if isinstance(part, Sequence):
        return sum(weight(item) for item in part.items)
    if isinstance(part, Choice):
        return min(weight(option) for option in part.options)
    return weight(part.item) * part.low if isinstance(part, Loop) else 0


def wide_slots(part: Part) -> int:
    """The most terminals in one match that can run over the literal which ends them."""
    return _wide((part,), frozenset("\n"))


def _wide(parts: tuple[Part, ...], after: frozenset[str], behind: frozenset[str] = frozenset()) -> int:
    """The count for ``parts``; they are followed by literals with the characters ``after`` and by a terminal that can
    take any number of the characters ``behind`` (one of both is empty)."""
    total = 0
    for part in reversed(parts):
        if isinstance(part, Literal):
            after, behind = frozenset(part.text), frozenset()
        elif isinstance(part, Slot) and part.terminal.name in (BEGIN, END):
            after, behind = frozenset("\n"), frozenset()
        elif isinstance(part, Slot):
            taken = unbounded_characters(part.terminal.regex)
            total += bool(after and after <= taken) or bool(behind & taken)
            after, behind = frozenset(), taken
        else:
            if isinstance(part, Choice):
                total += max(_wide((option,), after, behind) for option in part.options)
            else:
                total += _wide(part.items if isinstance(part, Sequence) else (part.item,), after, behind)
            begin = _start(part)
            after, behind = (begin, frozenset()) if begin else (after, behind)
    return total


def _start(part: Part) -> frozenset[str]:
    """The characters of the literal with which ``part`` begins (one way to match it is enough here)."""
    begin = sorted(_beginnings((part,), HEAD_LENGTHS[0]) or (), key=len)
    return frozenset(begin[0]) if begin else frozenset()


def reach(part: Part) -> int | None:
    """How many characters of a record are searched for this shape; None if no sensible number bounds the time."""
    reaches, wide = _REACHES[heads(part)[1]], wide_slots(part)
    return reaches[wide] if wide < len(reaches) else None


def whole(part: Part) -> bool:
    """Whether a match runs to the end of the record."""
    return any(isinstance(leaf, Slot) and leaf.terminal.name in WHOLE for leaf in flat(part))
