"""Evaluates an expression's tree over a view of a run: three-valued, and every unknown says what it lacked.

Kleene's strong logic: ``false and unknown`` is false, ``true or unknown`` is true, else an unknown part makes the
whole unknown. A number that cannot be had (division by zero, a text where a number was wanted) is unknown too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from analyzer.diagnosis.nodes import Node
from analyzer.diagnosis.patterns import search

if TYPE_CHECKING:
    from analyzer.diagnosis.view import RunView


@dataclass(frozen=True, slots=True)
class Unknown:
    """No value. ``missing`` names the facts that would give it, ``why`` says what else stood in the way."""

    missing: frozenset[str] = frozenset()
    why: str = ""

    def __bool__(self) -> bool:
        raise TypeError("an unknown value is neither true nor false")


class Evaluator:
    """Evaluates nodes of one rule. The rule's ``let`` values are computed when first asked for, and kept."""

    def __init__(self, view: RunView, lets: Mapping[str, Node] | None = None) -> None:
        self.view = view
        self.lets = lets or {}
        self._known: dict[str, Any] = {}

    def __call__(self, node: Node) -> Any:
        """The value of ``node``: a number, text, bool, list, None, or ``Unknown``."""
        return _EVALUATE[node[0]](self, node)

    def truth(self, node: Node) -> bool | Unknown:
        """``node`` as a condition."""
        return as_truth(self(node))

    def let(self, name: str) -> Any:
        """The value of the rule's own name ``name``."""
        if name not in self._known:
            self._known[name] = Unknown(why=f"{name} is defined by itself")
            self._known[name] = self(self.lets[name])
        return self._known[name]


def as_truth(value: Any) -> bool | Unknown:
    """A value as a condition: texts such as ``"True"`` count as what they say."""
    if isinstance(value, bool | Unknown):
        return value
    if isinstance(value, str):
        lowered = value.strip().lower()
        return lowered not in ("false", "no", "off", "0", "none", "null", "")
    return bool(value)


def as_number(value: Any) -> float | Unknown:
    """A value as a number; a text is read as one if it is one."""
    if isinstance(value, Unknown):
        return value
    if isinstance(value, bool) or value is None:
        return Unknown(why=f"{value} is no number")
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return Unknown(why=f"{value[:40]!r} is no number")
    if isinstance(value, int | float):
        return value if abs(value) < 1e300 else Unknown(why="a number is out of range")  # nan compares false, too
    return Unknown(why=f"a {type(value).__name__} is no number")


def join(*parts: Any) -> Unknown:
    """One unknown for several."""
    unknowns = [p for p in parts if isinstance(p, Unknown)]
    why = "; ".join(dict.fromkeys(u.why for u in unknowns if u.why))
    return Unknown(frozenset().union(*(u.missing for u in unknowns)), why)


def equal(left: Any, right: Any, *, ignore_case: bool = False) -> bool:
    """Whether two known values are the same: numbers by value, texts by letters, ``None`` as the text ``None``."""
    if left is None or right is None:
        return str(left).lower() in ("none", "null") and str(right).lower() in ("none", "null")
    if isinstance(left, bool) or isinstance(right, bool):
        return str(left).strip().lower() == str(right).strip().lower()
    a, b = as_number(left), as_number(right)
    texts = isinstance(left, str) and isinstance(right, str)
    if not texts and not isinstance(a, Unknown) and not isinstance(b, Unknown):
        return math.isclose(a, b, rel_tol=1e-9)
    one, other = str(left), str(right)
    return one.lower() == other.lower() if ignore_case else one == other


def _and(e: Evaluator, node: Node) -> Any:
    left = e.truth(node[1])
    if left is False:
        return False
    right = e.truth(node[2])
    if right is False:
        return False
    return join(left, right) if isinstance(left, Unknown) or isinstance(right, Unknown) else True


def _or(e: Evaluator, node: Node) -> Any:
    left = e.truth(node[1])
    if left is True:
        return True
    right = e.truth(node[2])
    if right is True:
        return True
    return join(left, right) if isinstance(left, Unknown) or isinstance(right, Unknown) else False


def _not(e: Evaluator, node: Node) -> Any:
    inner = e.truth(node[1])
    return inner if isinstance(inner, Unknown) else not inner


def _arithmetic(e: Evaluator, node: Node) -> Any:
    left, right = as_number(e(node[1])), as_number(e(node[2]))
    if isinstance(left, Unknown) or isinstance(right, Unknown):
        return join(left, right)
    try:
        match node[0]:
            case "+":
                return as_number(left + right)
            case "-":
                return as_number(left - right)
            case "*":
                return as_number(left * right)
            case _:
                return as_number(left / right)
    except ZeroDivisionError:
        return Unknown(why="a division by zero")
    except OverflowError:
        return Unknown(why="a number is out of range")


def _negative(e: Evaluator, node: Node) -> Any:
    inner = as_number(e(node[1]))
    return inner if isinstance(inner, Unknown) else -inner


