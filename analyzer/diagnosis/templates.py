"""Texts with ``{expression}`` in them: parsed when a rule is compiled, filled with values and their units later."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from analyzer.diagnosis.evaluate import Unknown, as_number
from analyzer.diagnosis.nodes import Node
from analyzer.units import show

if TYPE_CHECKING:
    from analyzer.diagnosis.check import Scope

_HOLE = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
_FORMAT = re.compile(r":\s*(,?(?:\.\d{1,2})?[fgeds%]?)$")
MAX_SHOWN = 300
"""Characters of one value in a text: a message read from a log may be long."""


def compile_template(text: str, scope: Scope) -> list[Any]:
    """The parts of ``text``: plain texts, and ``[node, unit, format]``. Raises ``ExpressionError``."""
    from analyzer.diagnosis.check import infer
    from analyzer.diagnosis.expression import ExpressionError, parse

    parts: list[Any] = []
    at = 0
    for hole in _HOLE.finditer(text):
        parts.append(text[at : hole.start()])
        at = hole.end()
        if hole[0] in ("{{", "}}"):
            parts.append(hole[0][0])
            continue
        if hole[1] is None or not hole[1].strip():
            raise ExpressionError(f"{hole[0]!r} in a text opens or closes nothing (write {{{{ and }}}} for braces)")
        inner, spec = hole[1], ""
        if match := _FORMAT.search(inner):
            inner, spec = inner[: match.start()], match[1]
        node = parse(inner, frozenset(scope.lets))
        kind = infer(node, scope)
        parts.append([node, kind.label or kind.kind, spec])
    parts.append(text[at:])
    return [p for p in parts if p != ""]


def fill(parts: list[Any], value_of: Callable[[Node], Any]) -> str:
    """The text with every hole filled by ``value_of(node)``."""
    text = "".join(part if isinstance(part, str) else _shown(value_of(part[0]), part[1], part[2]) for part in parts)
    return text.replace("….", "…")


def plain(parts: list[Any]) -> str:
    """The text with its holes as they were written, for documentation."""
    from analyzer.diagnosis.expression import render

    return "".join(p if isinstance(p, str) else "{" + render(p[0]) + (f":{p[2]}" if p[2] else "") + "}" for p in parts)


def _shown(value: Any, unit: str, spec: str) -> str:
    if isinstance(value, Unknown):
        return "unknown"
    if spec and spec != "s":
        number = as_number(value)
        if isinstance(number, Unknown):
            return str(value)[:MAX_SHOWN]
        text = format(int(number) if spec.endswith("d") else float(number), spec)
        return f"{text[:-1]} %" if spec.endswith("%") else text
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))[:MAX_SHOWN]
    text = show(value, unit)
    if "\n" in text:  # a message of several lines: its first says what, the others advise
        text = next((line for line in text.splitlines() if line.strip()), "").strip()
    if len(text) <= MAX_SHOWN:
        return text
    whole = text.rfind(". ", MAX_SHOWN // 2, MAX_SHOWN)  # rather whole sentences; the line itself is quoted as proof
    return text[:whole] if whole > 0 else text[: MAX_SHOWN - 1] + "…"
