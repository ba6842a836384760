"""The reference for lowered expressions: Lark's Earley parser of the same rule, for tests.

The grammar text of the shape's file is given to Lark again with two mechanical changes. Every group gets a rule of its
own (``[a] [b] [c]`` would otherwise be multiplied out to eight alternatives), and lazy repeats are written greedily
(Lark's complete lexer finds all shorter matches of a terminal by itself). Of all ways to read a text the parser's
forest holds, the one is taken that the grammars' README promises: leftmost; earlier alternatives and present optional
parts first; ``TEXT`` and ``PHRASE`` short, every other terminal long.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analyzer import resources
from analyzer.events import Event
from analyzer.framing.record import Record
from analyzer.parsing.lower import BEGIN
from analyzer.parsing.regexes import is_lazy
from analyzer.parsing.syntax import Alt, Definition, Literal, Node, Pattern, Ref, Repeat, Seq, read_grammar
from analyzer.parsing.table import TERMINALS

if TYPE_CHECKING:
    from lark import Lark
    from lark.parsers.earley_forest import ForestNode

    from analyzer.parsing.shape import Shape

_BEFORE, _AFTER = "TEXT_BEFORE__", "TEXT_AFTER__"
_FRAME = f"""
at_start: shape__ [{_AFTER}]
further: {_BEFORE} shape__ [{_AFTER}]
{_BEFORE}: /[\\s\\S]+/
{_AFTER}: /[\\s\\S]+/
"""

Reading = tuple[tuple[int, ...], tuple[tuple[str, str], ...]]
"""One way to read a text: its rank (smaller is preferred) and the fields' texts in order."""


class Reference:
    """Lark's parser of one shape."""

    def __init__(self, shape: Shape, definitions: dict[str, Definition]) -> None:
        self.shape = shape
        self.grammar = _Writer(definitions).grammar(shape.kind)
        self._anchored = re.search(rf"\b{BEGIN}\b", self.grammar) is not None
        self._lazy = {name for name, definition in definitions.items() if _lazy(definition.body)} | {_BEFORE}
        self._fields = set(shape.units)
        self._parsers: dict[str, Lark] = {}

    def match(self, record: Record) -> Event | None:
        """The event of ``record``, or None: equal to that of the shape's expression."""
        texts = self.texts(record.text)
        return None if texts is None else self.shape.event_of(texts, record)

    def texts(self, text: str) -> dict[str, str] | None:
        """The fields' texts in ``text``, or None if the shape is not in it."""
        from lark.exceptions import UnexpectedInput

        # BEGIN and END are line breaks in the grammar, so that a text's ends have one too
        stream = f"\n{text}\n" if self._anchored else f"{text}\n"
        for start in ("at_start", "further"):
            try:
                forest: Any = self._parser(start).parse(stream)
            except UnexpectedInput:
                continue
            return dict(self._best(forest, {})[1])
        return None

    def _parser(self, start: str) -> Lark:
        if start not in self._parsers:
            from lark import Lark

            options: Any = {"parser": "earley", "lexer": "dynamic_complete", "ambiguity": "forest"}
            self._parsers[start] = Lark(self.grammar, start=start, maybe_placeholders=False, **options)
        return self._parsers[start]

    def _best(self, node: ForestNode | None, known: dict[int, Reading]) -> Reading:
        """The preferred reading below a node of the parse forest."""
        from lark.parsers.earley_forest import PackedNode, SymbolNode, TokenNode

        if node is None:
            return (), ()
        if isinstance(node, TokenNode):
            length = len(node.token)
            return (length if node.token.type in self._lazy else -length,), ()
        if isinstance(node, PackedNode):
            left, right = self._best(node.left, known), self._best(node.right, known)
            return left[0] + right[0], left[1] + right[1]
        assert isinstance(node, SymbolNode)
        if id(node) not in known:
            ways = []
            for packed in node.children:
                rank, fields = self._best(packed, known)
                if not node.is_intermediate:
                    rank = (packed.rule.order, *rank)
                    name = packed.rule.origin.name
                    if name in self._fields:
                        fields = ((str(name), str(packed.right.token)),)
                ways.append((rank, fields))
            known[id(node)] = min(ways)
        return known[id(node)]


