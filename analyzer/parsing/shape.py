"""One shape at run time: its expression, compiled when first needed, and how its groups become fields."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

from analyzer.events import Event
from analyzer.framing.record import Record
from analyzer.parsing.index import FULL_REACH
from analyzer.parsing.values import converter

_MOST_HEADS_TRIED = 8
"""So many places of a text with a shape's beginning are tried: more only occur in text made to take long."""


class Shape:
    """A kind of message of one engine. What ``heads``, ``keys``, ``forms``, ``reach`` … mean: see ``literals``."""

    __slots__ = (
        "_dumps", "_fields", "_find_head", "_match", "_plan", "_search", "engine", "forms", "headed", "heads", "keys",
        "kind", "meaning", "notes", "pattern", "place", "reach", "units", "whole",
    )  # fmt: skip

    def __init__(self, entry: dict[str, Any]) -> None:
        self.kind: str = entry["kind"]
        self.engine: str = entry["engine"]
        self.place: str = entry["place"]
        self.pattern: str = entry["pattern"]
        self.heads: list[str] = entry["heads"]
        self.headed: bool = entry["headed"]
        self.keys: list[str] = entry["keys"]
        self.forms: list[tuple[int, list[str]]] = [(weight, literals) for weight, literals in entry["forms"]]
        self.reach: int = entry["reach"]
        self.whole: bool = entry["whole"]
        self.meaning: str = entry["meaning"]
        self.notes: list[list[str]] = entry["notes"]
        """[first version, last version, text] of each version comment; "" is an open end."""
        self._fields: list[list[Any]] = entry["fields"]
        self.units: dict[str, str] = {field[0]: field[2] for field in self._fields}
        self._match: Callable[..., re.Match[str] | None] | None = None
        self._search: Callable[..., re.Match[str] | None]
        self._find_head: Callable[..., Iterator[re.Match[str]]] | None = None
        self._plan: list[tuple[str, Callable[[str], Any]]]  # name and conversion of each group
        self._dumps: frozenset[str]  # names of the fields that are nested values

    def __repr__(self) -> str:
        return f"<Shape {self.engine}/{self.kind} {self.place}>"

    def _compile(self) -> None:
        compiled = re.compile(self.pattern)
        self._plan = [(name, converter(kind, scale, tuple(none))) for name, kind, _unit, scale, none in self._fields]
        self._dumps = frozenset(name for name, kind, *_ in self._fields if kind == "nested")
        self._search = compiled.search
        self._match = compiled.match

    @property
    def fields(self) -> list[tuple[str, str, float]]:
        """Name, type and scale of the field of each group of ``pattern``, in its order."""
        return [(name, kind, scale) for name, kind, _unit, scale, _none in self._fields]

    @property
    def weight(self) -> int:
        """The least number of fixed characters in a match."""
        return self.forms[-1][0]

    def weight_in(self, text: str) -> int:
        """The weight of the heaviest form whose literals ``text`` holds; -1 if none can match."""
        for weight, literals in self.forms:
            for literal in literals:
                if literal not in text:
                    break
            else:
                return weight
        return -1

    def match_start(self, text: str) -> re.Match[str] | None:
        """A match that begins where ``text`` begins."""
        if self._match is None:
            self._compile()
        assert self._match is not None
        return self._match(text, 0, len(text) if self.whole else self.reach)

    def search(self, text: str, near: int = 0) -> re.Match[str] | None:
        """The leftmost match in as much of ``text`` as this shape reaches, around position ``near``."""
        if self._match is None:
            self._compile()
        assert self._match is not None
        reach = self.reach
        if not self.headed:
            if len(text) <= reach:
                return self._search(text)
            start = max(0, near - reach // 2)
            found = self._search(text, start, start + reach)
            return self._match(text, found.start()) if found and self.whole else found
        if self._find_head is None:
            self._find_head = re.compile("|".join(map(re.escape, self.heads))).finditer
        heads = self._find_head(text, max(0, near - FULL_REACH // 2))
        for head in islice(heads, _MOST_HEADS_TRIED):
            start = head.start()
            if found := self._match(text, start, len(text) if self.whole else start + reach):
                return found
        return None

    def event_of(self, texts: dict[str, str], record: Record) -> Event:
        """The event of the fields' texts, however they were found."""
        if self._match is None:
            self._compile()
        last = {name: index for index, (name, _) in enumerate(self._plan)}
        row = [texts.get(name) if last[name] == index else None for index, (name, _) in enumerate(self._plan)]
        return self._event(row, record)

    def event(self, found: re.Match[str], record: Record) -> Event:
        """The event of a match. A field whose text is no value of its type is left out."""
        return self._event(found.groups(), record)

    def _fields_that_convert(self, texts: Sequence[str | None]) -> dict[str, Any]:
        fields: dict[str, Any] = {}
        for (name, convert), text in zip(self._plan, texts, strict=True):
            try:
                if text is not None:
                    fields[name] = convert(text)
            except ValueError:
                pass
        return fields

    def _event(self, texts: Sequence[str | None], record: Record) -> Event:
        try:
            fields = {
                name: convert(text) for (name, convert), text in zip(self._plan, texts, strict=True) if text is not None
            }
        except ValueError:
            fields = self._fields_that_convert(texts)
        cut = False
        for name in self._dumps:
            if fields.get(name) is not None:
                fields[name], complete = fields[name]
                cut = cut or not complete
        return Event(self.kind, self.engine, record, fields, self.units, cut)
