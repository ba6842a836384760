"""Types and units of an expression, checked when a rule is compiled, so that no rule fails while it runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from analyzer.diagnosis.expression import ExpressionError, render
from analyzer.diagnosis.nodes import Node, children
from analyzer.diagnosis.units import (
    ANY,
    BOOL,
    LIST,
    NAME,
    VERSION,
    Type,
    UnitError,
    describe,
    multiply,
    number_literal,
    type_of,
    unify,
)
from analyzer.diagnosis.versions import parse_version
from analyzer.run.vocabulary import spec_of

FUNCTIONS: dict[str, tuple[int, int]] = {
    "min": (2, 9), "max": (2, 9), "abs": (1, 1), "floor": (1, 1), "ceil": (1, 1), "round": (1, 2),
    "known": (1, 1), "default": (2, 2), "choose": (3, 3), "spread": (1, 1), "rank_min": (1, 1), "rank_max": (1, 1),
    "count_ranks": (1, 1), "lower": (1, 1), "contains": (2, 2), "length": (1, 1), "seen": (1, 1), "count": (1, 1),
    "field": (2, 2), "series": (1, 1), "calibrated": (1, 1), "number": (1, 1),
}  # fmt: skip
"""Function -> least and most arguments."""
FACT_FUNCTIONS = ("spread", "rank_min", "rank_max", "count_ranks", "calibrated")
"""Functions whose argument must be a fact."""


@dataclass(slots=True)
class Scope:
    """What names mean in a rule: the vocabulary, the rule's own ``let`` names, and open prefixes such as ``event.``."""

    lets: Mapping[str, Type] = field(default_factory=dict)
    open_prefixes: tuple[str, ...] = ()

    def fact(self, name: str) -> Type:
        """The type of the fact ``name``. Raises ``ExpressionError``."""
        if name.startswith(self.open_prefixes) and self.open_prefixes:
            return ANY
        try:
            return type_of(spec_of(name).unit)
        except KeyError:
            known = "neither a fact of the vocabulary nor a name of this rule's let"
            raise ExpressionError(f"{name!r} is {known}{_near(name)}") from None


def infer(node: Node, scope: Scope) -> Type:
    """The type of ``node``. Raises ``ExpressionError`` where units or kinds do not go together."""
    try:
        return _infer(node, scope)
    except UnitError as error:
        raise ExpressionError(f"{render(node)}: {error}") from None


def boolean(node: Node, scope: Scope) -> None:
    """Demands that ``node`` is true or false. Raises ``ExpressionError``."""
    kind = infer(node, scope)
    if kind.kind not in ("bool", "any"):
        raise ExpressionError(f"{render(node)} is {describe(kind)}, not a condition")


def unguarded(node: Node) -> Iterator[str]:
    """Facts that ``node`` cannot do without: those not under ``default``, ``known`` or ``is known``."""
    if node[0] == "f":
        yield node[1]
    elif node[0] in ("known", "unknown") or (node[0] == "call" and node[1] in ("known", "calibrated")):
        return
    elif node[0] == "call" and node[1] == "default":
        yield from unguarded(node[2][1])
    else:
        for child in children(node):
            yield from unguarded(child)


