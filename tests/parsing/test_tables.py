"""Kept parse tables give the parser that Lark itself makes; what does not fit is made anew."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from lark import Lark, Transformer

from analyzer.parsing.tables import load_lalr

GRAMMAR = """
start: item ("," item)*
item: NAME "=" NUMBER
NAME: /[a-z]+/
NUMBER: /[0-9]+/
%ignore " "
"""


class Pairs(Transformer):  # type: ignore[type-arg]
    def item(self, children: list[str]) -> tuple[str, int]:
        return str(children[0]), int(children[1])

    def start(self, children: list[tuple[str, int]]) -> dict[str, int]:
        return dict(children)


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KVAUTOPSY_CACHE", str(tmp_path))


def test_the_second_parser_is_as_the_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = load_lalr(GRAMMAR, Pairs(), lexer="basic")
    assert len(list(tmp_path.iterdir())) == 1

    def no_grammar(*_: object, **__: object) -> None:
        raise AssertionError("derived again")

    monkeypatch.setattr(Lark, "__init__", no_grammar)
    second = load_lalr(GRAMMAR, Pairs(), lexer="basic")
    assert first.parse("a=1, b = 22") == second.parse("a=1, b = 22") == {"a": 1, "b": 22}


@pytest.mark.parametrize(
    "content", ["[]", "{}", '{"data": {}, "memo": {"\\u0000int": [[0, 1]]}}', "3", '{"\\u0000int": 1}']
)
def test_what_does_not_fit_is_made_anew(content: str, tmp_path: Path) -> None:
    load_lalr(GRAMMAR, Pairs(), lexer="basic")
    (kept,) = tmp_path.iterdir()
    assert json.loads(kept.read_bytes())["data"]
    kept.write_text(content)
    assert load_lalr(GRAMMAR, Pairs(), lexer="basic").parse("x=7") == {"x": 7}
