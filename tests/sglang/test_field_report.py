"""The first field report: a hybrid 27B whose MTP draft cost twenty times the pool it needed."""

from __future__ import annotations

import pytest

from analyzer.diagnosis import RuleSet
from analyzer.sizing import check, model_for
from tests.sglang.read import sample

GIB = 1 << 30


def test_two_causes_are_priced_apart_and_add_up() -> None:
    run = sample("field_nextn_27b.log")
    model = model_for(run)
    assert model is not None
    facts = run.facts
    assert facts.value("pool.tokens") == 14161
    assert facts.value("draft.weights.loaded") == pytest.approx(5.53 * GIB)
    assert facts.value("sizing.charged_ratio") == pytest.approx(163840 / (32768 + 2048), rel=0.03)
    assert facts.value("draft.duplicate_vocab") == pytest.approx(2 * 248320 * 5120 * 2, rel=0.03)
    result = check(model, run)
    assert result.error is not None and abs(result.error) < result.margin
    shared = model.solve({"draft.duplicate_vocab": 0.0}).tokens
    assert shared == pytest.approx(45_000, rel=0.03), "what the reporter had after the first fix"
    both = model.solve({"draft.duplicate_vocab": 0.0, "sizing.cell": facts.value("sizing.stored_cell")}).tokens
    assert shared is not None and both == pytest.approx(4.7 * shared, rel=0.03), "and after the second"


def test_state_slots_allow_one_request() -> None:
    run = sample("field_nextn_27b.log")
    model = model_for(run)
    assert model is not None and model.solve().running == 1
    assert run.facts.value("limit.bound_by") == "state-slots"
    assert model.solve({"state.slots": 16.0}).running == 2, "the two that were asked for"


def test_findings_of_the_whole_log() -> None:
    run = sample("field_nextn_27b.log")
    judgement = RuleSet.load([]).judge(run, model_for(run))
    found = {finding.rule: finding for finding in judgement.findings}
    assert judgement.findings[0].rule == "KV002" and found["KV002"].severity == "critical"
    assert {"KV010", "CC001", "CC006", "CC011"} <= found.keys()
    assert found["KV002"].lost_tokens and found["KV010"].lost_tokens
    assert found["KV002"].lost_tokens + found["KV010"].lost_tokens == pytest.approx(212_000 - 14_161, rel=0.03)
    assert found["CC006"].explained_by == "KV002"
    assert "KV032" not in found, "the weights are large, but not what made the pool small"


def test_the_five_lines_of_the_article_name_what_they_lack() -> None:
    run = sample("field_nextn_27b_paste.log")
    model = model_for(run)
    judgement = RuleSet.load([]).judge(run, model)
    assert run.facts.value("state.slots") == 6 and run.facts.value("limit.running") == 1
    assert "CC001" in {finding.rule for finding in judgement.findings}
    assert not any(finding.severity == "critical" for finding in judgement.findings), "nothing is proved by five lines"
    undecided = {row.rule for row in judgement.undecided}
    assert {"KV001", "KV002"} <= undecided
    assert model is not None and any("sizing.fraction" in line for line in model.missing)
