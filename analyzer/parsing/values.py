"""From the text of a field to its value in base units, by the type that its terminal declares."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_UNIT_LETTERS = "KMGTkmgtiBbytes "
_STEPS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}


def _bool(text: str) -> bool:
    return text[:1] in "Tt"


def _dtype(text: str) -> str:
    return text.removeprefix("torch.")


def _hex(text: str) -> int:
    return int(text, 16)


def _int(text: str) -> int:
    try:
        return int(text)
    except ValueError:  # with thousands separators
        return int(text.replace(",", ""))


def _quoted(text: str) -> str:
    return text[1:-1]


def _clock(text: str) -> float:
    """Seconds of ``mm:ss`` or ``hh:mm:ss``."""
    seconds = 0.0
    for part in text.split(":"):
        seconds = seconds * 60 + float(part)
    return seconds


def _size(text: str, decimal: bool = False) -> float:
    """Bytes of ``20.00 MiB``; ``MB`` is a power of 1000 only if ``decimal``."""
    digits = text.rstrip(_UNIT_LETTERS)
    unit = text[len(digits) :].strip().lower()
    base = 1000.0 if decimal and "i" not in unit else 1024.0
    return float(digits) * base ** _STEPS.get(unit[:1], 0)


def _size_decimal(text: str) -> float:
    return _size(text, decimal=True)


def _nested(text: str) -> Any:
    from analyzer.parsing.nested import parse_value

    return parse_value(text)


def _list(text: str) -> Any:
    value = _nested(text)[0]
    return list(value) if isinstance(value, list | tuple) else [value]


CONVERTERS: dict[str, Callable[[str], Any]] = {
    "int": _int,
    "float": float,
    "str": str,
    "bool": _bool,
    "dtype": _dtype,
    "hex": _hex,
    "quoted": _quoted,
    "clock": _clock,
    "size": _size,
    "size_decimal": _size_decimal,
    "list": _list,
    "nested": _nested,
}
"""By type; ``nested`` gives (value, complete), every other one the value. Each may raise ``ValueError``."""


def converter(kind: str, scale: float = 1.0, none: tuple[str, ...] = ()) -> Callable[[str], Any]:
    """The function from text to value for a terminal of type ``kind`` with factor ``scale`` and words for no value."""
    convert = CONVERTERS[kind]
    if scale != 1.0:
        plain = convert

        def convert(text: str) -> Any:
            return plain(text) * scale

    if not none:
        return convert
    known = convert

    def convert_or_none(text: str) -> Any:
        return None if text in none else known(text)

    return convert_or_none
