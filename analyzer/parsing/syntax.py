"""Reads the text of a message grammar into a small tree, with Lark's own published grammar of grammars.

The result keeps what Lark throws away: the comments above a rule, which hold its versions, meaning and samples, and
above a terminal, which hold its type and unit. Format: grammars/README.md.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, TypeAlias, cast

if TYPE_CHECKING:
    from lark import Lark, Token, Tree


@dataclass(frozen=True, slots=True)
class Problem:
    """Something a contributor has to mend, with its place."""

    file: str
    line: int
    text: str
    serious: bool = True
    """False for what works but is doubtful."""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {'' if self.serious else 'doubtful: '}{self.text}"


class GrammarProblem(Exception):
    """Raised inside this package while one file or rule is read; collected by the builder of the table."""

    def __init__(self, line: int, text: str) -> None:
        super().__init__(text)
        self.line = line


@dataclass(frozen=True, slots=True)
class Literal:
    """Fixed text."""

    text: str
    any_case: bool = False


@dataclass(frozen=True, slots=True)
class Pattern:
    """A regular expression, as written between the slashes of a terminal."""

    regex: str
    flags: str = ""


@dataclass(frozen=True, slots=True)
class Ref:
    """The use of a rule or of a terminal (upper-case)."""

    name: str
    line: int


@dataclass(frozen=True, slots=True)
class Seq:
    """One after the other; an empty one matches nothing."""

    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Alt:
    """One of several, the earlier preferred."""

    options: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """``item`` from ``low`` to ``high`` times (None: without end), as often as possible."""

    item: Node
    low: int
    high: int | None


Node: TypeAlias = Literal | Pattern | Ref | Seq | Alt | Repeat


@dataclass(frozen=True, slots=True)
class Note:
    """One version comment: ``0.4.5..0.5.8 | INFO | GiB free before weights``. An open end is an empty string."""

    first: str
    last: str
    text: str


@dataclass(slots=True)
class Definition:
    """A rule or terminal with what the comments above it say."""

    name: str
    line: int
    body: Node
    notes: list[Note] = field(default_factory=list)
    meaning: str = ""
    samples: list[tuple[int, str]] = field(default_factory=list)
    annotation: dict[str, list[str]] = field(default_factory=dict)

    @property
    def is_terminal(self) -> bool:
        return self.name.lstrip("_")[:1].isupper()


@dataclass(slots=True)
class GrammarFile:
    """All definitions of one file, in order."""

    path: str
    definitions: dict[str, Definition] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def report(self, problem: GrammarProblem, *, serious: bool = True) -> None:
        """Adds a problem found while a definition was read."""
        self.problems.append(Problem(self.path, problem.line, str(problem), serious))


_VERSION = r"v?[0-9]+(?:\.[0-9A-Za-z+-]+)*"
_NOTE = re.compile(rf"^({_VERSION})?\s*(\.\.)?\s*({_VERSION})?\s*\|\s*(.*)$")
_ANNOTATION = re.compile(r"@([a-z]+)((?:\s+[^\s@]+)+)")
_NEWLINE_LATER = "//+"
_SAMPLE = "//="


@cache
def _parsers() -> tuple[Lark, list[Token]]:
    """Lark's grammar of grammars as an LALR parser, and the list into which its lexer puts each comment."""
    from lark import Lark

    comments: list[Token] = []
    parser = Lark.open_from_package(
        "lark",
        "lark.lark",
        ("grammars",),
        parser="lalr",
        propagate_positions=True,
        maybe_placeholders=False,
        lexer_callbacks={"COMMENT": comments.append},
    )
    return parser, comments


def read_grammar(text: str, path: str) -> GrammarFile:
    """The definitions in ``text``; what cannot be read is listed in ``problems`` of the result."""
    from lark.exceptions import UnexpectedInput

    parser, found = _parsers()
    found.clear()
    result = GrammarFile(path)
    lines = text.split("\n")
    try:
        tree = parser.parse(text if text.endswith("\n") else text + "\n")
    except UnexpectedInput as error:
        wrong = lines[error.line - 1].strip() if 0 < error.line <= len(lines) else ""
        result.problems.append(
            Problem(path, max(error.line, 1), f"not a Lark grammar from column {error.column} on: {wrong[:100]!r}")
        )
        return result
    comments = {}
    for token in found:
        line = (token.line or 1) + token[: len(token) - len(token.lstrip())].count("\n")
        if lines[line - 1].lstrip().startswith(("//", "#")):  # a comment behind code belongs to nothing
            comments[line] = token.strip()
    for item in tree.children:
        try:
            _read_item(cast("Tree[Token]", item), comments, result)
        except GrammarProblem as problem:
            result.report(problem)
    return result


