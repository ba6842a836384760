"""What each sample log must be told, and what it must not be accused of."""

from __future__ import annotations

import pytest

from analyzer.diagnosis import RuleSet
from analyzer.sizing import check, model_for
from tests.sglang.read import SAMPLES, sample

EXPECTED: dict[str, set[str]] = {
    "dense_mf030.log": {"KV003"},
    "dense_retract.log": {"KV006", "CC006", "CC008", "CC009"},
    "dp_attention_spec_default.log": {"CC002", "CC007"},
    "field_nextn_27b.log": {"KV002", "KV010", "CC001", "CC006", "CC011"},
    "field_nextn_27b_paste.log": {"CC001"},
    "hybrid_nextn_ratio02.log": {"KV010", "CC001"},
    "mla_mf080.log": set(),
    "wrapper_nextn.log": {"KV002", "KV010", "SD001"},
    "wrapper_nextn_draftcfg1.log": {"KV010"},
    "wrapper_nospec.log": {"CC001"},
}
"""Warnings and worse."""


@pytest.mark.parametrize("name", sorted(path.name for path in SAMPLES.glob("*.log")))
def test_findings(name: str) -> None:
    if name not in EXPECTED:
        pytest.skip("a sample of another test")
    run = sample(name)
    judgement = RuleSet.load([]).judge(run, model_for(run))
    assert {f.rule for f in judgement.findings if f.severity != "info"} == EXPECTED[name]


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_the_model_reproduces_the_pool_or_says_what_it_lacks(name: str) -> None:
    run = sample(name)
    model = model_for(run)
    assert model is not None
    result = check(model, run)
    if result.error is None:
        assert result.missing
    else:
        assert abs(result.error) <= max(0.002, result.margin)
