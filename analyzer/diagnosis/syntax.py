"""Builds expression nodes while Lark parses (one method for each alternative of ``grammars/rules.lark``)."""

from __future__ import annotations

from typing import Any

from lark import Token, Transformer, v_args

from analyzer.diagnosis.expression import LITERAL_ARGUMENTS, ExpressionError, compile_text_pattern
from analyzer.diagnosis.nodes import Node
from analyzer.diagnosis.units import LITERALS


@v_args(inline=True)
class BuildNodes(Transformer[Token, Any]):
    """Lark calls these bottom-up, without recursion, however deep the text is nested."""

    def or_(self, left: Node, right: Node) -> Node:
        return ["or", left, right]

    def and_(self, left: Node, right: Node) -> Node:
        return ["and", left, right]

    def not_(self, inner: Node) -> Node:
        return ["not", inner]

    def compare(self, left: Node, sign: Token, right: Node) -> Node:
        return [str(sign), left, right]

    def matches(self, left: Node, pattern: Node) -> Node:
        return ["~", left, compile_text_pattern(pattern), pattern]

    def matches_not(self, left: Node, pattern: Node) -> Node:
        return ["!~", left, compile_text_pattern(pattern), pattern]

    def among(self, left: Node, items: list[Node]) -> Node:
        return ["in", left, items]

    def among_not(self, left: Node, items: list[Node]) -> Node:
        return ["!in", left, items]

    def is_known(self, inner: Node) -> Node:
        return ["known", inner]

    def is_unknown(self, inner: Node) -> Node:
        return ["unknown", inner]

    def add(self, left: Node, right: Node) -> Node:
        return ["+", left, right]

    def subtract(self, left: Node, right: Node) -> Node:
        return ["-", left, right]

    def multiply(self, left: Node, right: Node) -> Node:
        return ["*", left, right]

    def divide(self, left: Node, right: Node) -> Node:
        return ["/", left, right]

    def negative(self, inner: Node) -> Node:
        return ["neg", inner]

    def number(self, digits: Token) -> Node:
        return ["n", _value(digits), ""]

    def quantity(self, digits: Token, unit: Token) -> Node:
        factor, name = LITERALS[str(unit)]
        return ["n", _value(digits) * factor, name]

    def text(self, token: Token) -> Node:
        ignore_case = token.endswith("i")
        quote, inner = token[0], token[1 : -2 if ignore_case else -1]
        return ["s", inner.replace("\\" + quote, quote), ignore_case]

    def true(self) -> Node:
        return ["b", True]

    def false(self) -> Node:
        return ["b", False]

    def none(self) -> Node:
        return ["none"]

    def name(self, token: Token) -> Node:
        return ["f", str(token)]

    def call(self, name: Token, arguments: list[Node] | None) -> Node:
        literal = LITERAL_ARGUMENTS.get(str(name), 0)
        given = list(arguments or [])
        for index, argument in enumerate(given[:literal]):
            if argument[0] == "f":
                given[index] = ["s", argument[1], False]
            elif argument[0] != "s":
                raise ExpressionError(f"{name}() takes a name as it stands, not a computed value")
        return ["call", str(name), given]

    def arguments(self, *items: Node) -> list[Node]:
        return [item for item in items if item is not None]

    def list(self, items: list[Node] | None) -> list[Node]:
        return items or []


def _value(digits: str) -> float:
    text = str(digits).replace("_", "")
    return float(text) if any(c in text for c in ".eE") else int(text)
