"""``python -m analyzer.parsing.check [folder]``: says for every shape whether its samples are read as they should be.

Prints what is wrong with the grammar files, samples that nothing or another kind recognises, samples that a second
kind of the same engine recognises as well, and shapes that are doubtful. Exit status 1 if anything is wrong.
``-v`` prints the fields read from each sample; a kind's name after the folder limits the output to it.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from analyzer import resources
from analyzer.framing.record import Record
from analyzer.parsing.build import ShapeSource, read_shapes
from analyzer.parsing.catalog import COMMON, Catalog
from analyzer.parsing.syntax import Problem
from analyzer.parsing.table import build_table


def check_samples(shape: ShapeSource, catalog: Catalog) -> list[Problem]:
    """What is wrong with the samples of one shape."""
    problems = [_check_sample(shape, catalog, line, sample) for line, sample in shape.definition.samples]
    return [problem for problem in problems if problem is not None]


def _check_sample(shape: ShapeSource, catalog: Catalog, line: int, sample: str) -> Problem | None:
    engine, kind, path = shape.engine, shape.kind, shape.file.path
    found = [s for s in catalog.find_all(sample, engine) if s.engine in (engine, COMMON)]
    if not found:
        text = f"{kind}: its own sample is not recognised: {sample[:120]!r}\n    expression: {shape.pattern}"
        return Problem(path, line, text)
    first = found[0]
    others = [s for s in found if (s.kind, s.engine) != (kind, engine)]
    if first in others:
        also = "which has more fixed text" if len(found) > len(others) else "and not by this shape at all"
        text = f"{kind}: its sample is recognised as {first.kind} ({first.place}), {also}: {sample[:120]!r}"
        return Problem(path, line, text)
    weight = first.weight_in(sample)
    equal = [s for s in others if s.engine == engine and s.weight_in(sample) >= weight]
    if equal:
        return Problem(path, line, f"{kind}: a sample fits {equal[0].kind} ({equal[0].place}) just as well")
    if others:
        names = ", ".join(f"{other.kind} ({other.place})" for other in others)
        return Problem(path, line, f"{kind}: a sample also fits {names}, with less fixed text", serious=False)
    return None


def fields_read(shape: ShapeSource, catalog: Catalog) -> list[dict[str, Any] | None]:
    """The fields of each sample, None where it is not recognised."""
    events = [catalog.match(Record("sample", 1, 1, sample), shape.engine) for sample in shape.samples]
    return [event.fields if event else None for event in events]


def main(arguments: list[str]) -> int:
    """Runs the check; see the module's text."""
    verbose = "-v" in arguments
    names = [argument for argument in arguments if argument != "-v"]
    folder = Path(names[0]) if names else resources.data_dir("grammars")
    only = set(names[1:])
    shapes, problems = read_shapes(folder)
    catalog = Catalog(build_table(folder), folder)
    for shape in shapes:
        if only and shape.kind not in only:
            continue
        problems += check_samples(shape, catalog)
        if verbose:
            print(f"{shape.place}: {shape.kind}\n    {shape.pattern}")  # noqa: T201
            for sample, fields in zip(shape.samples, fields_read(shape, catalog), strict=True):
                print(f"    {sample[:150]!r}\n        {fields}")  # noqa: T201
    for problem in sorted(problems, key=lambda p: (p.file, p.line)):
        print(problem)  # noqa: T201
    serious = sum(problem.serious for problem in problems)
    print(f"{len(shapes)} shapes, {serious} wrong, {len(problems) - serious} doubtful")  # noqa: T201
    return 1 if serious else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
