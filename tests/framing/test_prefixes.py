"""Prefixes that no list knows, found in a log's first lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from analyzer.framing.prefixes import common_head, enclosing, expression, services, shape
from analyzer.resources import data_dir
from tests.framing.support import framed

TRACEBACK = [
    "Traceback (most recent call last):", '  File "a.py", line 3, in run', "    f(x)", '  File "b.py", line 4, in f',
    "    raise ValueError('bad')", "ValueError: bad",
]  # fmt: skip


@pytest.mark.parametrize(
    "prefix",
    ["app-{} | x: ", "host{} worker ", "    ", "[{}] > ", "srv\t{}\t", "a.log:{}:", "{}: ", "<14>1 a {} - "],
)
def test_a_traceback_alone_is_freed_from_it(prefix: str) -> None:
    text = "".join(prefix.format(n) + line + "\n" for n, line in enumerate(TRACEBACK, 7))
    (record,) = framed(text)
    assert (record.form, record.text.split("\n")) == ("traceback", TRACEBACK)


@pytest.mark.parametrize("log", sorted(data_dir("samples").rglob("*.log")), ids=lambda log: log.stem)
def test_what_engines_print_in_front_is_none(log: Path) -> None:
    lines = log.read_text().split("\n")[:256]
    assert common_head(lines) is None and enclosing(lines) == ""


def test_what_engines_print_in_front_of_a_traceback_is_none() -> None:
    header = "(EngineCore pid=7) ERROR 09-12 10:00:00 [core.py:59] "
    assert common_head([header + line for line in TRACEBACK]) is None
    assert common_head(["(Worker_TP1 pid=7) " + line for line in TRACEBACK]) is None


def test_some_lines_are_not_enough() -> None:
    assert common_head(["x: " + line for line in TRACEBACK] + ["another text"] * 3) is None
    assert common_head(["x: " + line for line in TRACEBACK[:4]]) is None


def test_shapes() -> None:
    form = shape("srv-12   7 | ")
    assert form == "srv-0 0 | "
    assert expression(form).match("srv-3 1204 | text")
    assert not expression(form).match("srv-x 1 | text")


def test_services() -> None:
    assert list(
        services(["a | [2026-11-30 10:00:00] x", "b  | Traceback (most recent call last):", "c | text", "d"])
    ) == [
        "a",
        "b",
    ]


def test_tasks_keep_their_numbers_where_few_lines_are_the_engine_s() -> None:
    lines = [f"{task}: {line}" for line in TRACEBACK for task in (0, 1)]
    records = framed("\n".join(lines) + "\n")
    assert {r.process for r in records} == {"0", "1"}
