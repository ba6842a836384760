"""The tree of an expression.

A tree is made of JSON lists, so that compiled rules can be cached: ``["+", left, right]``. Its nodes::

    ["n", value, unit]           a number; unit "" when it was written without one
    ["s", text, ignore_case]     a text
    ["b", true]  ["none"]        constants
    ["f", name]  ["l", name]     a fact; a name of the rule's own ``let``
    ["v"]                        the version of the engine
    ["+"|"-"|"*"|"/", a, b]      arithmetic       ["neg", a]
    ["=="|"!="|"<"|…, a, b]      comparison       ["~"|"!~", a, pattern, source]    ["in"|"!in", a, [nodes]]
    ["and"|"or", a, b]  ["not", a]  ["known"|"unknown", a]
    ["call", name, [nodes]]
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

Node: TypeAlias = list[Any]


def depth_of(tree: Node) -> int:
    """Levels of ``tree``; does not recurse."""
    deepest, todo = 0, [(tree, 1)]
    while todo:
        node, depth = todo.pop()
        deepest = max(deepest, depth)
        todo += [(child, depth + 1) for child in node if isinstance(child, list)]
    return deepest


def walk(node: Node) -> Iterator[Node]:
    """``node`` and every node under it, outermost first."""
    yield node
    for child in children(node):
        yield from walk(child)


def children(node: Node) -> list[Node]:
    """The nodes right under ``node``."""
    match node[0]:
        case "n" | "s" | "b" | "none" | "f" | "l" | "v":
            return []
        case "~" | "!~":
            return [node[1]]
        case "in" | "!in":
            return [node[1], *node[2]]
        case "call":
            return list(node[2])
    return list(node[1:])
