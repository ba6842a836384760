"""The shipped grammars: sound, each sample its own kind, portable, quick whatever the text."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path

import polars as pl
import pytest

from analyzer import resources
from analyzer.parsing.build import ShapeSource, read_shapes
from analyzer.parsing.catalog import Catalog
from analyzer.parsing.check import check_samples
from analyzer.parsing.literals import flat
from analyzer.parsing.syntax import Literal, Problem
from analyzer.parsing.table import build_table
from analyzer.units import Unit


@cache
def _read() -> tuple[list[ShapeSource], list[Problem]]:
    return read_shapes(resources.data_dir("grammars"))


@cache
def _catalog() -> Catalog:
    return Catalog(build_table())


def test_files_have_no_problem() -> None:
    """Nothing in the shipped files is wrong in the eyes of the reader."""
    assert [str(problem) for problem in _read()[1] if problem.serious] == []


def test_samples_are_recognised_as_their_own_kind() -> None:
    """No sample is missed, taken by another kind, or fits a second kind of its engine just as well."""
    problems = [problem for shape in _read()[0] for problem in check_samples(shape, _catalog())]
    assert [str(problem) for problem in problems if problem.serious] == []


def test_units_exist() -> None:
    """Every unit that a terminal declares is one of the program's."""
    known = set(Unit.__args__)
    wrong = {(s.kind, g.field, g.terminal.unit) for s in _read()[0] for g in s.groups if g.terminal.unit not in known}
    assert not wrong


def test_expressions_are_portable() -> None:
    """Rust's regex (in polars) accepts every expression, and finds what Python finds in the first sample."""
    wrong = []
    for shape in _read()[0]:
        frame = pl.DataFrame({"text": shape.samples})
        if not frame["text"].str.contains(shape.pattern).all():
            wrong.append(shape.place)
        names = {g.field for g in shape.groups}
        if names:
            groups = frame.select(pl.col("text").str.extract_groups(shape.pattern)).unnest("text")
            assert names <= set(groups.columns)
    assert not wrong


def _nasty(shape: ShapeSource, size: int) -> Iterator[str]:
    """Texts made to take long: pieces of the shape's own text over and over."""
    literals = [leaf.text for leaf in flat(shape.part) if isinstance(leaf, Literal)]
    units = {
        *literals,
        "".join(literals),
        "0",
        "a.",
        *(f"{a}x{b}" for a, b in pairwise(literals)),
    }
    units |= {sample[: len(sample) * 9 // 10] for sample in shape.samples[:2]}
    for unit in sorted(units):
        text = (unit * (size // len(unit) + 1))[:size]
        yield text
        yield literals[0] + text


@pytest.mark.parametrize("part", range(3))
def test_time_is_bounded(part: int) -> None:
    """A text of any length takes no shape longer than a moment: eight times the text is not eight times the time."""
    slow = []
    for source in _read()[0][part::9]:
        shape = _catalog().shape(source.kind, source.engine)
        for short, long in zip(_nasty(source, 1 << 13), _nasty(source, 1 << 16), strict=True):
            times = []
            for text in (short, long):
                began = time.process_time()
                shape.search(text, len(text) // 2)
                times.append(time.process_time() - began)
            if times[1] > 0.15 and times[1] > 9 * times[0]:
                slow.append((source.place, long[:60], times))
    assert not slow


def test_a_new_line_takes_one_rule(tmp_path: Path) -> None:
    """A message is known by one rule in one file, nothing else."""
    (tmp_path / "sglang").mkdir()
    (tmp_path / "terminals.lark").write_text((resources.data_dir("grammars") / "terminals.lark").read_text())
    rule = '// 1.0.. | INFO | new\n//= Warp core at 12.50 GB\nwarp_core: "Warp core at " level " GB"\nlevel: GIB\n'
    (tmp_path / "sglang" / "new.lark").write_text(rule)
    found = Catalog.load(tmp_path).find("[x] Warp core at 2 GB, stable")
    assert found is not None
    assert found[0].kind == "warp_core"
    assert found[1]["level"] == "2"
