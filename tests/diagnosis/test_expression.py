"""The expression language: what parses to what, what is refused, and in which words."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzer.diagnosis.expression import ExpressionError, parse, render
from analyzer.diagnosis.nodes import Node


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("1 + 2 * 3", ["+", ["n", 1, ""], ["*", ["n", 2, ""], ["n", 3, ""]]]),
        ("(1 + 2) * 3", ["*", ["+", ["n", 1, ""], ["n", 2, ""]], ["n", 3, ""]]),
        ("8 - 4 - 2", ["-", ["-", ["n", 8, ""], ["n", 4, ""]], ["n", 2, ""]]),
        ("4.5 GiB", ["n", 4.5 * 2**30, "bytes"]),
        ("262_144", ["n", 262144, ""]),
        ("20%", ["n", 0.2, "fraction"]),
        ("5 min", ["n", 300, "seconds"]),
        ("20480 bytes/token", ["n", 20480, "bytes_per_token"]),
        ("min(a, 2)", ["call", "min", [["f", "a"], ["n", 2, ""]]]),
        ("a or b and not c", ["or", ["f", "a"], ["and", ["f", "b"], ["not", ["f", "c"]]]]),
        ("-a.b < 3", ["<", ["neg", ["f", "a.b"]], ["n", 3, ""]]),
        ("order == android", ["==", ["f", "order"], ["f", "android"]]),
        ('x in ["a", 1]', ["in", ["f", "x"], [["s", "a", False], ["n", 1, ""]]]),
        ('x == "Qwen"i', ["==", ["f", "x"], ["s", "Qwen", True]]),
        (r'x == "say \"a\" b"', ["==", ["f", "x"], ["s", 'say "a" b', False]]),
        ("seen(kv_full)", ["call", "seen", [["s", "kv_full", False]]]),
        ('version >= "0.5"', [">=", ["v"], ["s", "0.5", False]]),
        ("x is known", ["known", ["f", "x"]]),
        ("true and none == x", ["and", ["b", True], ["==", ["none"], ["f", "x"]]]),
    ],
)
def test_text_to_tree(text: str, tree: Node) -> None:
    assert parse(text) == tree


def test_own_names_are_told_from_facts() -> None:
    assert parse("stored + pool.tokens", frozenset({"stored"})) == ["+", ["l", "stored"], ["f", "pool.tokens"]]


def test_backslashes_of_a_pattern_stay() -> None:
    node = parse(r'x ~ "a\d+\.b"')
    assert node[3] == ["s", r"a\d+\.b", False]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a +", "ends too early"),
        ("", "ends too early"),
        ("a @ b", "'@' at column 3"),
        ("a b", "'b' at column 3"),
        ("1 < 2 < 3", "out of place"),
        ("a.b.", "out of place"),
        ('x ~ "(a+)+"', "repeats a group that repeats"),
        ("x ~ y", "out of place"),
        ("seen(1 + 2)", "takes a name as it stands"),
        ("a" * 5000, "too long"),
        ("not " * 900 + "a", "levels deep"),
        ("-" * 3000 + "1", "levels deep"),
        ("(" * 3999, "ends too early"),
        ("9" * 60, "out of place"),
        ("1e999", "out of place"),
        ("__import__('os').system('true')", "out of place"),
    ],
)
def test_refusals_say_why(text: str, words: str) -> None:
    with pytest.raises(ExpressionError, match=words.replace("(", r"\(")):
        parse(text)


names = st.sampled_from(["pool.tokens", "args.x", "outcome", "stage"])
atoms = st.one_of(
    names.map(lambda n: ["f", n]),
    st.integers(0, 10**9).map(lambda n: ["n", n, ""]),
    st.sampled_from([["n", 2**30, "bytes"], ["n", 0.25, "fraction"], ["n", 60, "seconds"], ["b", True], ["none"]]),
    st.sampled_from([["s", "a b", False], ["s", 'q"uote', True], ["v"]]),
)


def larger(inner: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    two = st.tuples(inner, inner)
    return st.one_of(
        st.tuples(st.sampled_from(["+", "-", "*", "/", "and", "or", "<", "=="]), two).map(lambda x: [x[0], *x[1]]),
        st.tuples(st.sampled_from(["not", "neg", "known", "unknown"]), inner).map(list),
        st.tuples(st.sampled_from(["min", "default"]), two).map(lambda x: ["call", x[0], list(x[1])]),
        inner.map(lambda n: ["in", n, [["n", 1, ""], ["s", "x", False]]]),
    )


@given(st.recursive(atoms, larger, max_leaves=12))
@settings(max_examples=200, deadline=None)
def test_what_is_rendered_parses_to_the_same_tree(tree: Node) -> None:
    assert parse(render(tree)) == tree


@given(st.text(alphabet="ab.()[]\"'~<>=!+-*/%,0123456789 notinadrs\\", max_size=60))
@settings(max_examples=300, deadline=None)
def test_any_text_gives_a_tree_or_a_sentence(text: str) -> None:
    try:
        parse(text)
    except ExpressionError as error:
        assert str(error)