def _lazy(node: Node) -> bool:
    return isinstance(node, Pattern) and is_lazy(node.regex)


class _Writer:
    """Writes definitions as Lark text in which every group is a rule of its own."""

    def __init__(self, definitions: dict[str, Definition]) -> None:
        self._definitions = definitions
        self._lines: list[str] = []
        self._wanted: list[str] = []
        self._groups = 0

    def grammar(self, kind: str) -> str:
        """A complete grammar for the shape ``kind``; with ``_FRAME`` around it."""
        self._lines = [_FRAME, f"shape__: {kind}"]
        self._wanted = [kind]
        for name in self._wanted:  # grows while it is walked
            definition = self._definitions[name]
            if definition.is_terminal:
                self._lines.append(f"{name}: {self._terminal(definition.body)}")
            else:
                self._lines.append(f"{name}: {self._rule(definition.body)}")
        return "\n".join(self._lines) + "\n"

    def _name(self, node: Ref) -> str:
        if node.name not in self._wanted:
            self._wanted.append(node.name)
        return node.name

    def _terminal(self, node: Node) -> str:
        if isinstance(node, Pattern):
            greedy = re.sub(r"(?<!\\)([+*}])\?", r"\1", node.regex)
            return f"/{greedy.replace('/', chr(92) + '/')}/{node.flags}"
        if isinstance(node, Seq):
            return " ".join(self._terminal(item) for item in node.items)
        if isinstance(node, Alt):
            return "(" + " | ".join(self._terminal(option) for option in node.options) + ")"
        if isinstance(node, Repeat):
            many = f"~ {node.low}..{node.high}" if node.high is not None else "+" if node.low else "*"
            return f"({self._terminal(node.item)}) {many}"
        return self._leaf(node)

    def _leaf(self, node: Literal | Ref) -> str:
        if isinstance(node, Ref):
            return self._name(node)
        return json.dumps(node.text, ensure_ascii=False) + ("i" if node.any_case else "")

    def _rule(self, node: Node) -> str:
        """The right side of a rule."""
        return " | ".join(self._part(o) for o in node.options) if isinstance(node, Alt) else self._part(node)

    def _part(self, node: Node) -> str:
        if isinstance(node, Seq):
            return " ".join(self._part(item) for item in node.items)
        if isinstance(node, Alt):
            return self._group(self._rule(node))
        if isinstance(node, Repeat):
            return self._repeat(node)
        assert not isinstance(node, Pattern)
        return self._leaf(node)

    def _repeat(self, node: Repeat) -> str:
        item = self._group(self._rule(node.item))
        if node.high is None:
            self._groups += 1
            more = f"_group_{self._groups}"
            self._lines.append(f"{more}: {item} {more} | ")
        else:
            more = ""
            for _ in range(node.high - node.low):
                more = self._group(f"{item} {more} | ")
        return " ".join([*[item] * node.low, more])

    def _group(self, right: str) -> str:
        self._groups += 1
        name = f"_group_{self._groups}"
        self._lines.append(f"{name}: {right}")
        return name


@lru_cache(maxsize=64)
def _definitions(folder: Path, file: str) -> dict[str, Definition]:
    base = read_grammar((folder / TERMINALS).read_text(encoding="utf-8"), TERMINALS)
    own = read_grammar((folder / file).read_text(encoding="utf-8"), file)
    return {**base.definitions, **own.definitions}


def reference_of(folder: Path | None, shape: Shape) -> Reference:
    """The reference of ``shape``, whose file lies in the grammar folder ``folder`` (default: the shipped one)."""
    file = shape.place.rpartition(":")[0]
    return Reference(shape, _definitions(folder or resources.data_dir("grammars"), file))