def _read_item(item: Tree[Token], comments: dict[int, str], result: GrammarFile) -> None:
    line = item.meta.line
    if item.data not in ("rule", "token"):
        raise GrammarProblem(line, f"%{item.data}: a message grammar holds rules and terminals only")
    name = str(item.children[0])
    if name.startswith(("?", "!")):
        raise GrammarProblem(line, f"{name}: modifiers ? and ! have no meaning here; write the plain name")
    if name in result.definitions:
        first = result.definitions[name].line
        raise GrammarProblem(line, f"{name} is already defined in line {first}; put version drift into alternatives")
    if any(getattr(child, "data", "") == "priority" for child in item.children):
        raise GrammarProblem(line, f"{name}: priorities have no meaning here; the longest literal is tried first")
    definition = Definition(name, line, _node(item.children[-1]))
    _read_comments(definition, comments)
    result.definitions[name] = definition


def _read_comments(definition: Definition, comments: dict[int, str]) -> None:
    """Fills in what the unbroken run of comment lines above the definition says."""
    first = definition.line
    while first - 1 in comments:
        first -= 1
    meaning: list[str] = []
    for line in range(first, definition.line):
        comment = comments[line]
        if comment.startswith(_SAMPLE):
            definition.samples.append((line, comment[len(_SAMPLE) :].removeprefix(" ")))
        elif comment.startswith(_NEWLINE_LATER) and definition.samples:
            start, sample = definition.samples[-1]
            definition.samples[-1] = (start, sample + "\n" + comment[len(_NEWLINE_LATER) :].removeprefix(" "))
        elif definition.is_terminal and "@" in comment:
            for key, words in _ANNOTATION.findall(comment):
                definition.annotation.setdefault(key, []).extend(words.split())
        else:
            text = comment.lstrip("/").strip()
            if (note := _NOTE.match(text)) and (note[1] or note[3]):
                last = note[3] or ("" if note[2] else note[1])
                definition.notes.append(Note(note[1] or "", last, note[4].strip()))
            else:
                meaning.append(text)
    definition.meaning = " ".join(part for part in meaning if part)


def _node(tree: Tree[Token] | Token) -> Node:
    """The tree of ``lark.lark`` as nodes of this module."""
    line: int = tree.meta.line if hasattr(tree, "meta") and not tree.meta.empty else 0
    kind = getattr(tree, "data", None)
    children: list[Tree[Token] | Token] = getattr(tree, "children", [])
    if kind == "expansions":
        return Alt(tuple(_node(child) for child in children))
    if kind == "expansion":
        items = tuple(_node(child) for child in children)
        return items[0] if len(items) == 1 else Seq(items)
    if kind == "maybe":
        return Repeat(_node(children[0]), 0, 1)
    if kind == "expr":
        return _repeat(_node(children[0]), [str(child) for child in children[1:]])
    if kind == "literal":
        return _literal(children[0])
    if kind == "name":
        token = children[0]
        return Ref(str(token), token.line or 0)  # type: ignore[union-attr]
    if kind == "alias":
        raise GrammarProblem(line, "'->' gives a rule a second name, which has no meaning here; name the field instead")
    raise GrammarProblem(line, f"{kind}: templates and character ranges are not used in message grammars")


def _repeat(item: Node, how: list[str]) -> Repeat:
    if how[0] in "?*+":
        return Repeat(item, int(how[0] == "+"), 1 if how[0] == "?" else None)
    return Repeat(item, int(how[0]), int(how[-1]))


def _literal(token: Tree[Token] | Token) -> Literal | Pattern:
    text, line = str(token), getattr(token, "line", None) or 0
    if text.startswith("/"):
        body, _, flags = text[1:].rpartition("/")
        return Pattern(body.replace("\\/", "/"), flags)
    any_case = text.endswith("i")
    quoted = text.removesuffix("i")
    if bad := re.search(r'\\[^nt\\"]', re.sub(r"\\\\", "", quoted)):
        raise GrammarProblem(line, f"{quoted}: {bad[0]} is no escape here; write \\\\ for a backslash")
    value: str = ast.literal_eval(quoted)
    if not value:
        raise GrammarProblem(line, "an empty literal matches nothing; use [ ] for what may be missing")
    return Literal(value, any_case)
