"""What a contributor gets to read when a grammar file is wrong: file, line and what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from analyzer.parsing.build import read_shapes
from analyzer.parsing.syntax import read_grammar

TERMINALS = """// @type int @unit tokens
INT: /[0-9]+/
TEXT: /[^\\n]+?/
WORD: /[^\\s,]+/
"""

GOOD = "// 1.0 | INFO | x\n//= a sample 1\n"


def _problems(tmp_path: Path, text: str, terminals: str = TERMINALS) -> list[str]:
    (tmp_path / "sglang").mkdir()
    (tmp_path / "terminals.lark").write_text(terminals)
    (tmp_path / "sglang" / "a.lark").write_text(text)
    return [str(problem) for problem in read_shapes(tmp_path)[1]]


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        (GOOD + 'a: "a sample " COUNTER\n', "sglang/a.lark:3", "COUNTER is not defined in terminals.lark"),
        (GOOD + 'a: "a sample " n\n', "sglang/a.lark:3", "n is not defined in this file"),
        (GOOD + 'a: "a sample " _b\n_b: "x" [_b]\n', "sglang/a.lark:4", "_b contains itself"),
        (GOOD + 'a: "a sample " (n)+\nn: INT\n', "sglang/a.lark:3", "field n in a repetition"),
        (GOOD + "a: n\nn: INT\n", "sglang/a.lark:3", "no literal"),
        (GOOD + 'a: "a sample " n | n\nn: INT\n', "sglang/a.lark:3", "no literal"),
        ('// 1.0 | INFO | x\na: "a sample " n\nn: INT\n', "sglang/a.lark:2", "no sample"),
        ('//= a sample 1\na: "a sample " n\nn: INT\n', "sglang/a.lark:2", "no versions"),
        (GOOD + 'a: "a sample " /[0-9]+/\n', "sglang/a.lark:3", "define a terminal"),
        (GOOD + 'a: "a sample " b\nb: INT "x"\n', "sglang/a.lark:3", "begin a fragment's name with _"),
        (GOOD + 'a: "a sample " (WORD (" " WORD)*)*\n', "sglang/a.lark:3", "take forever"),
        (GOOD + 'a: "a sample " n\nn: INT\nn: INT\n', "sglang/a.lark:5", "already defined in line 4"),
        (GOOD + '?a: "a sample " n\nn: INT\n', "sglang/a.lark:3", "plain name"),
        (GOOD + 'a: "a sample " n -> b\nn: INT\n', "sglang/a.lark:3", "second name"),
        (GOOD + 'a: "a sample \\d"\n', "sglang/a.lark:3", "is no escape"),
        (GOOD + 'a: "a sample\n', "sglang/a.lark:3", "not a Lark grammar"),
        ('%ignore " "\n', "sglang/a.lark:1", "rules and terminals only"),
        (GOOD + 'a: "a sample " N\nN: /(?=x)1/\n', "sglang/a.lark:4", "look-around"),
        (GOOD + 'a: "a sample " N\nN: /(a)1/\n', "sglang/a.lark:4", "capturing"),
        (GOOD + 'a: "a sample " N\nN: /[0-9]*/\n', "sglang/a.lark:4", "match nothing"),
        (GOOD + 'a: "a sample " N\nN: /(?:a+)+/\n', "sglang/a.lark:4", "take forever"),
        (GOOD + 'a: "a sample " N\n// @type integer\nN: /1/\n', "sglang/a.lark:5", "@type integer is unknown"),
        (
            GOOD + 'a: "a sample " TEXT ", " TEXT ", " TEXT "; " TEXT "."\n',
            "sglang/a.lark:3",
            "4 fields can run over",
        ),
        (GOOD + 'a: "a s"\n', "sglang/a.lark:3", "in many lines"),
    ],
)
def test_what_is_said(tmp_path: Path, text: str, place: str, words: str) -> None:
    problems = _problems(tmp_path, text)
    assert any(problem.startswith(f"{place}:") and words in problem for problem in problems), problems


def test_same_kind_twice_in_an_engine(tmp_path: Path) -> None:
    (tmp_path / "sglang").mkdir()
    (tmp_path / "sglang" / "b.lark").write_text(GOOD + 'a: "a sample " n\nn: INT\n')
    (tmp_path / "terminals.lark").write_text(TERMINALS)
    (tmp_path / "sglang" / "a.lark").write_text(GOOD + 'a: "a sample " n\nn: INT\n')
    shapes, problems = read_shapes(tmp_path)
    assert len(shapes) == 1
    assert str(problems[0]) == "sglang/b.lark:3: a is already a shape in sglang/a.lark:3"


def test_a_wrong_rule_does_not_take_the_others_along(tmp_path: Path) -> None:
    (tmp_path / "sglang").mkdir()
    (tmp_path / "terminals.lark").write_text(TERMINALS)
    (tmp_path / "sglang" / "a.lark").write_text(GOOD + 'a: "a sample " m\n' + GOOD + 'b: "a sample " n\nn: INT\n')
    shapes, problems = read_shapes(tmp_path)
    assert [shape.kind for shape in shapes] == ["b"]
    assert len(problems) == 1


def test_comments_above_a_rule() -> None:
    """Versions, meaning, samples with further lines; a comment behind code or apart from the rule is not one."""
    text = (
        "// apart\n\n// 0.4.5..0.5.8 | INFO | first\n// 0.5.9.post1.. | later\n// ..0.3 | old\n// 0.6 | one\n"
        '// what it means\n//= line one\n//+ line two\n//= other\nrule: "x" // behind\nnext: "y"\n'
    )
    rule, following = read_grammar(text, "f").definitions.values()
    assert [(note.first, note.last) for note in rule.notes] == [
        ("0.4.5", "0.5.8"),
        ("0.5.9.post1", ""),
        ("", "0.3"),
        ("0.6", "0.6"),
    ]
    assert rule.meaning == "what it means"
    assert rule.samples == [(8, "line one\nline two"), (10, "other")]
    assert not following.meaning
