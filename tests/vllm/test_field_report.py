"""The field report of two nodes (TP 2) with and without an MTP layer: figures of each node, and the pool exactly."""

from __future__ import annotations

import pytest

from analyzer.run.facts import Fact, Where
from analyzer.run.model import Run
from analyzer.sizing import check, model_for
from analyzer.sizing.vllm_blocks import group_layers, hybrid_block_tokens
from analyzer.units import GIB
from tests.vllm.read import sample

CONTEXT = 262_144
KV_BYTES = 2 * 2 * 256
"""fp8 keys and values of 2 KV heads of 256 on each of two ranks: bytes of one token and attention layer."""


def state_bytes(draft_tokens: int) -> int:
    """One gated-delta-net state on one of two ranks: 48 value and 16 key heads of 128, window of 4, float32."""
    convolution = (2 * 128 * 16 + 128 * 48) // 2 * (4 - 1 + draft_tokens) * 2
    return convolution + 48 // 2 * 128 * 128 * 4


def with_model(run: Run, draft_tokens: int) -> Run:
    """The run with what its model folder says: 64 layers, every fourth with attention, one MTP layer."""
    values = {
        "model.attention_layers": 16,
        "model.window_layers": 0,
        "model.state_layers": 48,
        "model.cell": 16 * KV_BYTES,
        "model.state_slot_bytes": 48 * state_bytes(draft_tokens),
    }
    if draft_tokens:
        values["draft.layers"] = 1
    for name, value in values.items():
        run.facts.put(Fact(name, value, "any", (Where("config.json"),), {"": value}, "model-dir"))
    return run


@pytest.mark.parametrize(
    ("name", "weights", "head", "worker", "tokens", "concurrency"),
    [
        ("two_nodes_plain.log", 10.67, 74.64, 74.27, 4_676_407, 17.84),
        ("two_nodes_mtp.log", 11.07, 73.97, 73.81, 4_305_153, 16.42),
    ],
)
def test_each_node_keeps_its_own_figures(
    name: str, weights: float, head: float, worker: float, tokens: int, concurrency: float
) -> None:
    facts = sample(name).facts
    available = facts.get("pool.available_bytes")
    assert available is not None
    assert available.ranks == {"Worker_TP0": pytest.approx(head * GIB), "Worker_TP1": pytest.approx(worker * GIB)}
    assert available.value == pytest.approx(worker * GIB), "the smaller node decides; nothing is summed"
    loaded = facts.get("weights.loaded")
    assert loaded is not None
    assert loaded.value == pytest.approx(weights * GIB)
    assert len(loaded.ranks) == 2
    assert facts.value("pool.tokens") == tokens
    assert facts.value("limit.concurrency") == concurrency
    assert facts.value("limit.context") == CONTEXT
    assert facts.value("sizing.fraction") == 0.75


@pytest.mark.parametrize("name", ["two_nodes_plain.log", "two_nodes_mtp.log"])
def test_ledger_and_concurrency_close(name: str) -> None:
    run = sample(name)
    model = model_for(run)
    assert model is not None
    result = check(model, run)
    assert result.error == pytest.approx(0, abs=1e-3)
    assert not result.missing
    assert not result.calibrated


@pytest.mark.parametrize(
    ("name", "draft_tokens", "tokens", "block"),
    [("two_nodes_plain.log", 0, 4_676_407, 1568), ("two_nodes_mtp.log", 1, 4_305_153, 1584)],
)
def test_geometry_gives_the_printed_pool_to_the_token(name: str, draft_tokens: int, tokens: int, block: int) -> None:
    state = state_bytes(draft_tokens)
    assert hybrid_block_tokens(state, KV_BYTES) == block
    run = with_model(sample(name), draft_tokens)
    model = model_for(run)
    assert model is not None
    # the ledger's rounding moves the pool by a block or two; the printed memory gives it exactly
    assert model.solve().tokens == pytest.approx(tokens, rel=1e-3)
    model.ledger = None  # type: ignore[attr-defined]
    assert model.solve().tokens == tokens


def test_mtp_layer_adds_padding_layers() -> None:
    assert group_layers((16, 48), (0, 27)).padding == 0
    with_draft = group_layers((17, 48), (0, 27))
    assert (with_draft.size, with_draft.total, with_draft.padding) == (17, 4, 3)
    facts = sample("two_nodes_mtp.log").facts
    assert facts.value("pool.padding_layers") == 3
    assert facts.value("pool.padding_waste") == pytest.approx(3 / 48, abs=1e-4)


def test_without_the_draft_the_pool_is_larger() -> None:
    run = with_model(sample("two_nodes_mtp.log"), 1)
    model = model_for(run)
    assert model is not None
    now = model.solve().tokens
    without = model.solve({"draft.layers": 0, "spec.draft_tokens": 0}).tokens
    assert now is not None and without is not None
    assert without > 1.05 * now


def test_speculation_is_proved_by_four_layers_of_lines() -> None:
    facts = sample("two_nodes_mtp.log").facts
    assert facts.value("spec.enabled") is True
    assert facts.value("spec.method") == "mtp"
    assert facts.value("spec.draft_tokens") == 1
    assert facts.value("draft.arch") == "Qwen3_5MTP"
    assert (facts.value("spec.drafted"), facts.value("spec.accepted")) == (54, 41)
    assert facts.value("spec.acceptance") == pytest.approx(41 / 54, abs=1e-3)
    assert facts.value("spec.accept_length") == pytest.approx(1.76)
    assert sample("two_nodes_plain.log").facts.value("spec.enabled") is False


def test_worker_node_alone_has_no_pool_but_its_memory() -> None:
    run = sample("two_nodes_mtp_worker.log")
    assert "pool.tokens" not in run.facts
    assert run.facts.value("pool.available_bytes") == pytest.approx(73.81 * GIB)
    assert not run.failures
