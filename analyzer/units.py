"""Units of the values in events, facts and reports, and how they are shown.

Inside, sizes are bytes, times seconds and fractions 0..1. SGLang prints GiB and calls it GB, vLLM prints GiB or GB by
version; the grammars say which, once, so that nothing after them has to know.
"""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

KIB = 1 << 10
MIB = 1 << 20
GIB = 1 << 30

Unit: TypeAlias = Literal[
    "bytes", "tokens", "blocks", "slots", "requests", "layers", "count", "seconds", "fraction", "percent", "rate",
    "bytes_per_token", "tokens_per_block", "bytes_per_slot", "bytes_per_block", "ratio", "name", "bool", "version",
    "time", "list", "dict", "any",
]  # fmt: skip


def show(value: object, unit: str) -> str:
    """``value`` as a reader sees it: ``show(15032385536, "bytes") == "14.00 GiB"``."""
    if value is None:
        return "none"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if unit == "bytes":
        return show_bytes(value)
    if unit in ("bytes_per_token", "bytes_per_slot", "bytes_per_block"):
        return f"{value:,.0f} bytes" if abs(value) < MIB else show_bytes(value)
    if unit in ("fraction", "ratio"):
        return f"{value:.4g}"
    if unit == "percent":
        return f"{value:.1f} %"
    if unit == "seconds":
        return f"{value:.1f} s" if abs(value) < 120 else f"{value / 60:.1f} min"
    if isinstance(value, float) and not value.is_integer():
        return f"{value:,.2f}"
    return f"{value:,.0f}"


def show_bytes(value: float) -> str:
    """A size: bytes below 1 KiB, then KiB, MiB with one decimal, GiB with two."""
    size = abs(value)
    if size < KIB:
        return f"{value:,.0f} B"
    if size < MIB:
        return f"{value / KIB:,.1f} KiB"
    if size < GIB / 10:
        return f"{value / MIB:,.1f} MiB"
    return f"{value / GIB:,.2f} GiB"


_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)b?", re.IGNORECASE)


def parse_bytes(text: str) -> float:
    """Bytes from ``80GiB``, ``0.85 GB``, ``512MiB`` or a plain number. ``GB`` is 10^9, ``GiB`` and ``G`` 2^30.

    Raises ``ValueError`` with a sentence for anything else.
    """
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise ValueError("not a size: write it like 80GiB, 0.85GB or 512MiB")
    number, prefix, binary = match.groups()
    if not prefix:
        return float(number)
    base = 1024 if binary or not text.strip().lower().endswith("b") else 1000
    return float(number) * float(base ** ("kmgt".index(prefix.lower()) + 1))


def number_or_text(text: str) -> int | float | str:
    """The value of a word of a command line: a whole number, a number, or the word itself."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def number_or_none(value: object) -> float | None:
    """``value`` as a number, None if it is none; a truth value is no number."""
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def several(number: int, noun: str) -> str:
    """``1 run``, ``1,200 runs``: a number with its noun."""
    return f"{number:,} {noun}{'s' * (number != 1)}"
