"""Evaluation: Kleene's logic, arithmetic on what is known, and what an unknown value says it lacked."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.diagnosis.evaluate import Evaluator, Unknown
from analyzer.diagnosis.expression import parse
from analyzer.diagnosis.nodes import Node
from analyzer.diagnosis.templates import _shown, fill
from analyzer.diagnosis.view import RunView
from analyzer.events import Event
from analyzer.framing.record import Record
from analyzer.run.model import Failure, Frame
from tests.diagnosis.support import Model, make_run

FACTS = {
    "pool.tokens": 1000,
    "pool.bytes": "20 MiB",
    "pool.dtype": "torch.bfloat16",
    "spec.enabled": True,
    "gpu.free_before_load": {"TP0": "70 GiB", "TP1": "78 GiB"},
    "args.quantization": "FP8",
    "args.mem_fraction_static": "0.8",
    "args.chunked": -1,
    "args.flag": "True",
    "args.list": ["a", "b"],
}


def value(text: str, **fields: Any) -> Any:
    return Evaluator(RunView(make_run(FACTS, **fields)))(parse(text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("pool.bytes / pool.tokens", 20 * 2**20 / 1000),
        ("min(3, pool.tokens, 7)", 3),
        ("floor(7 / 2) + ceil(7 / 2) + round(2.4)", 9),
        ("abs(-3)", 3),
        ("round(3.14159, 2)", 3.14),
        ("spread(gpu.free_before_load)", 8 * 2**30),
        ("rank_max(gpu.free_before_load) == 78 GiB", True),
        ("gpu.free_before_load == 70 GiB", True),
        ("count_ranks(gpu.free_before_load)", 2),
        ("default(limit.running, 5)", 5),
        ("default(pool.tokens, 5)", 1000),
        ("known(limit.running) or pool.tokens is unknown", False),
        ("choose(spec.enabled, 1, limit.running)", 1),
        ('pool.dtype ~ "bfloat16$"', True),
        ('pool.dtype !~ "fp8"', True),
        ('args.quantization == "fp8"', False),
        ('args.quantization == "fp8"i', True),
        ('lower(args.quantization) in ["fp8", "awq"]', True),
        ('args.quantization not in ["fp8"i]', False),
        ("args.mem_fraction_static * 2", 1.6),
        ("args.chunked == -1 and args.flag", True),
        ('contains(args.list, "b") and not contains(args.list, "c")', True),
        ('contains(pool.dtype, "float")', True),
        ("length(args.list)", 2),
        ('engine.name == "sglang" and outcome == "unknown"', True),
        ('failure.exception ~ "Error"', False),
    ],
)
def test_values(text: str, expected: Any) -> None:
    assert value(text) == expected


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("limit.running + 1", {"limit.running"}),
        ("limit.running > 3 and state.slots > 1", {"limit.running", "state.slots"}),
        ("limit.running > 3 and spec.enabled", {"limit.running"}),
        ("pool.tokens / 0", set()),
        ("pool.dtype * 1", set()),
        ("args.quantization > 3", set()),
        ('args.nothing ~ "x"', {"args.nothing"}),
        ("default(limit.running, state.slots)", {"state.slots"}),
        ("spread(weights.loaded)", {"weights.loaded"}),
        ('version >= "0.5"', {"engine.version"}),
    ],
)
def test_unknown_says_what_it_lacked(text: str, missing: set[str]) -> None:
    if "dtype *" in text:
        text = text.replace("pool.dtype", "args.quantization")
    result = value(text)
    assert isinstance(result, Unknown)
    assert result.missing == missing
    assert result.missing or result.why


TRUTHS: dict[str, Node] = {"t": ["b", True], "f": ["b", False], "u": ["f", "limit.running"]}
ORDER = {"f": 0, "u": 1, "t": 2}


def truth(node: Node) -> str:
    result = Evaluator(RunView(make_run())).truth(node)
    return "u" if isinstance(result, Unknown) else "t" if result else "f"


@pytest.mark.parametrize(("a", "b"), list(product("tfu", repeat=2)))
def test_kleene_tables(a: str, b: str) -> None:
    assert ORDER[truth(["and", TRUTHS[a], TRUTHS[b]])] == min(ORDER[a], ORDER[b])
    assert ORDER[truth(["or", TRUTHS[a], TRUTHS[b]])] == max(ORDER[a], ORDER[b])
    assert ORDER[truth(["not", TRUTHS[a]])] == 2 - ORDER[a]


logic = st.recursive(
    st.sampled_from(list(TRUTHS.values())),
    lambda inner: st.one_of(
        st.tuples(st.sampled_from(["and", "or"]), inner, inner).map(list),
        inner.map(lambda n: ["not", n]),
    ),
    max_leaves=10,
)


@given(logic, logic, logic)
def test_kleene_laws(a: Node, b: Node, c: Node) -> None:
    assert truth(["and", a, b]) == truth(["and", b, a])
    assert truth(["or", a, ["or", b, c]]) == truth(["or", ["or", a, b], c])
    assert truth(["not", ["and", a, b]]) == truth(["or", ["not", a], ["not", b]])
    assert truth(["and", a, ["or", b, c]]) == truth(["or", ["and", a, b], ["and", a, c]])
    assert truth(["not", ["not", a]]) == truth(a)


@given(logic)
def test_more_knowledge_never_overturns_a_decision(tree: Node) -> None:
    """What is decided without a fact stays so whatever the fact turns out to be."""
    before = truth(tree)
    for known in (0, 1):
        after = Evaluator(RunView(make_run({"limit.running": known}))).truth(tree)
        if before != "u":
            assert after is (before == "t")


def test_unknown_cannot_be_mistaken_for_false() -> None:
    with pytest.raises(TypeError):
        bool(Unknown())


def test_events_of_the_run() -> None:
    events = [Event("kv_full", "sglang", Record("test", n, n, "x"), {"tokens": n}) for n in (4, 9)]
    assert value("count(kv_full)", events=events) == 2
    assert value("seen(kv_full) and not seen(other)", events=events) is True
    assert value("field(kv_full, tokens)", events=events) == 9
    assert isinstance(value("field(kv_full, bytes)", events=events), Unknown)
    assert value("count(kv_full)", events=events, kinds={"kv_full": 70}) == 70


def test_series_by_path() -> None:
    assert value("series(running.max)", series={"running": {"max": 7}}) == 7
    assert isinstance(value("series(running.min)", series={"running": {"max": 7}}), Unknown)


def test_failure_of_the_run() -> None:
    failure = Failure("ValueError", "too large", (), frames=(Frame("a/scheduler.py", 3, "run"),), stage="pool")
    assert value('failure.exception == "ValueError" and failure.stage == "pool"', failures=[failure]) is True
    assert value('failure.frames ~ "scheduler.py:run$"', failures=[failure]) is True


def test_inputs_of_the_model_stand_in_for_facts() -> None:
    model = Model(lambda i: 1.0, {"sizing.cell": 7.0, "pool.tokens": 5.0}, calibrated=("sizing.cell",))
    evaluate = Evaluator(RunView(make_run(FACTS), model))
    assert evaluate(parse("sizing.cell")) == 7.0
    assert evaluate(parse("pool.tokens")) == 1000
    assert evaluate(parse("calibrated(sizing.cell)")) is True
    assert evaluate(parse("calibrated(pool.tokens)")) is False


def test_a_name_that_needs_itself_is_unknown() -> None:
    evaluate = Evaluator(RunView(make_run()), {"a": ["l", "a"]})
    assert isinstance(evaluate(["l", "a"]), Unknown)


def test_a_long_message_is_cut_at_the_end_of_a_sentence() -> None:
    long = "Out of memory. " + "Some words and more. " * 20
    assert _shown(long, "name", "").endswith("words and more") and len(_shown(long, "name", "")) < 300
    assert _shown("x" * 400, "name", "") == "x" * 299 + "…"
    assert fill(["It said: ", [parse("a"), "name", ""], "."], lambda _: "x" * 400).endswith("xxx…")
    assert (_shown(0.125, "fraction", ".0%"), _shown(0.125, "fraction", ".1%")) == ("12 %", "12.5 %")
