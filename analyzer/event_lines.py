"""Events as lines of JSON (contract.md), every text in them cleaned of secrets and control characters.

What all events of one kind with the same fields share is put together once; of an event itself only its values are
written. Texts are cleaned one by one, never the JSON around them, which must stay JSON.
"""

from __future__ import annotations

import json
import math
import operator
from collections.abc import Callable, Sequence
from functools import lru_cache
from json.encoder import encode_basestring
from typing import Any, NamedTuple

from analyzer.events import Event
from analyzer.redact import clean, clean_value, is_secret_name

LONGEST = 200
"""Characters up to which a text's cleaned form is remembered: methods, paths, ranks and the like come again."""


class EventLines:
    """Writes events as lines of JSON; ``first`` are members that stand before an event's own."""

    def __init__(self, first: dict[str, str] | None = None) -> None:
        self._first = {} if first is None else first
        self._forms: dict[tuple[Any, ...], _Form] = {}
        self._heads: dict[str, str] = {}

    def line(self, event: Event) -> str:
        """One event as a line of JSON, without its line feed."""
        fields = event.fields
        key = (event.engine, event.kind, *fields, *map(type, fields.values()))
        try:
            form = self._forms[key]
        except KeyError:
            form = self._forms[key] = _form(event)
        values = list(fields.values())
        if not form.text or event.cut or not math.isfinite(sum(form.floats(values))):
            return self._whole(event)
        for place in form.texts:
            values[place] = quoted(values[place]) if len(values[place]) <= LONGEST else _written(values[place])
        for place in form.words:
            values[place] = _WORDS[values[place]]
        record = event.record
        return self.head(record.source) + form.text % (
            record.line,
            record.last_line,
            quoted(record.stamp) if record.stamp else "null",
            quoted(record.rank),
            quoted(record.process),
            *values,
        )

    def head(self, source: str) -> str:
        """The beginning of every event of ``source``, without a comma behind it."""
        head = self._heads.get(source)
        if head is None:
            head = self._heads[source] = json.dumps({**self._first, "source": clean(source)}, ensure_ascii=False)[:-1]
        return head

    def _whole(self, event: Event) -> str:
        return json_line({**self._first, **as_json(event)})


class _Form(NamedTuple):
    """What all events with the same fields of the same types share."""

    text: str
    """With ``%s`` for each value; empty if such an event must be written value by value."""
    texts: tuple[int, ...] = ()
    """Which of the fields are texts."""
    words: tuple[int, ...] = ()
    """Which are true, false or null."""
    floats: Callable[[list[Any]], Sequence[float]] = lambda values: ()
    """Takes out the numbers that may be none (``nan``) or infinite, which JSON cannot write."""


def _form(event: Event) -> _Form:
    types = [type(value) for value in event.fields.values()]
    if any(clean(name) != name or is_secret_name(name) for name in event.fields):
        return _Form("")
    if not {int, float, str, bool, type(None)}.issuperset(types):
        return _Form("")

    def fixed(text: str) -> str:
        return _written(text).replace("%", "%%")

    fields = ", ".join(
        f'{fixed(name)}: {{"value": %s, "unit": {fixed(event.units.get(name, "any"))}}}' for name in event.fields
    )
    text = (
        ', "line": %s, "last_line": %s, "time": %s, "rank": %s, "process": %s, '
        f'"engine": {fixed(event.engine)}, "kind": {fixed(event.kind)}, "fields": {{{fields}}}}}'
    )
    return _Form(
        text,
        tuple(i for i, kind in enumerate(types) if kind is str),
        tuple(i for i, kind in enumerate(types) if kind is bool or kind is type(None)),
        _taker([i for i, kind in enumerate(types) if kind is float]),
    )


def _taker(places: list[int]) -> Callable[[list[Any]], Sequence[float]]:
    if len(places) > 1:
        return operator.itemgetter(*places)
    return (lambda values: (values[places[0]],)) if places else (lambda values: ())


def as_json(event: Event) -> dict[str, Any]:
    """The JSON object of contract.md for one event, its texts as the log has them."""
    record = event.record
    return {
        "source": record.source,
        "line": record.line,
        "last_line": record.last_line,
        "time": record.stamp or None,
        "rank": record.rank,
        "process": record.process,
        "engine": event.engine,
        "kind": event.kind,
        "fields": {k: {"value": v, "unit": event.units.get(k, "any")} for k, v in event.fields.items()},
        **({"cut": True} if event.cut else {}),
    }


def json_line(row: dict[str, Any]) -> str:
    """``row`` as one line of JSON, its texts cleaned; ``fields`` are masked where their name is a secret's."""
    fields = {
        clean(name): {**field, "value": clean_value(_json_value(field["value"]), name)}
        for name, field in row.get("fields", {}).items()
    }
    cleaned = {key: fields if key == "fields" else clean_value(value) for key, value in row.items()}
    return json.dumps(cleaned, ensure_ascii=False, allow_nan=False)


def _json_value(value: Any) -> Any:
    """``value`` in JSON's types; a number that JSON does not have becomes its name."""
    if isinstance(value, dict):
        return {str(key): _json_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_json_value(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if value is None or isinstance(value, str | int | float) else str(value)


def _written(text: str) -> str:
    """``text``, cleaned, as JSON."""
    return encode_basestring(clean(text))


quoted = lru_cache(maxsize=8192)(_written)
"""A text that comes again and again, cleaned, as JSON."""
_WORDS = {True: "true", False: "false", None: "null"}
