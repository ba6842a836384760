"""Plain lines of no known template, whose fields go into columns one by one: rare forms of the common kinds."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from analyzer.bulk.claim import Claim, Words
from analyzer.bulk.template import ACCESS, ANSWER, COLUMNS, GREATEST, POSITIONS, Template
from analyzer.events import Event
from analyzer.framing.record import Record

_RATE = re.compile(r"\d+\.\d+")
_Key = tuple[str, str, int | None, tuple[str, ...]]


@dataclass(slots=True)
class _Found:
    rows: list[int] = field(default_factory=list)
    ranks: list[str] = field(default_factory=list)
    values: list[tuple[Any, ...]] = field(default_factory=list)


@dataclass(slots=True)
class Singles:
    """Collects events read one by one into claims."""

    effect_of: Callable[[str, str], str]
    _found: dict[_Key, _Found] = field(default_factory=dict)

    def take(self, row: int, record: Record, event: Event) -> bool:
        """Adds the event of a row, if lines of its kind can be folded by columns."""
        values = _values(record, event) if self.effect_of(event.engine, event.kind) else None
        if values is None:
            return False
        self.add(row, record.rank, (event.engine, event.kind, record.pid), values)
        return True

    def add(self, row: int, rank: str, what: tuple[str, str, int | None], values: dict[str, Any]) -> None:
        """Adds a row; ``what`` is its engine, its kind and the process that printed it."""
        found = self._found.setdefault((*what, tuple(values)), _Found())
        found.rows.append(row)
        found.ranks.append(rank)
        found.values.append(tuple(values.values()))

    def claims(self) -> Iterable[Claim]:
        """What was collected."""
        for (engine, kind, pid, names), found in self._found.items():
            columns = dict(zip(names, zip(*found.values, strict=True), strict=True))
            answers = columns.pop("answer", None)
            figures = {name: np.asarray(values) for name, values in columns.items()}
            yield Claim(
                Template(kind, engine, pid), np.asarray(found.rows, np.int64), _words(found.ranks), figures,
                answers=None if answers is None else _words(answers),
            )  # fmt: skip


def _words(texts: Sequence[str]) -> Words:
    known: dict[str, int] = {}
    codes = [known.setdefault(text, len(known)) for text in texts]
    return Words(list(known), np.asarray(codes, np.int64))


def _values(record: Record, event: Event) -> dict[str, Any] | None:
    """The fields that the folding looks at; None if they are not what a column holds."""
    if event.kind == ACCESS:
        answer = ANSWER.fullmatch(record.text)
        return {"answer": answer[1]} if answer is not None else None
    values: dict[str, Any] = {}
    for name, value in event.fields.items():
        if name == POSITIONS:
            values[name] = sum(map(float, _RATE.findall(str(value))))
        elif name in COLUMNS:
            if not isinstance(value, int | float) or value != value or isinstance(value, bool) or abs(value) > GREATEST:
                return None
            values[name] = value
    return values
