"""What can be said about a regular expression by looking at it: is it portable, can it take more than linear time?

Works on the tree of Python's own ``re`` parser, at build time only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from re import _parser as regex_parser
from typing import Any

_ASCII = [chr(code) for code in range(9, 127)]
_PORTABLE = {"LITERAL", "NOT_LITERAL", "ANY", "IN", "BRANCH", "SUBPATTERN", "MAX_REPEAT", "MIN_REPEAT", "AT"}


def why_not_portable(regex: str) -> str | None:
    """The reason why ``regex`` is outside the syntax shared by Python's re and Rust's regex, or None."""
    try:
        tree = regex_parser.parse(regex)
    except re.error as error:
        return f"not a regular expression: {error}"
    for operation, argument in _walk(tree):
        name = str(operation)
        if name not in _PORTABLE:
            return f"{name.lower().replace('_', ' ')} is not available (no look-around, back-reference, atomic group)"
        if name == "SUBPATTERN" and argument[0] is not None:
            return "a capturing group; write (?: )"
    if tree.getwidth()[0] == 0:
        return "it can match nothing"
    return None


def is_lazy(regex: str) -> bool:
    """Whether the expression prefers the shorter match (holds ``+?`` or the like)."""
    return any(str(operation) == "MIN_REPEAT" for operation, _ in _walk(regex_parser.parse(regex)))


@lru_cache(maxsize=512)
def unbounded_characters(regex: str) -> frozenset[str]:
    """The ASCII characters of which ``regex`` can take any number in a row."""
    found: set[str] = set()
    for operation, argument in _walk(regex_parser.parse(regex)):
        if _unbounded(operation, argument):
            found.update(_characters(argument[2]))
    return frozenset(found)


def nested_quantifiers(regex: str) -> bool:
    """Whether an unbounded repeat holds another over characters with which the next round may begin."""
    for operation, argument in _walk(regex_parser.parse(regex)):
        if not _unbounded(operation, argument):
            continue
        body = argument[2]
        first = _first(body)
        for inner, inner_argument in _walk(body):
            if _unbounded(inner, inner_argument) and first & _characters(inner_argument[2]):
                return True
    return False


def _unbounded(operation: Any, argument: Any) -> bool:
    return str(operation) in ("MAX_REPEAT", "MIN_REPEAT") and argument[1] is regex_parser.MAXREPEAT


def _walk(tree: Any) -> Iterator[tuple[Any, Any]]:
    """Every operation with its argument, depth first."""
    for operation, argument in tree:
        yield operation, argument
        name = str(operation)
        if name in ("MAX_REPEAT", "MIN_REPEAT"):
            yield from _walk(argument[2])
        elif name == "SUBPATTERN":
            yield from _walk(argument[3])
        elif name == "BRANCH":
            for branch in argument[1]:
                yield from _walk(branch)


def _characters(tree: Any) -> frozenset[str]:
    """The ASCII characters that occur in what ``tree`` matches."""
    found: set[str] = set()
    for operation, argument in _walk(tree):
        found |= _one(operation, argument)
    return frozenset(found)


def _first(tree: Any) -> frozenset[str]:
    """The ASCII characters with which what ``tree`` matches can begin."""
    found: set[str] = set()
    for operation, argument in tree:
        name = str(operation)
        if name == "SUBPATTERN":
            found |= _first(argument[3])
            optional = argument[3].getwidth()[0] == 0
        elif name == "BRANCH":
            for branch in argument[1]:
                found |= _first(branch)
            optional = any(branch.getwidth()[0] == 0 for branch in argument[1])
        elif name in ("MAX_REPEAT", "MIN_REPEAT"):
            found |= _first(argument[2])
            optional = argument[0] == 0
        else:
            found |= _one(operation, argument)
            optional = name == "AT"
        if not optional:
            break
    return frozenset(found)


def _one(operation: Any, argument: Any) -> frozenset[str]:
    """The ASCII characters that one operation on one character takes; none for other operations."""
    name = str(operation)
    if name == "LITERAL":
        return frozenset(chr(argument))
    if name == "NOT_LITERAL":
        return frozenset(c for c in _ASCII if c != chr(argument))
    if name == "ANY":
        return frozenset(c for c in _ASCII if c != "\n")
    if name == "IN":
        negated = bool(argument) and str(argument[0][0]) == "NEGATE"
        taken = {c for c in _ASCII if any(_in_set(c, item) for item in argument)}
        return frozenset(_ASCII) - taken if negated else frozenset(taken)
    return frozenset()


def _in_set(character: str, item: tuple[Any, Any]) -> bool:
    kind, argument = str(item[0]), item[1]
    if kind == "LITERAL":
        return bool(ord(character) == argument)
    if kind == "RANGE":
        return bool(argument[0] <= ord(character) <= argument[1])
    if kind == "CATEGORY":
        category = str(argument)
        word = character.isalnum() or character == "_"
        inside = {"DIGIT": character.isdigit(), "SPACE": character.isspace(), "WORD": word}
        return inside[category.rpartition("_")[2]] != ("NOT" in category)
    return False
