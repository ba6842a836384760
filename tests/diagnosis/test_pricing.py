"""Costs: largest first, each on top of the last, so that they add up."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzer.diagnosis.pricing import Bill, price
from tests.diagnosis.support import Model, make_run, rules

INPUTS = {"sizing.budget": 40e9, "sizing.cell": 80_000.0, "state.bytes": 8e9}


def tokens(inputs: Mapping[str, float]) -> float:
    return (inputs["sizing.budget"] - inputs["state.bytes"]) / inputs["sizing.cell"]


def model(**changes: Any) -> Model:
    return Model(tokens, INPUTS, **changes)


CELL = "id: KV901\nwhen: 'true'\nhealthy: {sizing.cell: 20000 bytes/token}"
BUDGET = "id: KV902\nwhen: 'true'\nhealthy: {sizing.budget: sizing.budget + gpu.foreign}"
MORE = "id: KV903\nwhen: 'true'\nhealthy: {sizing.budget: sizing.budget + weights.loaded}"
SAME = "id: KV904\nwhen: 'true'\nhealthy: {sizing.cell: 40000 bytes/token}"
FACTS = {"pool.tokens": 400_000, "gpu.foreign": 4e9, "weights.loaded": 1e9, "pool.bytes": 8e9}


def test_costs_add_up_to_the_mended_pool() -> None:
    found = {f.rule: f for f in rules(CELL, BUDGET, MORE).judge(make_run(FACTS), model()).findings}
    assert found["KV901"].lost_tokens == pytest.approx(1_200_000)
    assert found["KV902"].lost_tokens == pytest.approx(4e9 / 20_000)
    assert found["KV903"].lost_tokens == pytest.approx(1e9 / 20_000)
    assert found["KV903"].pool_if_fixed == pytest.approx(37e9 / 20_000)
    assert found["KV901"].pool_if_fixed == pytest.approx(1_600_000)
    assert found["KV901"].lost_bytes == pytest.approx(1_200_000 * 20_000)
    assert sum(f.lost_tokens or 0 for f in found.values()) == pytest.approx(37e9 / 20_000 - 400_000)


def test_findings_that_mend_the_same_thing_do_not_count_twice() -> None:
    found = {f.rule: f for f in rules(CELL, SAME).judge(make_run(FACTS), model()).findings}
    assert found["KV901"].lost_tokens == pytest.approx(1_200_000)
    assert found["KV904"].lost_tokens == 0
    assert "mended by the findings before it" in found["KV904"].note


def test_faults_are_priced_before_choices() -> None:
    choice = CELL + "\nseverity: info"
    found = {f.rule: f for f in rules(choice, BUDGET).judge(make_run(FACTS), model()).findings}
    assert found["KV902"].lost_tokens == pytest.approx(4e9 / 80_000)
    assert found["KV902"].pool_if_fixed == pytest.approx(450_000)
    assert found["KV901"].lost_tokens == pytest.approx(36e9 / 20_000 - 450_000)


def test_a_mending_that_shrinks_the_pool_is_no_cost() -> None:
    text = "id: KV901\nwhen: 'true'\nhealthy: {sizing.cell: 160000 bytes/token}"
    found = rules(text).judge(make_run(FACTS), model()).findings[0]
    assert found.lost_tokens is None
    assert found.pool_if_fixed == pytest.approx(200_000)
    assert "200,000 tokens smaller" in found.note


@pytest.mark.parametrize(
    ("facts", "given", "words"),
    [
        ({**FACTS, "pool.tokens": 500_000}, model(), "20.0% off"),
        ({"gpu.foreign": 4e9}, model(), "does not say how large the pool is"),
        (FACTS, None, "lacks inputs of the sizing formula"),
        (FACTS, Model(lambda i: None, INPUTS), "lacks inputs of the sizing formula"),
    ],
)
def test_findings_fire_unpriced_where_the_model_does_not_reproduce_the_pool(
    facts: dict[str, Any], given: Model | None, words: str
) -> None:
    result = rules(BUDGET).judge(make_run(facts), given)
    assert [(f.rule, f.lost_tokens, f.pool_if_fixed) for f in result.findings] == [("KV902", None, None)]
    assert words in result.notes[0]


def test_a_wide_margin_prices_and_keeps_the_rest_unexplained() -> None:
    result = rules(CELL).judge(make_run({**FACTS, "pool.tokens": 380_000}), model(margin=0.06))
    assert result.findings[0].lost_tokens == pytest.approx(1_200_000)
    assert result.findings[0].pool_if_fixed == pytest.approx(1_580_000)
    assert result.unexplained_tokens is None  # within the margin: rounding
    result = rules(CELL).judge(make_run({**FACTS, "pool.tokens": 397_000}), model(margin=0.0001))
    assert result.unexplained_tokens == pytest.approx(3_000)


def test_an_input_the_model_does_not_have() -> None:
    found = (
        rules("id: KV901\nwhen: 'true'\nhealthy: {sizing.fraction: 90%}").judge(make_run(FACTS), model()).findings[0]
    )
    assert found.lost_tokens is None
    assert "no such input" in found.note


def test_a_healthy_value_that_cannot_be_had() -> None:
    found = (
        rules("id: KV901\nwhen: 'true'\nhealthy: {sizing.budget: gpu.total}")
        .judge(make_run(FACTS), model())
        .findings[0]
    )
    assert found.lost_tokens is None


def bill(changes: list[tuple[str, float, bool]]) -> Bill:
    def healthy(name: str, value: float, relative: bool) -> Any:
        return lambda mended: {name: mended.get(name, INPUTS[name]) + value if relative else value}

    return price([healthy(*c) for c in changes], make_run({"pool.tokens": 400_000}), model())


change = st.one_of(
    st.tuples(st.just("sizing.budget"), st.floats(1e6, 4e10), st.just(True)),
    st.tuples(st.just("sizing.cell"), st.floats(5e3, 1e5), st.just(False)),
    st.tuples(st.just("state.bytes"), st.floats(0, 9e9), st.just(False)),
)


@given(st.lists(change, min_size=1, max_size=4))
@settings(max_examples=60, deadline=None)
def test_costs_add_up_and_do_not_depend_on_the_order_of_the_rules(changes: list[tuple[str, float, bool]]) -> None:
    sums = set()
    for order in permutations(changes):
        made = bill(list(order))
        total = sum(p.lost_tokens or 0.0 for p in made.prices)
        assert total == pytest.approx(tokens({**INPUTS, **made.applied}) - 400_000, abs=len(changes) + 1)
        assert all((p.lost_tokens or 0) >= 0 for p in made.prices)
        sums.add(round(total, 3))
    assert max(sums) - min(sums) <= 1e-6 * max(sums) + len(changes)


@given(st.lists(change, min_size=2, max_size=4))
@settings(max_examples=40, deadline=None)
def test_each_step_takes_the_largest_gain_left(changes: list[tuple[str, float, bool]]) -> None:
    made = bill(changes)
    priced = sorted((p for p in made.prices if p.lost_tokens), key=lambda p: p.pool_if_fixed or 0)
    pools = [400_000.0, *(p.pool_if_fixed or 0 for p in priced)]
    for before, step in zip(pools, priced, strict=False):
        assert step.pool_if_fixed == pytest.approx(before + (step.lost_tokens or 0))
