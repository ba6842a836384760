"""Reads a folder of grammar files into shapes with all that is derived from them, and says what is wrong with them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from analyzer.parsing import literals
from analyzer.parsing.lower import (
    Group,
    Part,
    Terminal,
    check_regex,
    expand,
    lower,
    read_terminals,
    shapes_of,
)
from analyzer.parsing.syntax import Definition, GrammarFile, GrammarProblem, Problem, read_grammar
from analyzer.parsing.table import TERMINALS, grammar_files


@dataclass(slots=True)
class ShapeSource:
    """One shape as read from its file, with everything derived from it."""

    engine: str
    file: GrammarFile
    definition: Definition
    part: Part
    pattern: str
    groups: list[Group]
    terminals: dict[str, Terminal]

    @property
    def kind(self) -> str:
        return self.definition.name

    @property
    def samples(self) -> list[str]:
        """The sample messages of the ``//=`` comments."""
        return [text for _, text in self.definition.samples]

    @property
    def place(self) -> str:
        return f"{self.file.path}:{self.definition.line}"

    def entry(self) -> dict[str, Any]:
        """The row of the table."""
        heads, headed = literals.heads(self.part)
        return {
            "kind": self.kind,
            "engine": self.engine,
            "place": self.place,
            "pattern": self.pattern,
            "fields": [
                [field, terminal.kind, terminal.unit, terminal.scale, list(terminal.none)]
                for field, terminal in ((group.field, group.terminal) for group in self.groups)
            ],
            "heads": heads,
            "headed": headed,
            "keys": literals.keys(self.part),
            "forms": [list(form) for form in literals.forms(self.part)],
            "reach": literals.reach(self.part),
            "whole": literals.whole(self.part),
            "meaning": self.definition.meaning,
            "notes": [[note.first, note.last, note.text] for note in self.definition.notes],
        }


def read_shapes(folder: Path) -> tuple[list[ShapeSource], list[Problem]]:
    """Every shape of a grammar folder and everything that is wrong with the files."""
    problems: list[Problem] = []
    shapes: list[ShapeSource] = []
    base = read_grammar((folder / TERMINALS).read_text(encoding="utf-8"), TERMINALS)
    terminals = read_terminals(base)
    problems += base.problems
    places: dict[tuple[str, str], str] = {}
    for path in grammar_files(folder):
        engine = path.parent.name
        try:
            file = read_grammar(path.read_text(encoding="utf-8"), path.relative_to(folder).as_posix())
        except (OSError, UnicodeDecodeError) as error:
            problems.append(Problem(str(path.relative_to(folder)), 1, f"cannot be read: {error}"))
            continue
        for shape in _shapes(file, engine, terminals):
            first = places.setdefault((engine, shape.kind), shape.place)
            if first != shape.place:
                file.report(GrammarProblem(shape.definition.line, f"{shape.kind} is already a shape in {first}"))
            else:
                shapes.append(shape)
        problems += file.problems
    return shapes, problems


def _shapes(file: GrammarFile, engine: str, known: dict[str, Terminal]) -> Iterator[ShapeSource]:
    """The sound shapes of one file; the unsound are reported in ``file.problems``."""
    terminals = read_terminals(file, known)
    for definition in shapes_of(file):
        try:
            part = expand(definition, file, terminals)
            pattern, groups = lower(part)
            check_regex(pattern, definition.line, definition.name)
            _check_literals(definition, part)
        except GrammarProblem as problem:
            file.report(problem)
            continue
        _check_habits(definition, part, file)
        yield ShapeSource(engine, file, definition, part, pattern, groups, terminals)


def _check_literals(definition: Definition, part: Part) -> None:
    name, line = definition.name, definition.line
    if not literals.keys(part):
        raise GrammarProblem(
            line,
            f"{name}: some way to match it holds no literal with its case fixed, so it cannot be found; "
            "give each alternative fixed text",
        )
    if literals.reach(part) is None:
        raise GrammarProblem(
            line,
            f"{name}: {literals.wide_slots(part)} fields can run over the text that ends them, which can take very "
            "long; use terminals that exclude it (WORD, NAME, PHRASE, FLOAT) or begin the rule with fixed text",
        )


def _check_habits(definition: Definition, part: Part, file: GrammarFile) -> None:
    """Reports what is incomplete or doubtful without making the shape unusable."""
    name, line = definition.name, definition.line
    if not definition.samples:
        file.report(GrammarProblem(line, f"{name}: no sample; put a real line above it as //= text"))
    if not definition.notes:
        file.report(GrammarProblem(line, f"{name}: no versions; write // 0.5.3..0.5.12 | INFO | meaning above it"))
    if short := [key for key in literals.keys(part) if len(key.strip()) < 5]:
        file.report(
            GrammarProblem(line, f"{name}: is searched by {short[0]!r}, which is in many lines; use a longer literal"),
            serious=not any(map(str.isalnum, short[0])),
        )
