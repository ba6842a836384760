"""Tables on a terminal: no figure is cut, and what is too wide for a table is printed value by value."""

from __future__ import annotations

import io

import polars as pl
import pytest
from rich.console import Console

from analyzer.fleet.show import print_frame
from analyzer.report.sheet import cells

FLAGS = '{"a": 1, "b": 2, "kv_cache_dtype": "fp8", "gpu_memory_utilization": 0.92}'


def shown(frame: pl.DataFrame, width: int) -> str:
    out = io.StringIO()
    print_frame(frame, Console(file=out, width=width, highlight=False))
    return out.getvalue()


@pytest.mark.parametrize("width", [40, 80, 120, 400])
@pytest.mark.parametrize("columns", [2, 9, 48])
def test_every_figure_is_whole_at_any_width(width: int, columns: int) -> None:
    frame = pl.DataFrame({f"column_{n}": [1_000_000 + n, 20 + n] for n in range(columns)})
    text = shown(frame, width)
    for number in range(columns):
        assert f"{1_000_000 + number:,}" in text and f"column_{number}" in text
    assert max(map(cells, text.splitlines())) <= width


def test_launch_arguments_leave_room_for_the_other_columns() -> None:
    frame = pl.DataFrame({"source": ["/logs/a.log", "/logs/b.log"], "flags": [FLAGS, FLAGS]})
    text = shown(frame, 60)
    assert "source" in text and "/logs/a.log" in text and "/logs/b.log" in text
    assert ".." in text and '{"a": 1' in text
    assert FLAGS in shown(frame, 120)


def test_long_texts_are_wrapped_and_not_cut() -> None:
    words = "the quick brown fox jumps over the lazy dog " * 8
    frame = pl.DataFrame({"run": ["a"], "verdict": [words]})
    assert "".join(shown(frame, 70).split()).count("lazydog") == 8
    wide = pl.DataFrame({**{f"c{n}": ["some text here"] for n in range(9)}, "verdict": [words]})
    text = shown(wide, 60)
    assert text.startswith("row 1\n") and " ".join(text.split()).count("lazy dog") == 8


def test_no_rows_are_said() -> None:
    assert shown(pl.DataFrame({"a": []}), 80) == "no rows\n\n"


def test_rows_beyond_the_limit_are_counted() -> None:
    out = io.StringIO()
    print_frame(pl.DataFrame({"a": list(range(9))}), Console(file=out, width=80), limit=4)
    assert "... and 5 more rows" in out.getvalue()