def _compare(e: Evaluator, node: Node) -> Any:
    sign, left, right = node
    if left[0] == "v":
        return e.view.version(sign, right[1])
    a, b = e(left), e(right)
    if isinstance(a, Unknown) or isinstance(b, Unknown):
        return join(a, b)
    if sign in ("==", "!="):
        same = equal(a, b, ignore_case=_ignores_case(left) or _ignores_case(right))
        return same if sign == "==" else not same
    a, b = as_number(a), as_number(b)
    if isinstance(a, Unknown) or isinstance(b, Unknown):
        return join(a, b)
    return {"<": a < b, ">": a > b, "<=": a <= b, ">=": a >= b}[sign]


def _ignores_case(node: Node) -> bool:
    return bool(node[0] == "s" and node[2])


def _search(e: Evaluator, node: Node) -> Any:
    value = e(node[1])
    if isinstance(value, Unknown):
        return value
    texts = value if isinstance(value, list | tuple) else [value]
    found = any(search(node[2], str(text)) for text in texts)
    return found if node[0] == "~" else not found


def _among(e: Evaluator, node: Node) -> Any:
    value = e(node[1])
    if isinstance(value, Unknown):
        return value
    found = any(equal(value, e(item), ignore_case=_ignores_case(item)) for item in node[2])
    return found if node[0] == "in" else not found


def _known(e: Evaluator, node: Node) -> bool:
    return isinstance(e(node[1]), Unknown) is (node[0] == "unknown")


def _call(e: Evaluator, node: Node) -> Any:
    _, name, arguments = node
    match name:
        case "seen":
            return e.view.kind_count(arguments[0][1]) > 0
        case "count":
            return e.view.kind_count(arguments[0][1])
        case "field":
            return e.view.event_field(arguments[0][1], arguments[1][1])
        case "series":
            return e.view.series(arguments[0][1])
        case "calibrated":
            return e.view.calibrated(arguments[0][1])
        case "known":
            return not isinstance(e(arguments[0]), Unknown)
        case "default":
            value = e(arguments[0])
            return e(arguments[1]) if isinstance(value, Unknown) else value
        case "choose":
            condition = e.truth(arguments[0])
            return condition if isinstance(condition, Unknown) else e(arguments[1] if condition else arguments[2])
        case "spread" | "rank_min" | "rank_max" | "count_ranks":
            return _over_ranks(e, name, arguments[0][1])
    values = [e(argument) for argument in arguments]
    if any(isinstance(v, Unknown) for v in values):
        return join(*values)
    match name:
        case "lower":
            return str(values[0]).lower()
        case "length":
            sized = isinstance(values[0], list | tuple | dict | str)
            return len(values[0]) if sized else Unknown(why="it has no length")
        case "contains":
            return _contains(values[0], values[1], ignore_case=_ignores_case(arguments[1]))
    numbers = [as_number(v) for v in values]
    if any(isinstance(v, Unknown) for v in numbers):
        return join(*numbers)
    return _MATH[name](*numbers)


def _contains(box: Any, item: Any, *, ignore_case: bool) -> bool:
    if isinstance(box, list | tuple | dict):
        return any(equal(part, item, ignore_case=ignore_case) for part in box)
    one, other = str(box), str(item)
    return other.lower() in one.lower() if ignore_case else other in one


def _over_ranks(e: Evaluator, name: str, fact: str) -> Any:
    value = e.view.value(fact)
    if isinstance(value, Unknown):
        return value
    ranks = e.view.ranks(fact)
    if name == "count_ranks":
        return len(ranks)
    numbers = [n for n in map(as_number, ranks.values() or [value]) if not isinstance(n, Unknown)]
    if not numbers:
        return Unknown(frozenset({fact}), "no rank has a number")
    low, high = min(numbers), max(numbers)
    return {"rank_min": low, "rank_max": high}.get(name, high - low)


def _round(value: float, digits: float = 0) -> float:
    return round(value, int(digits)) if digits else round(value)


_MATH: dict[str, Callable[..., float]] = {
    "min": min, "max": max, "abs": abs, "floor": math.floor, "ceil": math.ceil, "round": _round, "number": lambda x: x,
}  # fmt: skip

_EVALUATE: dict[str, Callable[[Evaluator, Node], Any]] = {
    "n": lambda e, node: node[1],
    "s": lambda e, node: node[1],
    "b": lambda e, node: node[1],
    "none": lambda e, node: None,
    "v": lambda e, node: e.view.value("engine.version"),
    "f": lambda e, node: e.view.value(node[1]),
    "l": lambda e, node: e.let(node[1]),
    "and": _and, "or": _or, "not": _not, "neg": _negative,
    **dict.fromkeys("+-*/", _arithmetic),
    **dict.fromkeys(("==", "!=", "<", ">", "<=", ">="), _compare),
    "~": _search, "!~": _search, "in": _among, "!in": _among, "known": _known, "unknown": _known, "call": _call,
}  # fmt: skip
