"""Searches: what they find, what is refused, and that they stay linear."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzer.diagnosis.patterns import PatternError, compile_pattern, literals, search


def found(pattern: str, text: str) -> bool:
    return search(compile_pattern(pattern), text)


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("out of memory", "CUDA out of memory.", True),
        ("Out of memory", "CUDA out of memory.", False),
        ("(?i)OUT of memory", "CUDA out of Memory.", True),
        ("Tried .* GiB", "Tried to allocate 2.0 GiB", True),
        ("first.*then", "first\nand\nthen", True),
        ("then.*first", "first then", False),
        (r"free \d+\.\d+ GiB", "free 10.25 GiB", True),
        (r"a|b\.c", "xb.c", True),
        (r"a|b\.c", "xbdc", False),
        ("^ValueError$", "x\nValueError\ny", True),
        (r"(?:TP|DP)\d+ (?:died|crashed)", "rank TP12 crashed", True),
        (r"[^,]+, [^,]+,", "a, b, c", True),
        (r"\[rank\d\]:.*Error", "[rank3]: Some RuntimeError", True),
        (r"\d+ of .*\d+", "3 of about 55", True),
        ("a.{0,5}b", "a123b", True),
        ("a.{0,5}b", "a1234567b", False),
    ],
)
def test_search(pattern: str, text: str, expected: bool) -> None:
    assert found(pattern, text) is expected


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("(a+)+b", "repeats a group"),
        ("(a|aa)+b", ""),
        (r"x(\d+,?)*y", "repeats a group"),
        (r"a\d+\w+", "same characters"),
        (r"a\s*\s*b", "same characters"),
        (r"a[a-z]+x?[a-m]+", "same characters"),
        (r"(a)\1", "refers back"),
        ("(?=a)b", "looks around"),
        ("(?<!a)b", "looks around"),
        ("a(?i)b", "no pattern"),
        ("(?P<x>a)(?P=x)", "looks around, refers back"),
        ("a{1,5000}", "1,000 times"),
        ("(ab{1,900}){1,900}", "repeats a group"),
        ("x[a]{1,900}y[b]{1,900}z", "too many"),
        (".*", "finds everything"),
        ("", "finds everything"),
        ("a(", "no pattern"),
        ("x" * 700, "longer than"),
        ("(((((((((a)))))))))", "nested too deep"),
    ],
)
def test_refused(pattern: str, words: str) -> None:
    if not words:
        compile_pattern(pattern)
        return
    with pytest.raises(PatternError, match=words):
        compile_pattern(pattern)


def test_plain_pieces_need_no_expression() -> None:
    assert compile_pattern(r"CUDA error: .*illegal memory\.") == [False, [["CUDA error: ", "illegal memory."]]]
    assert literals(compile_pattern(r"at \d+ bytes|b")) == [[" bytes"], ["b"]]


def test_only_the_ends_of_a_huge_text_are_searched() -> None:
    assert found("needle", "needle" + "x" * 10**6)
    assert found("needle", "x" * 10**6 + "needle")
    assert not found("needle", "x" * 10**5 + "needle" + "x" * 10**5)


HARD = [
    r"^\s*x", r"(?:^|\n)\s*y", r"a[a-z]+!", r"\d+ GiB", r"a[^b]+c", r"^\s+x", r"(?:ab)+c", r"\S+: \S+: x",
    "a.*b.*c.*d", r"x\w{0,100}y", r"\w+\(\d+\)",
]  # fmt: skip
WORST = ["1", "a", " ", "\n", "ab", "x", "a: ", "(1", "a" * 99 + "\n"]


@pytest.mark.parametrize("pattern", HARD)
def test_worst_lines_take_no_time(pattern: str) -> None:
    compiled = compile_pattern(pattern)
    started = time.perf_counter()
    for unit in WORST:
        search(compiled, unit * (100_000 // len(unit)))
    assert time.perf_counter() - started < 2


@given(st.text(alphabet=r"ab\d+*?.|()[]{}^$,1-", max_size=14), st.text(alphabet="ab1,. ", max_size=40))
@settings(max_examples=400, deadline=1000)
def test_any_pattern_is_refused_or_works(pattern: str, text: str) -> None:
    try:
        compiled = compile_pattern(pattern)
    except PatternError:
        return
    result = search(compiled, text)
    if re.search(pattern, text, re.DOTALL | re.MULTILINE) is None:
        assert not result
