"""The unit algebra of the rule language: what may be added, compared, multiplied, and what comes out.

A number's type is a product of powers of the four dimensions *bytes*, *tokens*, *slots*, *blocks*, *seconds* and
*percent*, plus a label. Requests, layers, counts, ratios and fractions have no dimension: a request times the tokens
of one request is tokens. Their label still keeps requests from being added to layers; ``count``, ``ratio``,
``fraction`` and a bare number go with each of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from analyzer.units import GIB, KIB, MIB

Kind: TypeAlias = Literal["number", "name", "bool", "version", "list", "any"]
Dims: TypeAlias = tuple[tuple[str, int], ...]


class UnitError(ValueError):
    """Two units that do not go together; the text says which."""


@dataclass(frozen=True, slots=True)
class Type:
    """The type of an expression. ``label`` names a number's unit as the reader sees it.

    ``literal`` is ``zero`` or ``bare`` for a number written without a unit: zero goes with every unit, a bare number
    with everything that is counted (tokens, slots, blocks, requests …), neither bytes nor seconds.
    """

    kind: Kind
    dims: Dims = ()
    label: str = ""
    literal: str = ""


ANY = Type("any", label="any")
BOOL = Type("bool", label="bool")
NAME = Type("name", label="name")
VERSION = Type("version", label="version")
LIST = Type("list", label="list")

_DIMS: dict[str, Dims] = {
    "bytes": (("bytes", 1),),
    "tokens": (("tokens", 1),),
    "blocks": (("blocks", 1),),
    "slots": (("slots", 1),),
    "seconds": (("seconds", 1),),
    "time": (("seconds", 1),),
    "percent": (("percent", 1),),
    "rate": (("seconds", -1), ("tokens", 1)),
    "bytes_per_token": (("bytes", 1), ("tokens", -1)),
    "tokens_per_block": (("blocks", -1), ("tokens", 1)),
    "bytes_per_slot": (("bytes", 1), ("slots", -1)),
    "bytes_per_block": (("blocks", -1), ("bytes", 1)),
    "requests": (),
    "layers": (),
    "count": (),
    "ratio": (),
    "fraction": (),
}
_LABELS: dict[Dims, str] = {dims: unit for unit, dims in reversed(_DIMS.items()) if dims}
_WORDS = {"name": "a name", "bool": "true or false", "version": "a version", "list": "a list"}
_PLAIN = {"count", "ratio", "fraction", ""}
_COUNTED = {(("tokens", 1),), (("blocks", 1),), (("slots", 1),), (), (("blocks", -1), ("tokens", 1))}

LITERALS: dict[str, tuple[float, str]] = {
    "B": (1, "bytes"), "bytes": (1, "bytes"), "byte": (1, "bytes"),
    "KiB": (KIB, "bytes"), "MiB": (MIB, "bytes"), "GiB": (GIB, "bytes"), "TiB": (GIB * KIB, "bytes"),
    "KB": (1e3, "bytes"), "MB": (1e6, "bytes"), "GB": (1e9, "bytes"), "TB": (1e12, "bytes"),
    "tokens": (1, "tokens"), "token": (1, "tokens"), "blocks": (1, "blocks"), "block": (1, "blocks"),
    "slots": (1, "slots"), "slot": (1, "slots"), "requests": (1, "requests"), "request": (1, "requests"),
    "layers": (1, "layers"), "layer": (1, "layers"),
    "ms": (1e-3, "seconds"), "s": (1, "seconds"), "seconds": (1, "seconds"), "min": (60, "seconds"),
    "h": (3600, "seconds"), "%": (0.01, "fraction"),
    "bytes/token": (1, "bytes_per_token"), "KiB/token": (KIB, "bytes_per_token"),
    "bytes/slot": (1, "bytes_per_slot"), "MiB/slot": (MIB, "bytes_per_slot"), "GiB/slot": (GIB, "bytes_per_slot"),
    "bytes/block": (1, "bytes_per_block"), "KiB/block": (KIB, "bytes_per_block"), "MiB/block": (MIB, "bytes_per_block"),
    "tokens/block": (1, "tokens_per_block"), "tokens/s": (1, "rate"),
}  # fmt: skip
"""Unit as written after a number -> factor to base units, unit."""


def type_of(unit: str) -> Type:
    """The type of a fact whose vocabulary unit is ``unit``."""
    if unit in _DIMS:
        return Type("number", _DIMS[unit], unit)
    match unit:
        case "name":
            return NAME
        case "bool":
            return BOOL
        case "version":
            return VERSION
        case "list":
            return LIST
        case _:
            return ANY


def number_literal(value: float) -> Type:
    """The type of a number written without a unit."""
    return Type("number", (), "", "zero" if value == 0 else "bare")


def describe(kind: Type) -> str:
    """A type in words, for messages."""
    if kind.kind != "number":
        return _WORDS.get(kind.kind, "any")
    return kind.label or _label(kind.dims) or "a bare number"


def _label(dims: Dims) -> str:
    if (known := _LABELS.get(dims)) is not None:
        return known
    over = " ".join(n if p == 1 else f"{n}^{p}" for n, p in dims if p > 0) or "1"
    under = " ".join(n if p == -1 else f"{n}^{-p}" for n, p in dims if p < 0)
    return "" if not dims else f"{over} per {under}" if under else over


def unify(left: Type, right: Type, doing: str) -> Type:
    """The common type of two numbers that are added, compared or chosen between. Raises ``UnitError``."""
    if left.kind == "any" or right.kind == "any":
        return left if right.kind == "any" else right
    if left.kind != right.kind:
        raise UnitError(f"{doing} {describe(left)} and {describe(right)}")
    if left.kind != "number":
        return left
    for one, other in ((left, right), (right, left)):
        if one.literal == "zero" or (one.literal == "bare" and other.dims in _COUNTED):
            return other
    if left.dims != right.dims:
        raise UnitError(f"{doing} {describe(left)} and {describe(right)}")
    if left.dims or left.label == right.label or right.label in _PLAIN:
        return Type("number", left.dims, left.label)
    if left.label in _PLAIN:
        return Type("number", (), right.label)
    raise UnitError(f"{doing} {describe(left)} and {describe(right)}")


def multiply(left: Type, right: Type, power: int) -> Type:
    """The type of ``left * right`` (``power`` 1) or ``left / right`` (``power`` -1). Raises ``UnitError``."""
    for side in (left, right):
        if side.kind not in ("number", "any"):
            raise UnitError(f"{'multiplies by' if power > 0 else 'divides by'} {describe(side)}")
    if left.kind == "any" or right.kind == "any":
        return ANY
    total: dict[str, int] = dict(left.dims)
    for name, exponent in right.dims:
        total[name] = total.get(name, 0) + power * exponent
    dims = tuple(sorted((n, p) for n, p in total.items() if p))
    if dims:
        return Type("number", dims, _label(dims))
    labels = {side.label for side in (left, right) if side.label not in _PLAIN}
    keeps = not left.dims and not right.dims and len(labels) == 1 and (power > 0 or right.label not in labels)
    return Type("number", (), labels.pop() if keeps else "ratio")
