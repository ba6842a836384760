"""From one line and its match to the template of all lines that differ from it in their figures alone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from analyzer.bulk.cursor import DIGIT, MOST_DIGITS, telling
from analyzer.bulk.tokens import END, NOTHING, Column, Dotted, Figure, Fixed, Span, Tail, Token, Truth
from analyzer.framing.plain import Plain
from analyzer.parsing.shape import Shape
from analyzer.run.series import METRICS

ENGINE = "engine_index"
COLUMNS = frozenset(METRICS) | {"retracted", "emitted", "draft_tokens", ENGINE}
"""Fields that the folding of a run looks at in every line."""
GREATEST = (1 << 63) - 1
"""No column holds a greater whole number."""
POSITIONS = "positions"
"""Field with a list of rates: acceptance by position of the draft."""

_LEAST_HEAD = 6
"""Characters of the words that lines of free text begin with."""
_STAMPS = {"[": "0000-00-00 00:00:00", "": "00-00 00:00:00"}
"""Stamps of SGLang and of vLLM; what is longer or shorter has no template."""
_DIGIT = str.maketrans("0123456789", chr(DIGIT) * 10)
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?")
_WHOLE = re.compile(r"[0-9]{1,15}")
_DECIMAL = re.compile(rf"[0-9]{{1,{MOST_DIGITS}}}\.[0-9]{{1,{MOST_DIGITS}}}")
_NAME = re.compile(r"[0-9A-Za-z_.:/-]+")
_RATES = re.compile(r"[0-9]+\.[0-9]+(?:, [0-9]+\.[0-9]+)*")
_CLIENT = r"[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}:[0-9]{1,5}"
_ANSWER = r'([A-Z]+ [^" ]+ HTTP/[0-9.]+" [0-9]{3}[A-Za-z ]*)'
ANSWER = re.compile(rf'{_CLIENT} - "{_ANSWER}')
"""An access line's message; its group is everything from the method on."""
ACCESS = "http_access"
_REQUEST = Tail(
    r'^([A-Z]+) ([^" ]+) HTTP/[0-9.]+" ([0-9]{3})[A-Za-z ]*$',
    (Column("method"), Column("path"), Column("status", "int")),
)
ANSWER_COLUMN = Column("answer")


@dataclass(frozen=True, slots=True)
class Template:
    """All lines of one kind and form.

    Of an access line the only column is ``answer``, everything from the method on, unless the template was learnt with
    ``every`` field.
    """

    kind: str
    engine: str
    pid: int | None
    rank: str = ""
    """The rank of every line, unless ``ranked``."""
    process: str = ""
    head: Fixed = field(default=NOTHING)
    """What a line begins with, the stamp included."""
    ranked: bool = False
    """Whether rank tags follow, and differ from line to line."""
    tokens: tuple[Token, ...] = ()
    tail: Tail = field(default=END)
    start: int = 0
    """Where the message begins: behind the rank tags, or from the beginning of the line."""
    stamp: tuple[int, int] = (0, 0)
    """Where the stamp begins and how long it is, if it is wanted."""

    @property
    def columns(self) -> list[Column]:
        """The columns of ``tokens`` and ``tail``, in order."""
        own = (token.column for token in self.tokens if not isinstance(token, Dotted))
        return [*(column for column in own if column is not None), *self.tail.columns]

    @property
    def dated(self) -> bool:
        """Whether the stamp has a year (SGLang's)."""
        return self.stamp[1] == len(_STAMPS["["])

    @property
    def probe(self) -> tuple[int, bytes]:
        """Up to eight bytes that all lines have at the same place, and where: from the end of the rank tags, if any."""
        first = self.tokens[0] if self.tokens and isinstance(self.tokens[0], Fixed) else NOTHING
        text = first.text if self.ranked else self.head.text + first.text
        return telling(text)


def learn(plain: Plain, line: str, shape: Shape, match: re.Match[str], every: bool = False) -> Template | None:
    """The template of ``line``, whose text ``match`` recognised as ``shape``; None if there is no safe one.

    ``every``: with all fields and the stamp, not only what the folding of a run looks at.
    """
    text = plain.record.text
    if match.start() or not line.isascii():
        return None
    parts = _access(text, every) if shape.kind == ACCESS else _body(shape, match, text, every)
    return None if parts is None else _template(plain, line, shape, parts, every)


def learn_free(plain: Plain, line: str, shape: Shape, match: re.Match[str]) -> Template | None:
    """The template of all lines that begin with the same words as ``line`` and fit ``shape``, whatever else they say.

    For kinds of which only the number matters. No other shape may begin with these words.
    """
    text = plain.record.text
    head = max((head for head in shape.heads if text.startswith(head)), key=len, default="")
    if match.start() or not line.isascii() or len(head) < _LEAST_HEAD or not ({":", " "} & set(head)):
        return None  # without either, the word may be the name of an exception
    tail = Tail(f"^(?:{shape.pattern})", (), len(head), 0 if shape.whole else shape.reach)
    return _template(plain, line, shape, [Fixed(head.encode()), tail], every=False)


