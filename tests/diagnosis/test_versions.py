"""Versions: order, constraints, and what a bracket leaves open."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.diagnosis.versions import compare, parse_constraint, parse_version, satisfies


def test_order() -> None:
    ordered = [
        "0.4.9",
        "0.5.0.dev3",
        "0.5.0a1",
        "0.5rc1.dev2",
        "0.5.0rc1",
        "0.5.0rc2",
        "0.5",
        "0.5.0.post1.dev1",
        "0.5.0.post1",
        "0.5.1",
        "0.10.0",
    ]
    keys = [parse_version(v) for v in ordered]
    assert keys == sorted(keys)
    assert len(set(keys)) == len(keys)


def test_same() -> None:
    assert parse_version("v0.11.0+cu128") == parse_version("0.11")


@pytest.mark.parametrize("text", ["", "abc", "1.", "0.5.x", "1" * 40, "0.5 or so"])
def test_no_version(text: str) -> None:
    with pytest.raises(ValueError, match="no version"):
        parse_version(text)


@pytest.mark.parametrize("text", ["", "0.5", ">=", ">=0.5 and", ">=0.5 junk", "=>0.5", "or"])
def test_no_constraint(text: str) -> None:
    with pytest.raises(ValueError, match="version"):
        parse_constraint(text)


@pytest.mark.parametrize(
    ("constraint", "version", "expected"),
    [
        (">=0.5.14 <0.5.18", "0.5.17", True),
        (">=0.5.14, <0.5.18", "0.5.18", False),
        ("<0.4 or >=0.6", "0.5", False),
        ("<0.4 or >=0.6", "0.6.1", True),
        ("!=0.5.4", "0.5.4", False),
        ("==0.5.4", "0.5.4.post1", False),
    ],
)
def test_known_version(constraint: str, version: str, expected: bool) -> None:
    assert satisfies(version, None, parse_constraint(constraint)) is expected


@pytest.mark.parametrize(
    ("bracket", "constraint", "expected"),
    [
        ((">=0.5.14", "<=0.5.17"), ">=0.5.14", True),
        ((">=0.5.14", "<=0.5.17"), ">0.5.14", None),
        ((">=0.5.14", "<=0.5.17"), "<0.5.18", True),
        ((">=0.5.14", "<=0.5.17"), "<=0.5.17", True),
        ((">=0.5.14", "<=0.5.17"), "<0.5.17", None),
        ((">=0.5.14", "<=0.5.17"), "<0.5.14", False),
        ((">=0.5.14", "<0.5.18"), ">=0.5.18", False),
        ((">=0.5.14", ""), ">=0.5.10", True),
        ((">=0.5.14", ""), "<0.5.20", None),
        (("", "<=0.5.3"), ">0.5.3", False),
        (("", ""), ">=0.1", None),
        (None, ">=0.1", None),
        ((">=0.5.14", "<=0.5.17"), "==0.5.13", False),
        ((">=0.5.14", "<=0.5.17"), "==0.5.15", None),
        ((">=0.5.14", "<=0.5.17"), "<0.5.10 or >=0.5.12", True),
    ],
)
def test_bracket(bracket: tuple[str, str] | None, constraint: str, expected: bool | None) -> None:
    assert satisfies(None, bracket, parse_constraint(constraint)) is expected


numbers = st.integers(0, 30).map(lambda n: f"0.5.{n}")


@given(numbers, numbers, numbers, numbers, st.sampled_from([">=", ">", "<=", "<", "==", "!="]))
def test_a_bracket_agrees_with_every_version_inside(low: str, high: str, inside: str, bound: str, sign: str) -> None:
    """Where a bracket decides, each version within it would decide the same."""
    if not parse_version(low) <= parse_version(inside) <= parse_version(high):
        return
    decided = compare(None, (f">={low}", f"<={high}"), sign, bound)
    if decided is not None:
        assert compare(inside, None, sign, bound) is decided


def test_a_banner_that_is_no_version_falls_back_to_the_bracket() -> None:
    assert compare("main-nightly", (">=0.5.14", ""), ">=", "0.5.14") is True
