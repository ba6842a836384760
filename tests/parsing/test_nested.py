"""Dumps and reprs: what Python prints is read back, what is broken loses itself only, what is cut keeps the rest."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzer.parsing.nested import MOST_DEPTH, parse_value

_SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=12), st.just('it\'s "so"\n')
)
_VALUES = st.recursive(
    _SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.tuples(inner, inner),
        st.dictionaries(st.text(max_size=6) | st.integers(), inner, max_size=4),
    ),
    max_leaves=12,
)


@dataclass
class Inner:
    level: int = 3
    sizes: list[int] = field(default_factory=lambda: [1, 2, 4])


@dataclass
class Outer:
    name: str = "x"
    inner: Inner = field(default_factory=Inner)
    ratio: float | None = None


@given(st.dictionaries(st.text(max_size=8), _VALUES, min_size=1, max_size=5))
@settings(max_examples=150, deadline=None)
def test_reads_back_what_python_prints(value: dict[str, Any]) -> None:
    """Any dict of plain values equals what is read from its repr."""
    assert parse_value(repr(value)) == (value, True)


def test_dataclasses_become_dicts_with_their_class() -> None:
    assert parse_value(repr(Outer()).replace("Outer", "pkg.Outer")) == (
        {
            "__class__": "pkg.Outer",
            "name": "x",
            "inner": {"__class__": "Inner", "level": 3, "sizes": [1, 2, 4]},
            "ratio": None,
        },
        True,
    )


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{<Mode.FULL: 'full'>: 1, 'm': <Mode.PIECEWISE: (2, 1)>}", {"full": 1, "m": "PIECEWISE"}),
        ("a=<function f.<locals>.g at 0x7f01>", {"a": "<function f.<locals>.g>"}),
        ("dtype=torch.bfloat16, device_config=cuda:0", {"dtype": "bfloat16", "device_config": "cuda:0"}),
        (
            "model=/models/My Model v2, url=s3://bucket/a?b=c",
            {"model": "/models/My Model v2", "url": "s3://bucket/a?b=c"},
        ),
        ('c={"level":3,"ops":["+a"],"n":null,"t":true}', {"c": {"level": 3, "ops": ["+a"], "n": None, "t": True}}),
        ("OrderedDict([('a', 1), ('b', OrderedDict())])", {"a": 1, "b": {}}),
        ("defaultdict(<class 'list'>, {'a': [1]})", {"a": [1]}),
        ("{1, 2}", [1, 2]),
        ("set()", []),
        ("Namespace(paths=[PosixPath('/a b')], t=(1,))", {"__class__": "Namespace", "paths": ["/a b"], "t": (1,)}),
        ("datetime.timedelta(days=1)", {"__class__": "datetime.timedelta", "days": 1}),
        ("device(type='cuda', index=0)", {"__class__": "device", "type": "cuda", "index": 0}),
        ("load=1.5, graph={decode: 2.0, prefill: 3}", {"load": 1.5, "graph": {"decode": 2.0, "prefill": 3}}),
        ("a=1,  b=2, ", {"a": 1, "b": 2}),
        ("x=-inf, y=1e-05, z=[-1, 2.5]", {"x": -math.inf, "y": 1e-05, "z": [-1, 2.5]}),
        (r"Foo('\'q\' \x41\u00e9')", {"__class__": "Foo", "__args__": ["'q' Aé"]}),
        ("[1, 2]", [1, 2]),
        ("plain words", "plain words"),
    ],
)
def test_forms(text: str, value: object) -> None:
    """The forms that engines print."""
    assert parse_value(text) == (value, True)


def test_text_behind_a_bracketed_value_is_ignored() -> None:
    assert parse_value("ServerArgs(a=1) [2026-01-01 10:00:00] Load weight begin.") == (
        {"__class__": "ServerArgs", "a": 1},
        True,
    )
    assert parse_value("{'EngineCore_DP0': 1}\nnext: line") == ({"EngineCore_DP0": 1}, True)


def test_a_list_of_fields_ends_with_its_line() -> None:
    assert parse_value("a=1, b='x'\nc=3") == ({"a": 1, "b": "x"}, True)
    assert parse_value("a=1, b={'c': 2}INFO 11-30 next message, d=4") == ({"a": 1, "b": {"c": 2}}, True)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("A(a=1, b=0.7", {"a": 1}),
        ("A(a=1, b=", {"a": 1}),
        ("A(a=1, b", {"a": 1}),
        ("A(a=1, b='abc", {"a": 1}),
        ("A(a=1, b=B(c=2, d=[3, 4], e", {"a": 1, "b": {"__class__": "B", "c": 2, "d": [3, 4]}}),
        ("A(a=1, b=[1, 2, ...], c=3)", {"a": 1, "b": [1, 2], "c": 3}),
    ],
)
def test_cut_off(text: str, value: dict[str, Any]) -> None:
    """What was complete before the cut is kept; a number or name that may go on is not."""
    assert parse_value(text) == ({"__class__": "A", **value}, False)


@given(st.integers(0, 400))
@settings(max_examples=60, deadline=None)
def test_cut_anywhere_never_invents(length: int) -> None:
    """Wherever a dump is cut, every field that is given at the top has its true value."""
    whole = {f"key_{n}": [n, f"text {n}", {"x": n / 8}][n % 3] for n in range(24)}
    text = repr(whole)
    value, complete = parse_value(text[:length])
    assert complete == (length >= len(text))
    for key, found in (value or {}).items():
        assert found == whole[key] or found == {}, key


@pytest.mark.parametrize("junk", ["}{", "[1, (2]", "1 'x': 2", "(3]", "@#$ %= <<", "Foo(3])", ")"])
def test_junk_in_one_field_loses_that_field_only(junk: str) -> None:
    value, _ = parse_value(f"a=1, b={junk}, c=3, d='x'")
    assert (value["a"], value["c"], value["d"]) == (1, 3, "x")
    value, _ = parse_value(f"A(a=1, b={junk}, c=3, d='x')")
    assert value["a"] == 1
    if junk != ")":  # closes the whole
        assert (value["c"], value["d"]) == (3, "x")


def test_depth_is_bounded() -> None:
    """Too deep is cut off, not an error."""
    for text in ("[" * 50_000, "A(a=" * 20_000, "{'a': " * 20_000):
        value, complete = parse_value(text)
        assert not complete
        assert value is not None
    assert parse_value("[" * (MOST_DEPTH - 1) + "]" * (MOST_DEPTH - 1))[1]


@pytest.mark.parametrize(
    "unit", ["'", "{a", "a=", "A(b=[}, ", "x y ", "((}", "<a<b>", "a=}, ", "[1, 2], ", "\\'", "..."]
)
def test_time_is_linear(unit: str) -> None:
    """Four times the text takes no more than some four times as long."""
    times = []
    for size in (10_000, 40_000):
        text = "A(x=1, " + (unit * size)[:size]
        began = time.process_time()
        parse_value(text)
        times.append(time.process_time() - began)
    assert times[1] < 8 * times[0] + 0.5


def test_a_list_of_fields_may_end_with_a_bracket_that_nothing_opens() -> None:
    wanted = {"model": "m", "tensor_parallel_size": 2, "seed": 0}
    assert parse_value("model='m', tensor_parallel_size=2, seed=0)") == (wanted, True)
    assert parse_value("model='m', tensor_parallel_size=2, seed=0)\nnext line") == (wanted, True)