def _infer(node: Node, scope: Scope) -> Type:
    match node:
        case ["n", value, unit]:
            return type_of(unit) if unit else number_literal(value)
        case ["s", *_]:
            return NAME
        case ["b", _]:
            return BOOL
        case ["none"]:
            return ANY
        case ["v"]:
            return VERSION
        case ["f", name]:
            return scope.fact(name)
        case ["l", name]:
            return scope.lets[name]
        case ["+" | "-" as sign, left, right]:
            a, b = infer(left, scope), infer(right, scope)
            _numbers(node, a, b)
            return unify(a, b, "adds" if sign == "+" else "subtracts")
        case ["*" | "/" as sign, left, right]:
            return multiply(infer(left, scope), infer(right, scope), 1 if sign == "*" else -1)
        case ["neg", inner]:
            kind = infer(inner, scope)
            _numbers(node, kind)
            return kind
        case ["and" | "or", left, right]:
            boolean(left, scope)
            boolean(right, scope)
            return BOOL
        case ["not", inner]:
            boolean(inner, scope)
            return BOOL
        case ["known" | "unknown", inner]:
            infer(inner, scope)
            return BOOL
        case ["~" | "!~", left, _, _]:
            kind = infer(left, scope)
            if kind.kind not in ("name", "any", "list"):
                raise ExpressionError(f"{render(node)} searches in {describe(kind)}: only names can be searched")
            return BOOL
        case ["in" | "!in", left, items]:
            if not items:
                raise ExpressionError(f"{render(node)} has an empty list")
            for item in items:
                if item[0] not in ("n", "s", "b", "none"):
                    raise ExpressionError(f"{render(node)}: a list holds constants only")
                _comparable(node, "==", left, item, scope)
            return BOOL
        case ["call", name, arguments]:
            return _call(node, name, arguments, scope)
        case [sign, left, right]:
            _comparable(node, sign, left, right, scope)
            return BOOL
    raise ExpressionError(f"no node: {node!r}")


def _comparable(node: Node, sign: str, left: Node, right: Node, scope: Scope) -> None:
    a, b = infer(left, scope), infer(right, scope)
    if "version" in (a.kind, b.kind):
        if left[0] != "v" or right[0] != "s":
            raise ExpressionError(f'{render(node)}: write the version first, its bound as a text: version >= "0.5.14"')
        try:
            parse_version(right[1])
        except ValueError as error:
            raise ExpressionError(f"{render(node)}: {error}") from None
        return
    common = unify(a, b, "compares")
    if sign not in ("==", "!=") and common.kind not in ("number", "any"):
        raise ExpressionError(f"{render(node)}: {describe(common)} has no order")


def _numbers(node: Node, *kinds: Type) -> None:
    for kind in kinds:
        if kind.kind not in ("number", "any"):
            raise ExpressionError(f"{render(node)} computes with {describe(kind)}")


def _call(node: Node, name: str, arguments: list[Node], scope: Scope) -> Type:
    if name not in FUNCTIONS:
        raise ExpressionError(f"there is no function {name!r} (there are: {', '.join(sorted(FUNCTIONS))})")
    least, most = FUNCTIONS[name]
    if not least <= len(arguments) <= most:
        wanted = str(least) if least == most else f"{least} to {most}"
        raise ExpressionError(f"{name}() takes {wanted} argument{'s' if most > 1 else ''}, not {len(arguments)}")
    if name in FACT_FUNCTIONS and arguments[0][0] != "f":
        raise ExpressionError(f"{name}() takes a fact's name, not {render(arguments[0])}")
    if name in ("seen", "count", "field", "series"):
        return {"seen": BOOL, "count": type_of("count")}.get(name, ANY)
    kinds = [infer(argument, scope) for argument in arguments]
    match name:
        case "min" | "max":
            _numbers(node, *kinds)
            common = kinds[0]
            for kind in kinds[1:]:
                common = unify(common, kind, f"takes the {name} of")
            return common
        case "default":
            return unify(kinds[0], kinds[1], "falls back between")
        case "choose":
            boolean(arguments[0], scope)
            return unify(kinds[1], kinds[2], "chooses between")
        case "abs" | "floor" | "ceil" | "round":
            _numbers(node, *kinds)
            return kinds[0]
        case "spread" | "rank_min" | "rank_max":
            _numbers(node, kinds[0])
            return kinds[0]
        case "known" | "calibrated":
            return BOOL
        case "count_ranks" | "length":
            return type_of("count")
        case "lower":
            return NAME
        case "number":
            return ANY
        case "contains":
            if kinds[0].kind not in (LIST.kind, NAME.kind, ANY.kind):
                raise ExpressionError(f"{render(node)}: contains() looks into a list or name, not {describe(kinds[0])}")
            return BOOL
    raise ExpressionError(f"there is no function {name!r}")


def _near(name: str) -> str:
    from difflib import get_close_matches

    from analyzer.run.vocabulary import VOCABULARY

    close = get_close_matches(name, VOCABULARY, 2, 0.7)
    return f" (near: {', '.join(close)})" if close else ""
