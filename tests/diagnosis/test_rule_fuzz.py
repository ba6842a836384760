"""Damaged rule files and any bytes at all: sentences, never an exception; what still compiles can be judged."""

from __future__ import annotations

from functools import cache

from hypothesis import given, settings
from hypothesis import strategies as st

from analyzer.diagnosis import testing
from analyzer.diagnosis.compiler import compile_value
from analyzer.diagnosis.rule import Rule
from analyzer.diagnosis.ruleset import RuleSet
from analyzer.diagnosis.yamlfile import FileError, load_yaml
from analyzer.resources import data_dir
from tests.diagnosis.support import make_run


@cache
def shipped() -> list[str]:
    return [p.read_text(encoding="utf-8") for p in sorted(data_dir("rules").rglob("*.yaml"))[::9]]


def compiles(content: bytes) -> Rule | None:
    """The rule in ``content``, or None after it was told what is wrong."""
    try:
        value = load_yaml(content)
    except FileError as error:
        assert str(error)
        return None
    result = compile_value(value, "x.yaml")
    assert (result["rule"] is None) == bool(result["problems"])
    for sentence in result["problems"] + result["lint"]:
        assert sentence.startswith("x.yaml: ")
        assert "\n" not in sentence
    return Rule.from_json(result["rule"]) if result["rule"] is not None else None


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_a_damaged_rule(data: st.DataObject) -> None:
    text = data.draw(st.sampled_from(shipped()))
    at = data.draw(st.integers(0, len(text)))
    cut = data.draw(st.integers(0, 12))
    new = data.draw(st.text(alphabet="(){}[]'\":,.*+?\\|-~<>=&!%#@ \nabz019_", max_size=6))
    made = compiles((text[:at] + new + text[at + cut :]).encode())
    if made is not None:
        testing.run([made])
        RuleSet((made,)).judge(make_run({"pool.tokens": 1000}))


@given(st.binary(max_size=300))
@settings(max_examples=100, deadline=None)
def test_any_bytes(content: bytes) -> None:
    compiles(content)


def test_undamaged_rules_compile() -> None:
    assert all(compiles(text.encode()) is not None for text in shipped())
