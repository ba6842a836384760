"""Plain lines of no known template, whose fields go into columns one by one: rare forms of the common kinds."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from analyzer.bulk.claims import Claim
from analyzer.bulk.template import ACCESS, ANSWER, COLUMNS, GREATEST, POSITIONS, Column, Template
from analyzer.events import Event
from analyzer.framing.record import Record

if TYPE_CHECKING:
    pass

_RATE = re.compile(r"\d+\.\d+")
_Key = tuple[str, str, int | None, tuple[str, ...]]


@dataclass(slots=True)
class Singles:
    """Collects events read one by one into claims."""

    effect_of: Callable[[str, str], str]
    _rows: dict[_Key, list[dict[str, Any]]] = field(default_factory=dict)

    def take(self, row: int, record: Record, event: Event) -> bool:
        """Adds the event of a row, if lines of its kind can be folded by columns."""
        values = _values(record, event) if self.effect_of(event.engine, event.kind) else None
        if values is None:
            return False
        key = (event.engine, event.kind, record.pid, tuple(values))
        known = self._rows.get(key)
        if known is None:
            known = self._rows[key] = []
        known.append({"row": row, "rank": record.rank, **values})
        return True

    def claims(self) -> Iterable[Claim]:
        """What was collected."""
        import polars as pl

        for key, rows in self._rows.items():
            frame = pl.DataFrame(rows, infer_schema_length=None).with_columns(pl.col("row").cast(pl.UInt32))
            yield Claim(_template(key), frame)


def _template(key: _Key) -> Template:
    engine, kind, pid, names = key
    return Template(kind, engine, "", tuple(map(Column, names)), True, "", pid)


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
