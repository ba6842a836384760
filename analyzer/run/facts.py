"""Facts of one server run: a value with its unit, its rank and the lines it was read from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from analyzer.framing.record import Record
from analyzer.run.vocabulary import spec_of
from analyzer.units import number_or_none

MOST_RANKS = 1024
"""Ranks of one run that are kept apart. What more claim to be ranks is damage or malice, and each costs memory."""
LONGEST_QUOTE = 400
"""Characters of a line that are kept as evidence."""


@dataclass(frozen=True, slots=True)
class Where:
    """A place that proves something: a line of a log, or a named other witness (file, metric, URL)."""

    source: str
    line: int = 0
    text: str = ""

    @classmethod
    def of(cls, record: Record | Where, index: int = 0) -> Where:
        """Line ``index`` (from 0) of ``record``; of a message that begins with an empty line, its first with words.

        A place is given back as it is.
        """
        if isinstance(record, Where):
            return record
        lines = record.text.split("\n", index + 1)
        if not index and len(lines) > 1 and not lines[0].strip():
            for number, line in enumerate(record.text.split("\n")):
                if any(char.isalnum() for char in line):
                    return cls(record.source, record.line_of(number), line[:LONGEST_QUOTE])
        return cls(record.source, record.line_of(index), lines[min(index, len(lines) - 1)][:LONGEST_QUOTE])


@dataclass(frozen=True, slots=True)
class Fact:
    """One named value. ``ranks`` holds the value of each rank where ranks print their own.

    ``value`` is the run's value: how it follows from the ranks is the vocabulary's business (``spec_of(name)``).
    ``origin``: ``log``, ``derived``, ``model-dir``, ``metrics``, ``http``, ``container``, ``argument``.
    """

    name: str
    value: Any
    unit: str
    where: tuple[Where, ...] = ()
    ranks: dict[str, Any] = field(default_factory=dict)
    origin: str = "log"


class Facts:
    """The facts of one run, by name. A value read again for the same rank replaces the earlier one."""

    def __init__(self, facts: Iterable[Fact] = ()) -> None:
        self._facts: dict[str, Fact] = {f.name: f for f in facts}

    def add(
        self,
        name: str,
        value: Any,
        where: Record | Where | Iterable[Where] | None = None,
        *,
        rank: str | None = None,
        origin: str = "log",
        unit: str | None = None,
    ) -> None:
        """Sets ``name``. ``rank=None`` takes the record's rank; the vocabulary gives the unit and the reduction."""
        if value is None:
            return
        spec = spec_of(name)
        places: tuple[Where, ...]
        if isinstance(where, Record):
            rank = where.rank if rank is None else rank
            places = (Where.of(where),)
        elif isinstance(where, Where):
            places = (where,)
        else:
            places = tuple(where or ())
        old = self._facts.get(name)
        if old is not None and len(old.ranks) >= MOST_RANKS and (rank or "") not in old.ranks:
            return
        ranks = dict(old.ranks) if old and old.origin == origin else {}
        ranks[rank or ""] = value
        together = len(ranks) > 1 and spec.reduce not in ("last", "first")
        if old and old.origin == origin and (old.value == value or together):
            places = tuple(dict.fromkeys(old.where + places))[:16]
        reduced = spec.reduced(list(ranks.values()))
        if spec.reduce == "first" and old is not None:
            return
        self._facts[name] = Fact(name, reduced, unit or spec.unit, places, ranks, origin)

    def put(self, fact: Fact) -> None:
        """Stores ``fact`` as it is."""
        self._facts[fact.name] = fact

    def get(self, name: str) -> Fact | None:
        """The fact ``name``, or None."""
        return self._facts.get(name)

    def value(self, name: str, default: Any = None) -> Any:
        """The run's value of ``name``, or ``default``."""
        fact = self._facts.get(name)
        return default if fact is None else fact.value

    def number(self, name: str) -> float | None:
        """The run's value of ``name`` if it is a number."""
        return number_or_none(self.value(name))

    def where(self, name: str) -> tuple[Where, ...]:
        """The places that prove ``name``; empty if it is not known."""
        fact = self._facts.get(name)
        return () if fact is None else fact.where

    def discard(self, name: str) -> None:
        """Forgets ``name``."""
        self._facts.pop(name, None)

    def copy(self) -> Facts:
        """An independent copy."""
        return Facts(replace(f, ranks=dict(f.ranks)) for f in self._facts.values())

    def __contains__(self, name: object) -> bool:
        return name in self._facts

    def __iter__(self) -> Iterator[Fact]:
        return iter(self._facts.values())

    def __len__(self) -> int:
        return len(self._facts)
