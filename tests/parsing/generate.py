"""Random messages of a shape, for the property tests: random alternatives, random text for each terminal."""

from __future__ import annotations

import re
from random import Random
from re import _parser as regex_parser
from typing import Any

from analyzer.parsing.lower import BEGIN, END, Choice, Loop, Part, Sequence, Terminal
from analyzer.parsing.syntax import Literal

_ODD = list("0aZ_ .,:;=/-'\"()[]{}<>%#@|\\é日\t")
_TELLING = [
    "12",
    "-1",
    "1,024",
    "0.5",
    "1e-05",
    "None",
    "True",
    "a, b",
    "GB",
    "tokens: 5",
    " - ",
    "x=1",
    "torch.int8",
    "a b",
]


def message(part: Part, random: Random) -> str:
    """A text that ``part`` matches."""
    if isinstance(part, Literal):
        return part.text.swapcase() if part.any_case and random.random() < 0.5 else part.text
    if isinstance(part, Sequence):
        return "".join(message(item, random) for item in part.items)
    if isinstance(part, Choice):
        return message(random.choice(part.options), random)
    if isinstance(part, Loop):
        most = part.low + 2 if part.high is None else part.high
        return "".join(message(part.item, random) for _ in range(random.randint(part.low, most)))
    return terminal_text(part.terminal, random)


def terminal_text(terminal: Terminal, random: Random) -> str:
    """A text that the terminal matches; a place (line start, line end) has none."""
    if terminal.name in (BEGIN, END):
        return ""
    if random.random() < 0.3:
        text = random.choice(_TELLING)
        if re.fullmatch(terminal.regex, text):
            return text
    return _text(regex_parser.parse(terminal.regex), random)


def _text(tree: Any, random: Random) -> str:
    return "".join(_piece(str(operation), argument, random) for operation, argument in tree)


def _piece(operation: str, argument: Any, random: Random) -> str:
    if operation == "LITERAL":
        return chr(argument)
    if operation in ("NOT_LITERAL", "ANY", "IN"):
        return random.choice(_choices(operation, argument))
    if operation == "SUBPATTERN":
        return _text(argument[3], random)
    if operation == "BRANCH":
        return _text(random.choice(argument[1]), random)
    low, high, body = argument
    most = min(high, low + 4) if high is not regex_parser.MAXREPEAT else low + 4
    return "".join(_text(body, random) for _ in range(random.randint(low, most)))


def _choices(operation: str, argument: Any) -> list[str]:
    if operation != "IN":
        unwanted = "\n" if operation == "ANY" else chr(argument)
        return [c for c in _ODD if c != unwanted]
    found: list[str] = []
    for kind, value in argument:
        if str(kind) == "LITERAL":
            found.append(chr(value))
        elif str(kind) == "RANGE":
            found += [chr(value[0]), chr(value[1])]
    negated = str(argument[0][0]) == "NEGATE"
    spaces = any(str(kind) == "CATEGORY" and str(value) == "CATEGORY_SPACE" for kind, value in argument)
    if negated:
        return [c for c in _ODD if c not in found and not (spaces and c.isspace())]
    inside = [c for c in _ODD if any(str(kind) == "CATEGORY" and _fits(str(value), c) for kind, value in argument)]
    return [*found, *inside]


def _fits(category: str, character: str) -> bool:
    wanted = {"DIGIT": character.isdigit(), "SPACE": character.isspace(), "WORD": character.isalnum()}
    return wanted[category.rpartition("_")[2]] != ("NOT" in category)
