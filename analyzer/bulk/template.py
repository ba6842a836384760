"""From one line and its match to the expression of all lines that differ from it in their figures alone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from analyzer.framing.plain import Plain
from analyzer.parsing.shape import Shape
from analyzer.run.series import METRICS

COLUMNS = frozenset(METRICS) | {"retracted", "emitted", "draft_tokens"}
"""Fields that the folding of a run looks at in every line."""
GREATEST = (1 << 63) - 1
"""No column holds a greater whole number."""
POSITIONS = "positions"
"""Field with a list of rates: acceptance by position of the draft."""

_SGLANG_STAMP = r"[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}"
_VLLM_STAMP = r"[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}"
_RANKS = r"((?: [A-Z][A-Z_]*[0-9]+)+)"
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?")
_INT, _FLOAT = r"[0-9]+", r"[0-9]+\.[0-9]+"
_NAME = re.compile(r"[0-9A-Za-z_.:/-]+")
_RATES = re.compile(r"[0-9]+\.[0-9]+(?:, [0-9]+\.[0-9]+)*")
_CLIENT = r"[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}:[0-9]{1,5}"
_ANSWER = rf'{_CLIENT} - "([A-Z]+ [^" ]+ HTTP/[0-9.]+" [0-9]{{3}}[A-Za-z ]*)'
ANSWER = re.compile(_ANSWER)
"""An access line's message; its group is everything from the method on."""
ACCESS = "http_access"


@dataclass(frozen=True, slots=True)
class Column:
    """A group of a template: the field it holds, the type of its terminal, and the factor to base units.

    ``rates`` is a list of rates of which the sum counts.
    """

    name: str
    kind: str = "str"
    scale: float = 1.0


_REQUEST = (
    rf'({_CLIENT}) - "([A-Z]+) ([^" ]+) HTTP/[0-9.]+" ([0-9]{{3}})[A-Za-z ]*',
    [Column("client"), Column("method"), Column("path"), Column("status", "int")],
)


@dataclass(frozen=True, slots=True)
class Template:
    """All lines of one kind and form.

    ``expression`` is anchored at both ends and written in what Python's and Rust's expressions have in common. Its
    groups are the stamp (where ``stamped``), the rank tags (where ``ranked``) and then ``columns``, each present in
    every line that matches. Of an access line the only column is ``answer``, everything from the method on, unless
    the template was learnt with ``every`` field.
    """

    kind: str
    engine: str
    expression: str
    columns: tuple[Column, ...]
    ranked: bool
    rank: str
    pid: int | None
    stamped: bool = False
    dated: bool = False
    """Whether the stamp has a year (SGLang's)."""
    process: str = ""


def learn(plain: Plain, line: str, shape: Shape, match: re.Match[str], every: bool = False) -> Template | None:
    """The template of ``line``, whose text ``match`` recognised as ``shape``; None if there is no safe one.

    ``every``: with all fields and the stamp, not only what the folding of a run looks at.
    """
    prefix = _prefix(plain, line, every)
    if prefix is None or match.start():
        return None
    record = plain.record
    ranked = plain.ranks[0] < plain.ranks[1]
    if shape.kind == ACCESS:
        if ANSWER.fullmatch(record.text) is None:
            return None
        body, columns = _REQUEST if every else (_ANSWER, [Column("answer")])
    else:
        found = _body(shape, match, record.text, every)
        if found is None:
            return None
        body, columns = found
    expression = f"{prefix}{body}$"
    stamped = every and plain.stamp != (0, 0)
    return Template(
        shape.kind, shape.engine, expression, tuple(columns), ranked, record.rank, record.pid,
        stamped, line[:1] == "[", record.process,
    )  # fmt: skip


def _prefix(plain: Plain, line: str, stamped: bool) -> str | None:
    """The expression of everything before the message: another time, another rank tag of SGLang, the rest the same."""
    begin, end = plain.stamp
    if line[:1] == "[":
        if end - begin != len("2026-11-30 00:00:00"):
            return None
        stamp = f"({_SGLANG_STAMP})" if stamped else _SGLANG_STAMP
        ranks = _RANKS if plain.ranks[0] < plain.ranks[1] else ""
        return rf"^\[{stamp}{ranks}{re.escape(line[plain.ranks[1] : plain.start])}"
    if begin == end:
        return f"^{re.escape(line[: plain.start])}"
    if end - begin != len("11-30 00:00:00"):
        return None
    stamp = f"({_VLLM_STAMP})" if stamped else _VLLM_STAMP
    return f"^{re.escape(line[:begin])}{stamp}{re.escape(line[end : plain.start])}"


def _body(shape: Shape, match: re.Match[str], text: str, every: bool) -> tuple[str, list[Column]] | None:
    out: list[str] = []
    columns: dict[str, Column] = {}
    at = 0
    for number, (name, kind, scale) in enumerate(shape.fields, 1):
        begin, end = match.span(number)
        if begin < 0:
            continue
        if begin < at:
            return None
        value = text[begin:end]
        expression = _group(kind, value)
        if expression is None:
            if name == POSITIONS and _RATES.fullmatch(value):
                count = value.count(",")
                expression = rf"([0-9]+\.[0-9]+(?:, [0-9]+\.[0-9]+){{{count}}})"
                columns[name] = Column(name, "str" if every else "rates")
            elif kind == "str" and _NAME.fullmatch(value):
                expression = re.escape(value) if _fixed(value) else "[0-9A-Za-z_.:/-]+"
                if every:
                    columns[name] = Column(name)
                    expression = f"({expression})"
            else:
                return None
        elif every or (name in COLUMNS and kind in ("int", "float")):
            if name in columns:
                return None
            columns[name] = Column(name, kind, scale)
            expression = f"({expression})"
        out += (re.escape(text[at:begin]), expression if expression[0] == "(" else f"(?:{expression})")
        at = end
    out += _figures_free(text[at:])
    return "".join(out), list(columns.values())


def _group(kind: str, value: str) -> str | None:
    """The expression of a figure of the same form as ``value``; None for what is no plain figure."""
    if kind in ("int", "float"):
        for expression in (_INT, _FLOAT)[: 1 + (kind == "float")]:
            if re.fullmatch(expression, value):
                return expression
        return None
    return "True|False" if kind == "bool" and value in ("True", "False") else None


def _fixed(value: str) -> bool:
    """Whether a name is one of few (a device, a mode), not an identifier that differs from line to line."""
    return not any(map(str.isdigit, value))


def _figures_free(text: str) -> Iterator[str]:
    """What the shape leaves over, with any figures in place of its own."""
    at = 0
    for number in _NUMBER.finditer(text):
        yield re.escape(text[at : number.start()])
        yield r"[0-9]+\.[0-9]+" if "." in number[0] else "[0-9]+"
        at = number.end()
    yield re.escape(text[at:])
