"""Translates a shape (one non-recursive grammar rule) into one regular expression with named groups.

A shape is first *expanded*: fragments are inlined, fields become slots. From the expanded tree come the expression, the
literals by which the catalog finds candidates (``literals``) and the Lark text of the reference (``reference``), so
that all three speak of the same language.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeAlias

from analyzer.parsing.regexes import nested_quantifiers, why_not_portable
from analyzer.parsing.syntax import (
    Alt,
    Definition,
    GrammarFile,
    GrammarProblem,
    Literal,
    Node,
    Pattern,
    Ref,
    Repeat,
    Seq,
)
from analyzer.parsing.values import CONVERTERS

BEGIN, END = "BEGIN", "END"
"""Terminals of places: a line break in the grammar (a parser needs something to read), an anchor in the expression."""

_PLACES = {BEGIN: "(?m:^)", END: r"[ \t]*(?m:$)"}
WHOLE = frozenset({"NESTED", "REST_ALL"})
"""Terminals that run to the end of a record, however long it is."""


@dataclass(frozen=True, slots=True)
class Terminal:
    """A terminal as a regular expression, with how its text becomes a value."""

    name: str
    regex: str
    kind: str = "str"
    unit: str = "name"
    scale: float = 1.0
    none: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Slot:
    """The use of a terminal in a shape; ``field`` is empty where its text is not kept."""

    terminal: Terminal
    field: str = ""


Part: TypeAlias = "Literal | Slot | Sequence | Choice | Loop"


@dataclass(frozen=True, slots=True)
class Sequence:
    """One after the other."""

    items: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """One of several, the earlier preferred."""

    options: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Loop:
    """``item`` from ``low`` to ``high`` times (None: without end), greedily. ``?`` and ``[ ]`` are 0 to 1."""

    item: Part
    low: int
    high: int | None


def read_terminals(file: GrammarFile, known: dict[str, Terminal] | None = None) -> dict[str, Terminal]:
    """``known`` and the terminals that ``file`` defines. Wrong ones are reported in ``file.problems`` and left out."""
    terminals = dict(known or {})
    waiting = [definition for definition in file.definitions.values() if definition.is_terminal]
    while waiting:
        later = [d for d in waiting if any(ref in {w.name for w in waiting} for ref in _names(d.body))]
        ready = [d for d in waiting if d not in later]
        for definition in ready or later:
            try:
                if not ready:
                    raise GrammarProblem(definition.line, f"{definition.name} is defined by way of itself")
                terminals[definition.name] = _terminal(definition, terminals)
            except GrammarProblem as problem:
                file.report(problem)
        waiting = later if ready else []
    return terminals


def _names(node: Node) -> list[str]:
    """Names of all rules and terminals that ``node`` uses."""
    if isinstance(node, Ref):
        return [node.name]
    if isinstance(node, Seq):
        return [name for item in node.items for name in _names(item)]
    if isinstance(node, Alt):
        return [name for option in node.options for name in _names(option)]
    return _names(node.item) if isinstance(node, Repeat) else []


def _terminal(definition: Definition, terminals: dict[str, Terminal]) -> Terminal:
    name, line, says = definition.name, definition.line, definition.annotation
    regex = _terminal_regex(definition.body, terminals, line)
    if reason := why_not_portable(regex):
        raise GrammarProblem(line, f"{name}: {reason}")
    if nested_quantifiers(regex):
        raise GrammarProblem(line, f"{name}: a repeat inside a repeat over the same characters can take forever")
    kind, unit = says.get("type", ["str"])[0], says.get("unit", ["name"])[0]
    if kind not in CONVERTERS:
        raise GrammarProblem(line, f"{name}: @type {kind} is unknown; there are {', '.join(CONVERTERS)}")
    return Terminal(name, regex, kind, unit, float(says.get("scale", ["1"])[0]), tuple(says.get("none", ())))


def _terminal_regex(node: Node, terminals: dict[str, Terminal], line: int) -> str:
    if isinstance(node, Pattern):
        return f"(?{node.flags}:{node.regex})" if node.flags else node.regex
    if isinstance(node, Literal):
        return literal_regex(node)
    if isinstance(node, Ref):
        if node.name not in terminals:
            raise GrammarProblem(node.line, f"{node.name} is not defined; terminals are listed in terminals.lark")
        return terminals[node.name].regex
    if isinstance(node, Seq):
        return "".join(_closed(_terminal_regex(item, terminals, line)) for item in node.items)
    if isinstance(node, Alt):
        return "|".join(_terminal_regex(option, terminals, line) for option in node.options)
    return f"(?:{_terminal_regex(node.item, terminals, line)}){_count(node.low, node.high)}"


def _closed(regex: str) -> str:
    return f"(?:{regex})" if "|" in regex else regex


def expand(shape: Definition, file: GrammarFile, terminals: dict[str, Terminal]) -> Part:
    """The shape with fragments inlined and fields as slots. Raises ``GrammarProblem``."""
    return _expand(shape.body, file, terminals, (shape.name,), looped=False)


def _expand(
    node: Node, file: GrammarFile, terminals: dict[str, Terminal], inside: tuple[str, ...], looped: bool
) -> Part:
    line = file.definitions[inside[0]].line
    if isinstance(node, Literal):
        return node
    if isinstance(node, Pattern):
        raise GrammarProblem(line, f"{inside[0]}: /{node.regex}/ in a rule; define a terminal for it and use its name")
    if isinstance(node, Seq):
        return Sequence(tuple(_expand(item, file, terminals, inside, looped) for item in node.items))
    if isinstance(node, Alt):
        return Choice(tuple(_expand(option, file, terminals, inside, looped) for option in node.options))
    if isinstance(node, Repeat):
        many = looped or node.high is None or node.high > 1
        return Loop(_expand(node.item, file, terminals, inside, many), node.low, node.high)
    if node.name in terminals:
        return Slot(terminals[node.name])
    definition = file.definitions.get(node.name)
    if definition is None:
        where = "terminals.lark" if node.name.isupper() else "this file"
        raise GrammarProblem(node.line or line, f"{inside[0]}: {node.name} is not defined in {where}")
    if node.name in inside:
        raise GrammarProblem(node.line, f"{node.name} contains itself; nested values are NESTED, DICT or LIST")
    if node.name.startswith("_"):
        return _expand(definition.body, file, terminals, (*inside, node.name), looped)
    return _field(definition, file, terminals, inside[0], node.line, looped)


def _field(
    definition: Definition, file: GrammarFile, terminals: dict[str, Terminal], shape: str, line: int, looped: bool
) -> Slot:
    body = definition.body
    if not isinstance(body, Ref) or body.name not in terminals:
        if isinstance(body, Ref):
            raise GrammarProblem(definition.line, f"field {definition.name}: there is no terminal {body.name}")
        raise GrammarProblem(
            line, f"{shape} uses {definition.name}, which is no field (one terminal); begin a fragment's name with _"
        )
    if looped:
        raise GrammarProblem(line, f"{shape}: field {definition.name} in a repetition would keep its last value only")
    return Slot(terminals[body.name], definition.name)


def shapes_of(file: GrammarFile) -> list[Definition]:
    """The rules that are message shapes: neither terminals, fragments nor fields."""
    used = {name for definition in file.definitions.values() for name in _names(definition.body)}
    return [
        definition
        for definition in file.definitions.values()
        if not definition.is_terminal
        and not definition.name.startswith("_")
        and not (isinstance(definition.body, Ref) and (definition.name in used or not definition.samples))
        and definition.name not in used
    ]


@dataclass(frozen=True, slots=True)
class Group:
    """One named group of a lowered expression; a field may have several."""

    field: str
    terminal: Terminal


def lower(part: Part) -> tuple[str, list[Group]]:
    """The regular expression of an expanded shape and its groups. A field's later groups are named ``name__2`` …"""
    groups: list[Group] = []
    seen: dict[str, int] = {}

    def write(node: Part) -> str:
        if isinstance(node, Literal):
            return literal_regex(node)
        if isinstance(node, Slot):
            if node.terminal.name in _PLACES:
                return _PLACES[node.terminal.name]
            if not node.field:
                return _closed(node.terminal.regex)
            seen[node.field] = count = seen.get(node.field, 0) + 1
            groups.append(Group(node.field, node.terminal))
            return f"(?P<{node.field}{f'__{count}' if count > 1 else ''}>{node.terminal.regex})"
        if isinstance(node, Sequence):
            return "".join(write(item) if not isinstance(item, Choice) else f"(?:{write(item)})" for item in node.items)
        if isinstance(node, Choice):
            return "|".join(write(option) for option in node.options)
        return f"(?:{write(node.item)}){_count(node.low, node.high)}"

    return write(part), groups


def literal_regex(literal: Literal) -> str:
    """Fixed text as an expression both dialects read alike."""
    escaped = "".join(f"\\{c}" if c in r"\.+*?()|[]{}^$" else c for c in literal.text)
    escaped = escaped.replace("\n", r"\n").replace("\t", r"\t")
    return f"(?i:{escaped})" if literal.any_case else escaped


def _count(low: int, high: int | None) -> str:
    short = {(0, 1): "?", (0, None): "*", (1, None): "+"}
    if (low, high) in short:
        return short[low, high]
    return f"{{{low},{'' if high is None else high}}}" if low != high else f"{{{low}}}"


def check_regex(regex: str, line: int, name: str) -> re.Pattern[str]:
    """The compiled expression of shape ``name``; raises ``GrammarProblem`` if it is unsafe."""
    try:
        compiled = re.compile(regex)
    except re.error as error:
        raise GrammarProblem(line, f"{name}: its expression is wrong ({error}): {regex}") from None
    if nested_quantifiers(regex):
        raise GrammarProblem(line, f"{name}: a repeat inside a repeat over the same characters can take forever")
    return compiled
