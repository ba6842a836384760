"""From the text of an expression to its tree, through the Lark grammar ``grammars/rules.lark``.

Lark is imported only here and only when something has to be parsed.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from analyzer.diagnosis.nodes import Node, depth_of
from analyzer.diagnosis.patterns import PatternError, compile_pattern
from analyzer.diagnosis.units import LITERALS

if TYPE_CHECKING:
    from lark import Lark

MAX_TEXT = 4_000
"""Characters of one expression."""
MAX_DEPTH = 60
"""Levels of one expression's tree: far beyond any rule, far below Python's recursion limit."""
LITERAL_ARGUMENTS = {"seen": 1, "count": 1, "field": 2, "series": 1}
"""Functions whose first arguments are names taken as they stand (kinds, fields, series), not facts."""


class ExpressionError(ValueError):
    """An expression that cannot be used; the text says why, in a sentence's words."""


def parse(text: str, lets: frozenset[str] = frozenset()) -> Node:
    """The tree of ``text``. ``lets`` are the names that the rule defines itself. Raises ``ExpressionError``."""
    from lark.exceptions import LarkError, UnexpectedCharacters, UnexpectedEOF, UnexpectedToken, VisitError

    if len(text) > MAX_TEXT:
        raise ExpressionError(f"an expression of {len(text):,} characters is too long (at most {MAX_TEXT:,})")
    try:
        tree: Node = _parser().parse(text)  # type: ignore[assignment]  # the transformer builds nodes, not trees
    except (ExpressionError, PatternError) as error:
        raise ExpressionError(str(error)) from None
    except VisitError as error:
        raise ExpressionError(str(error.orig_exc)) from None
    except UnexpectedEOF:
        raise ExpressionError(f"{_shorten(text)} ends too early") from None
    except UnexpectedToken as error:
        if error.token.type == "$END":
            raise ExpressionError(f"{_shorten(text)} ends too early") from None
        place = f"{str(error.token)!r} at column {error.column}"
        raise ExpressionError(f"{place} is out of place in {_shorten(text)}") from None
    except UnexpectedCharacters as error:
        at = error.pos_in_stream or 0
        bad = text[at : at + 1]
        raise ExpressionError(f"{bad!r} at column {error.column} is out of place in {_shorten(text)}") from None
    except LarkError as error:
        raise ExpressionError(f"{_shorten(text)} cannot be read: {error}") from None
    if depth_of(tree) > MAX_DEPTH:
        raise ExpressionError(f"{_shorten(text)} is nested more than {MAX_DEPTH} levels deep")
    return _resolve(tree, lets)


_RANKS = {
    "or": 1, "and": 2, "not": 3, "+": 5, "-": 5, "*": 6, "/": 6, "neg": 7,
    **dict.fromkeys(("==", "!=", "<", ">", "<=", ">=", "~", "!~", "in", "!in", "known", "unknown"), 4),
}  # fmt: skip


def render(node: Node, outer: int = 0) -> str:
    """``node`` as the text that parses to it."""
    rank = _RANKS.get(node[0], 9)
    match node:
        case ["n", value, unit]:
            return _number(value, unit)
        case ["s", text, ignore_case]:
            text = '"' + text.replace('"', '\\"') + '"' + ("i" if ignore_case else "")
        case ["b", value]:
            text = "true" if value else "false"
        case ["none"]:
            text = "none"
        case ["v"]:
            text = "version"
        case ["f", name] | ["l", name]:
            text = name
        case ["call", name, arguments]:
            literal = LITERAL_ARGUMENTS.get(name, 0)
            words = [a[1] if i < literal and a[0] == "s" else render(a) for i, a in enumerate(arguments)]
            text = f"{name}({', '.join(words)})"
        case ["not", inner]:
            text = f"not {render(inner, rank)}"
        case ["neg", inner]:
            text = f"-{render(inner, rank)}"
        case ["known" | "unknown" as word, inner]:
            text = f"{render(inner, rank + 1)} is {word}"
        case ["~" | "!~" as word, inner, _, source]:
            text = f"{render(inner, rank + 1)} {word} {render(source)}"
        case ["in" | "!in" as word, inner, items]:
            text = f"{render(inner, rank + 1)} {'in' if word == 'in' else 'not in'} [{', '.join(map(render, items))}]"
        case [word, left, right]:
            chains = word in ("and", "or", "+", "-", "*", "/")
            text = f"{render(left, rank if chains else rank + 1)} {word} {render(right, rank + 1)}"
        case _:
            raise ValueError(f"no node: {node!r}")
    return f"({text})" if rank < outer else text


def _number(value: float, unit: str) -> str:
    if unit == "bytes" and value >= 1024:
        for name in ("TiB", "GiB", "MiB", "KiB"):
            if value >= LITERALS[name][0]:
                return f"{value / LITERALS[name][0]:.12g} {name}"
    if unit == "fraction":
        return f"{value * 100:.12g}%"
    written = {"bytes_per_token": "bytes/token", "bytes_per_slot": "bytes/slot", "bytes_per_block": "bytes/block",
               "tokens_per_block": "tokens/block", "seconds": "s", "rate": "tokens/s"}.get(unit, unit)  # fmt: skip
    return f"{value:.12g} {written}".rstrip()


def _shorten(text: str) -> str:
    flat = " ".join(text.split())
    return repr(flat if len(flat) <= 80 else flat[:77] + "...")


def _resolve(tree: Node, lets: frozenset[str]) -> Node:
    """``tree`` with the rule's own names and ``version`` told apart from facts."""
    if tree[0] == "f":
        if tree[1] == "version":
            return ["v"]
        return ["l", tree[1]] if tree[1] in lets else tree
    match tree[0]:
        case "n" | "s" | "b" | "none":
            return tree
        case "~" | "!~":
            return [tree[0], _resolve(tree[1], lets), *tree[2:]]
        case "in" | "!in":
            return [tree[0], _resolve(tree[1], lets), [_resolve(item, lets) for item in tree[2]]]
        case "call":
            return [tree[0], tree[1], [_resolve(item, lets) for item in tree[2]]]
    return [tree[0], *(_resolve(part, lets) for part in tree[1:])]


@lru_cache(maxsize=1)
def _parser() -> Lark:
    from lark import Lark

    from analyzer.diagnosis.syntax import BuildNodes
    from analyzer.resources import data_dir

    grammar = (data_dir("grammars") / "rules.lark").read_text(encoding="utf-8")
    return Lark(grammar, parser="lalr", lexer="contextual", transformer=BuildNodes(), propagate_positions=False)


def compile_text_pattern(node: Node) -> Any:
    """The compiled form of a pattern node's text."""
    return compile_pattern(node[1], ignore_case=bool(node[2]))
