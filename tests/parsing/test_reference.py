"""The lowered expressions against Lark's Earley parser of the same rules."""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from analyzer import resources
from analyzer.events import Event
from analyzer.framing import frame
from analyzer.framing.record import Record
from analyzer.parsing.build import ShapeSource, read_shapes
from analyzer.parsing.catalog import Catalog, default_catalog
from analyzer.parsing.reference import Reference
from tests.parsing.generate import message

LONGEST = 1500
"""Longer samples are argument dumps; the parser takes the square of a length."""


@cache
def _shapes() -> list[ShapeSource]:
    return read_shapes(resources.data_dir("grammars"))[0]


@cache
def _reference(kind: str, engine: str) -> Reference:
    return default_catalog().reference(kind, engine)


def _both(source: ShapeSource, text: str) -> tuple[Event | None, Event | None]:
    """What the reference and what the expression read in ``text``."""
    shape = default_catalog().shape(source.kind, source.engine)
    record = Record("test", 1, 1, text)
    found = shape.search(text)
    return _reference(source.kind, source.engine).match(record), shape.event(found, record) if found else None


def _differences(source: ShapeSource, text: str) -> str | None:
    expected, actual = _both(source, text)
    if repr(sorted(expected.fields.items()) if expected else None) == repr(
        sorted(actual.fields.items()) if actual else None
    ):  # by repr, for a NaN is not equal to itself
        return None
    return f"{source.place} {source.kind}: {text!r}\n  reference {expected}\n  expression {actual}"


@pytest.mark.parametrize("part", range(4))
def test_every_sample_is_read_alike(part: int) -> None:
    """Each ``//=`` sample gives the same event by expression and by Lark."""
    wrong = [
        difference
        for source in _shapes()[part::4]
        for text in source.samples
        if len(text) <= LONGEST and (difference := _differences(source, text))
    ]
    assert not wrong, "\n".join(wrong)


@given(seed=st.integers(0, 2**32))
@settings(max_examples=12, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
def test_random_messages_are_read_alike(seed: int) -> None:
    """Random messages of random shapes, with text before and behind, give the same event by both ways."""
    random = Random(seed)
    for source in random.sample(_shapes(), 40):
        text = message(source.part, random)
        if len(text) > 400:
            continue
        if random.random() < 0.3 and "(?m:^)" not in source.pattern:
            text = random.choice(["[a] ", "x ", "é: "]) + text
        if random.random() < 0.3:
            text += random.choice(["\nnext line", "  ", "."]) if "(?m:$)" not in source.pattern else "\nnext: 1"
        expected, _ = _both(source, text)
        assert expected is not None, f"the grammar does not match its own message: {source.place} {text!r}"
        assert (difference := _differences(source, text)) is None, difference


def test_reference_prefers_what_the_readme_promises(tmp_path: Path) -> None:
    """Leftmost, earlier alternative, present option, short TEXT, long WORD - on a grammar where all of it matters."""
    (tmp_path / "sglang").mkdir()
    (tmp_path / "terminals.lark").write_text(
        "TEXT: /[^\\n]+?/\nWORD: /\\S+/\nINT: /[0-9]+/\nEND: /[ \\t]*\\n/\n", encoding="utf-8"
    )
    (tmp_path / "sglang" / "a.lark").write_text(
        '// 1 | x\n//= a=1=b\nfirst: "a=" text "=" [word] | "a=" word\ntext: TEXT\nword: WORD\n', encoding="utf-8"
    )
    catalog = Catalog.load(tmp_path)
    record = Record("test", 1, 1, "z a=1=2=3 a=4=5")
    expected = {"text": "1", "word": "2=3"}
    assert catalog.reference("first").match(record).fields == expected  # type: ignore[union-attr]
    assert catalog.match(record).fields == expected  # type: ignore[union-attr]


def _recognised_lines() -> list[tuple[ShapeSource, str]]:
    """Messages of the shipped sample logs with the shape that recognises them, at most three of a kind and file."""
    by_kind = {(source.engine, source.kind): source for source in _shapes()}
    found: list[tuple[ShapeSource, str]] = []
    for path in sorted(resources.data_dir("samples").glob("*/*.log")):
        seen: Counter[str] = Counter()
        for record in frame([path.read_bytes()], path.name):
            event = default_catalog().match(record, path.parent.name)
            if event and len(record.text) <= 400 and seen[event.kind] < 3:
                seen[event.kind] += 1
                found.append((by_kind[event.engine, event.kind], record.text))
    return found


def test_lines_of_the_sample_logs_are_read_alike() -> None:
    """Every third line that the sample logs and the catalog have in common gives the same event by both ways."""
    lines = _recognised_lines()
    assert len(lines) > 100
    wrong = [difference for source, text in lines[::3] if (difference := _differences(source, text))]
    assert not wrong, "\n".join(wrong)
