"""What is passed over as a whole holds nothing that anybody would want to read."""

from __future__ import annotations

import polars as pl
import pytest

from analyzer import resources
from analyzer.bulk.quiet import Quiet, is_marked, messages
from analyzer.parsing import default_catalog
from analyzer.parsing.build import read_shapes
from analyzer.run.dull import SCARY_WORDS

PREFIX = "[2026-09-12 10:00:00] "
DULL = f"{PREFIX}module 7 says tick tock\n"


@pytest.fixture(scope="module")
def quiet() -> Quiet:
    return Quiet.of(default_catalog())


def _loud(expression: str, texts: list[str]) -> list[bool]:
    return pl.Series(texts, dtype=pl.String).str.contains(expression).to_list()


def test_no_sample_of_any_shape_is_passed_over(quiet: Quiet) -> None:
    shapes, _ = read_shapes(resources.data_dir("grammars"))
    samples = [(shape.kind, sample) for shape in shapes for sample in shape.samples]
    assert len(samples) > 700
    alone = quiet.loud(pl.Series([sample for _, sample in samples])).to_list()
    parts = _loud(quiet.piece, [f"{DULL}{PREFIX}{sample}\n{DULL}" for _, sample in samples])
    assert [kind for (kind, _), a, b in zip(samples, alone, parts, strict=True) if not (a and b)] == []


def test_dull_text_is(quiet: Quiet) -> None:
    assert _loud(quiet.piece, [DULL * 50]) == [False]
    assert quiet.loud(pl.Series(["module 7 says tick tock"])).to_list() == [False]


@pytest.mark.parametrize(
    "line",
    [
        *(f"{PREFIX}something {word.upper()} x" for word in SCARY_WORDS),
        "a line without a stamp",
        "",
        f"{PREFIX}ends in a colon:",
        f"{PREFIX}ends in a blank ",
        f"{PREFIX}  indented",
        f"{PREFIX}glued {PREFIX}text",
        f"{PREFIX}a carriage\rreturn",
        f"{PREFIX}a \x1b[31mcolour",
        f"{PREFIX}Markdown\\_escape",
        f"{PREFIX}EngineDead",
        "[2026-09-12 10:00:00 TP0] another rank",
        "[2026-09-12T10:00:00] another stamp",
        "2026-09-12 10:00:00 another prefix",
    ],
)
def test_a_piece_with_such_a_line_is_read(line: str, quiet: Quiet) -> None:
    assert _loud(quiet.piece, [f"{DULL}{line}\n{DULL}"]) == [True]


def test_messages_of_known_processes_alone() -> None:
    lines = {
        f"{PREFIX}text": "text",
        "[2026-09-12 10:00:00 DP1 TP0] text": "text",
        "(EngineCore_DP0 pid=12) INFO 09-12 10:00:00 [core.py:1] text": "text",
        "INFO 09-12 10:00:00 [core.py:1] text": "text",
        "(EngineCore_DP0 pid=13) INFO 09-12 10:00:00 [core.py:1] text": None,
        "(EngineCore_DP0 pid=12) WARNING 09-12 10:00:00 [core.py:1] text": None,
        "raw text": None,
        f"{PREFIX} indented": None,
    }
    plain, texts = messages(pl.Series(list(lines), dtype=pl.String), [7, 12])
    assert [text if one else None for one, text in zip(plain, texts, strict=True)] == list(lines.values())


def test_marked_lines() -> None:
    assert is_marked("a \x1b[31mcolour")
    assert is_marked("a &lt;tag&gt;")
    assert not is_marked("a & b \\ c ^ d")