def _template(plain: Plain, line: str, shape: Shape, parts: list[_Part], every: bool) -> Template | None:
    record = plain.record
    begin, end = plain.stamp
    stamp = line[begin:end].translate(_DIGIT)
    if stamp and stamp != _STAMPS["[" if line[:1] == "[" else ""].translate(_DIGIT):
        return None
    ranked = plain.ranks[0] < plain.ranks[1]
    head = line[:begin] + stamp + ("" if ranked else line[end : plain.start])
    before = Fixed(line[plain.ranks[1] if ranked else plain.start : plain.start].encode())
    tokens, tail = _split([before, *parts])
    return Template(
        shape.kind, shape.engine, record.pid, record.rank if not ranked else "", record.process,
        Fixed(head.encode()), ranked, tuple(tokens), tail, plain.start - (plain.ranks[1] if ranked else 0),
        (begin, end - begin) if every else (0, 0),
    )  # fmt: skip


_Part = Token | Tail


def _split(parts: list[_Part]) -> tuple[list[Token], Tail]:
    """The tokens, neighbours of fixed text as one; from the first expression on, everything as one expression."""
    tokens: list[Token] = []
    for number, part in enumerate(parts):
        if isinstance(part, Tail) and part.reach is not None:
            return tokens, part
        if isinstance(part, Tail):
            rest = [_expression(part) for part in parts[number:]]
            columns = [column for _, found in rest for column in found]
            return tokens, Tail(f"^{''.join(text for text, _ in rest)}$", tuple(columns))
        before = tokens[-1] if tokens else None
        if isinstance(part, Fixed) and isinstance(before, Fixed) and part.column is before.column is None:
            tokens[-1] = Fixed(before.text + part.text)
        elif part != NOTHING:
            tokens.append(part)
    return tokens, END


def _expression(part: _Part) -> tuple[str, list[Column]]:
    """A part as an expression in Rust's syntax, and the columns of its groups."""
    if isinstance(part, Tail):
        return part.expression.removeprefix("^").removesuffix("$"), list(part.columns)
    if isinstance(part, Dotted):
        return "[0-9.]+", []
    if isinstance(part, Fixed):
        inner = "[0-9]".join(map(re.escape, part.text.decode().split(chr(DIGIT))))
    elif isinstance(part, Span):
        inner = "".join(_expression(token)[0] for token in part.tokens)
    elif isinstance(part, Truth):
        inner = "True|False"
    else:
        inner = r"[0-9]+\.[0-9]+" if part.decimal else "[0-9]+"
    return (f"({inner})", [part.column]) if part.column is not None else (f"(?:{inner})", [])


def _access(text: str, every: bool) -> list[_Part] | None:
    """The parts of an access line: a client with an address of figures, and the request."""
    if ANSWER.fullmatch(text) is None:
        return None
    address = (Dotted(), Fixed(b":"), Figure(False))
    client: list[_Part] = [Span(address, Column("client", "figures"))] if every else [*address]
    return [*client, Fixed(b' - "'), _REQUEST if every else Tail(f"^{_ANSWER}$", (ANSWER_COLUMN,))]


def _body(shape: Shape, match: re.Match[str], text: str, every: bool) -> list[_Part] | None:
    out: list[_Part] = []
    names: set[str] = set()
    at = 0
    for number, (name, kind, scale) in enumerate(shape.fields, 1):
        begin, end = match.span(number)
        if begin < 0:
            continue
        if begin < at:
            return None
        wanted = every or (name in COLUMNS and kind in ("int", "float")) or name == POSITIONS
        column = Column(name, kind, scale) if wanted else None
        part = _field(text[begin:end], kind, column, every)
        if part is None or (wanted and name in names):
            return None
        names.add(name)
        out += (Fixed(text[at:begin].encode()), part)
        at = end
    return [*out, *_figures_free(text[at:])]


def _field(value: str, kind: str, column: Column | None, every: bool) -> _Part | None:
    """What stands for ``value`` in all lines; None if it is not of a form that can be relied on."""
    if kind in ("int", "float"):
        if _WHOLE.fullmatch(value):
            return Figure(False, column)
        return Figure(True, column) if kind == "float" and _DECIMAL.fullmatch(value) else None
    if kind == "bool":
        return Truth(column) if value in ("True", "False") else None
    if column is not None and column.name == POSITIONS:
        return _rates(value, Column(POSITIONS, "figures" if every else "rates")) if _RATES.fullmatch(value) else None
    if kind != "str" or not _NAME.fullmatch(value):
        return None
    if _WHOLE.fullmatch(value):  # the number of an engine
        return Figure(False) if column is None else Span((Figure(False),), column)
    if any(map(str.isdigit, value)):  # an identifier, which differs from line to line
        return Tail(f"({_NAME.pattern})" if column else f"(?:{_NAME.pattern})", (column,) if column else ())
    return Fixed(value.encode(), column)  # one of few: a device, a mode


def _rates(value: str, column: Column) -> Span:
    tokens: list[Fixed | Figure] = [Figure(True)]
    for _ in range(value.count(",")):
        tokens += (Fixed(b", "), Figure(True))
    return Span(tuple(tokens), column)


def _figures_free(text: str) -> Iterator[_Part]:
    """What the shape leaves over, with any figures in place of its own."""
    at = 0
    for number in _NUMBER.finditer(text):
        yield Fixed(text[at : number.start()].encode())
        if _DECIMAL.fullmatch(number[0]) or _WHOLE.fullmatch(number[0]):
            yield Figure("." in number[0])
        else:
            yield Tail(rf"(?:{_NUMBER.pattern})")
        at = number.end()
    yield Fixed(text[at:].encode())
