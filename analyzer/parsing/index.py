"""Finds the shapes worth trying on a text, by their fixed text alone.

A message that begins with a shape's head is settled by one dictionary look-up. Anything else (glued lines, shapes that
begin with a field) is found by an Aho-Corasick search for all keys at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from analyzer.parsing.shape import Shape

HEAD_LENGTHS = (24, 12, 6, 3)
"""A head is looked up by so many characters: the longest of these that it has."""

FULL_REACH = 1 << 16
"""Characters of a record that are searched."""

_LONGEST = HEAD_LENGTHS[0]
_MOST_REMEMBERED = 4096


class Index:
    """Candidates among ``shapes``, in their order unless a text shows that a later one has more fixed text in it."""

    def __init__(self, shapes: Iterable[Shape]) -> None:
        self._shapes = tuple(shapes)
        self._heads: dict[str, list[int]] = {}
        self._remembered: dict[str, tuple[Shape, ...]] = {}
        self._automaton: Any = None
        for number, shape in enumerate(self._shapes):
            for head in shape.heads:
                length = next(length for length in HEAD_LENGTHS if length <= len(head))
                self._heads.setdefault(head[:length], []).append(number)

    def by_head(self, text: str) -> Sequence[Shape]:
        """The shapes that may match at the start of ``text``."""
        start = text[:_LONGEST]
        known = self._remembered.get(start)
        if known is None:
            found = [some for length in HEAD_LENGTHS if (some := self._heads.get(start[:length]))]
            if not found:  # not remembered: such starts differ from line to line (addresses, times)
                return ()
            numbers = {number for some in found for number in some}
            if len(self._remembered) >= _MOST_REMEMBERED:
                self._remembered.clear()
            known = self._remembered[start] = tuple(self._shapes[number] for number in sorted(numbers))
        return known

    def anywhere(self, text: str) -> dict[Shape, int]:
        """The shapes of which ``text`` holds a key, each with where the first key found ends."""
        automaton = self._automaton
        if automaton is None:
            automaton = self._automaton = self._build()
        places: dict[int, int] = {}
        for end, numbers in automaton.iter(text, 0, min(len(text), FULL_REACH)):
            for number in numbers:
                if number not in places:
                    places[number] = end
        return {self._shapes[number]: places[number] for number in sorted(places)} if places else {}

    def _build(self) -> Any:
        import ahocorasick

        by_key: dict[str, list[int]] = {}
        for number, shape in enumerate(self._shapes):
            for key in shape.keys:
                by_key.setdefault(key, []).append(number)
        automaton = ahocorasick.Automaton()
        for key, numbers in by_key.items():
            automaton.add_word(key, tuple(numbers))
        automaton.make_automaton()
        return automaton
