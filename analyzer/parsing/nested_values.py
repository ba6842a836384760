"""From the parse of a nested value to Python values: the callbacks of ``grammars/python_value.lark``."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from lark import Token, Transformer

CLASS: Final = "__class__"
ARGUMENTS: Final = "__args__"


class _Missing:
    """The value of a field that was cut off, and the key of an entry without one."""

    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = _Missing()

_FIELD = re.compile(r"(?:(\w+)=|'([^']*)': )(?:'([^']*)'|([^,]+))")
"""One field of a run of simple fields: name, or key; text in quotes, or anything else."""

Entry = tuple[Any, Any]
"""Key and value of one item between brackets; the key is ``MISSING`` for a plain value."""


class _Words(list[Token]):
    """Unquoted words in a row: one text, with a blank where the words do not touch."""

    def __str__(self) -> str:
        end = self[0].start_pos
        parts = []
        for word in self:
            parts.append(f"{'' if word.start_pos == end else ' '}{word}")
            end = word.end_pos
        return "".join(parts)


_CONSTANTS: dict[str, Any] = {
    "None": None, "null": None, "True": True, "true": True, "False": False, "false": False,
    "inf": float("inf"), "-inf": float("-inf"), "Infinity": float("inf"), "-Infinity": float("-inf"),
    "nan": float("nan"), "NaN": float("nan"),
}  # fmt: skip

_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-7]{1,3}|[\s\S])")
_PLAIN_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v", "\n": ""}
_MEMBER = re.compile(r"<([A-Za-z_][\w.]*): (.*)>", re.DOTALL)
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_PATHS = frozenset({"PosixPath", "PurePosixPath", "WindowsPath", "PureWindowsPath", "Path"})
_LISTS = frozenset({"set", "frozenset", "list", "tuple", "deque"})
_DICTS = frozenset({"OrderedDict", "defaultdict", "dict", "mappingproxy", "Counter"})


def _unescaped(found: re.Match[str]) -> str:
    code = found[1]
    if len(code) > 1 and code[0] in "xuU":
        number = int(code[1:], 16)
        return chr(number) if number < 0x110000 else found[0]
    if code[0] in "01234567":
        return chr(int(code, 8))
    return _PLAIN_ESCAPES.get(code, code if code in "\\'\"" else found[0])


def string(text: str) -> str:
    """The text of a string literal with its quotes and prefix. Unknown escapes stay as they are."""
    quote = text[-1]
    prefix, _, rest = text.partition(quote)
    body = rest[:-1]
    return body if "\\" not in body or "r" in prefix else _ESCAPE.sub(_unescaped, body)


def _number(text: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        return float(text)


def _numbers(text: str) -> list[int | float]:
    return [_number(part) for part in text[1:-1].split(",")]


def _object(text: str) -> str:
    """``<Mode.FULL: 'full'>`` is ``full``, ``<Mode.FULL: 3>`` is ``FULL``; other objects lose their address only."""
    if found := _MEMBER.fullmatch(text):
        name, value = found[1], found[2].strip()
        quoted = len(value) > 1 and value[0] in "'\"" and value[-1] == value[0]
        return string(value) if quoted else name.rpartition(".")[2]
    return _ADDRESS.sub("", text)


def _bare(text: str) -> str:
    return text.removeprefix("torch.")


_TOKENS: dict[str, Callable[[str], Any]] = {
    "STRING": string,
    "NUMBER": _number,
    "NUMBERS": _numbers,
    "CONSTANT": _CONSTANTS.__getitem__,
    "OBJECT": _object,
    "BARE": _bare,
    "JUNK": str,
}


def first_field_end(run: str) -> int:
    """Where the first field of a run of simple fields ends."""
    found = _FIELD.match(run)
    return found.end() if found else len(run)


def _simple(text: str) -> Any:
    """The value of an unquoted word: constant, number or name."""
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if text[0] in "-0123456789":
        try:
            return _number(text)
        except ValueError:
            return text
    return _bare(text)


def value_of(child: Any) -> Any:
    """The value of a parsed child: a token by its type, words as one text, a finished value as it is."""
    if isinstance(child, Token):
        convert = _TOKENS.get(child.type)
        return convert(str(child)) if convert else MISSING
    return str(child) if isinstance(child, _Words) else child


def key_of(child: Any) -> Any:
    """The same for the key of a dict, which has to be hashable."""
    key = value_of(child)
    try:
        hash(key)
    except TypeError:
        return str(key)
    return key


def values(entries: list[Entry]) -> list[Any]:
    """The plain values among ``entries``."""
    return [value for key, value in entries if key is MISSING and value is not MISSING]


def pairs(entries: list[Entry]) -> dict[Any, Any]:
    """The entries with a key; those cut off are left out."""
    return {key: value for key, value in entries if key is not MISSING and value is not MISSING}


class Builder(Transformer[Token, Any]):
    """Called by Lark while it parses. Each method gets the children of one rule."""

    def no_items(self, _: list[Any]) -> list[Entry]:
        return []

    def first_item(self, children: list[Any]) -> list[Entry]:
        return children[0] if isinstance(children[0], list) else [children[0]]

    def next_item(self, children: list[Any]) -> list[Entry]:
        items: list[Entry] = children[0]
        new = children[-1]
        if isinstance(new, list):
            items += new
        else:
            items.append(new)
        return items

    def many(self, children: list[Any]) -> list[Entry]:
        return [
            (key if name is None else name, _simple(other) if text is None else text)
            for name, key, text, other in (found.groups() for found in _FIELD.finditer(children[0]))
        ]

    def same_items(self, children: list[Any]) -> list[Entry]:
        items: list[Entry] = children[0]
        return items

    def plain(self, children: list[Any]) -> Entry:
        return MISSING, value_of(children[0])

    def named(self, children: list[Any]) -> Entry:
        return str(children[0])[:-1], value_of(children[1])

    def named_nothing(self, children: list[Any]) -> Entry:
        return str(children[0])[:-1], None

    def pair(self, children: list[Any]) -> Entry:
        return key_of(children[0]), value_of(children[-1])

    def pair_nothing(self, children: list[Any]) -> Entry:
        return key_of(children[0]), None

    def more_words(self, children: list[Any]) -> _Words:
        before, word = children
        words = before if isinstance(before, _Words) else _Words([before])
        words.append(word)
        return words

    def list_of(self, children: list[Any]) -> Any:
        return values(children[1])

    def tuple_of(self, children: list[Any]) -> Any:
        return tuple(values(children[1]))

    def braces(self, children: list[Any]) -> Any:
        found, single = pairs(children[1]), values(children[1])
        cut_off = not children[2]  # a closing bracket that the text lacks is empty
        return found if found or cut_off or not single else single

    def call(self, children: list[Any]) -> Any:
        name, plain, named = str(children[0])[:-1], values(children[1]), pairs(children[1])
        short = name.rpartition(".")[2]
        if short in _PATHS and len(plain) == 1:
            return plain[0]
        if short in _DICTS and not named:
            return _dict(plain)
        if short in _LISTS:
            return [*plain[0]] if plain and isinstance(plain[0], list | tuple) else plain
        result: dict[Any, Any] = {CLASS: name, **named}
        if plain:
            result[ARGUMENTS] = plain
        return result

    def start(self, children: list[Any]) -> Any:
        """The whole: one value as it is, fields as a dict, several values as a list."""
        entries: list[Entry] = children[0]
        plain, named = values(entries), pairs(entries)
        if named:
            return named
        return plain[0] if len(plain) == 1 else plain or None


def _dict(plain: list[Any]) -> dict[Any, Any]:
    """The dict that ``OrderedDict([('a', 1)])``, ``OrderedDict({...})`` or ``defaultdict(<f>, {...})`` stands for."""
    for value in plain:
        if isinstance(value, dict):
            return value
        if isinstance(value, list):
            return {str(item[0]): item[1] for item in value if isinstance(item, tuple) and len(item) == 2}
    return {}
