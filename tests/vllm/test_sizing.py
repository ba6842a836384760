"""vLLM's formulas by version, on published figures and on made lines."""

from __future__ import annotations

import pytest

from analyzer.run.facts import Fact
from analyzer.run.model import Run
from analyzer.run.vllm_version import version_key
from analyzer.sizing import check, model_for
from analyzer.sizing.vllm_blocks import (
    full_blocks,
    group_layers,
    hybrid_block_tokens,
    printed_tokens,
    state_blocks,
    window_blocks,
)
from analyzer.sizing.vllm_hybrid import HybridPlan
from analyzer.units import GIB
from tests.vllm.read import line, read


def run_with(version: str, **facts: object) -> Run:
    """A run with facts given as ``pool__tokens=…``."""
    run = Run(1, "server.log", engine="vllm", version=version)
    for name, value in facts.items():
        key = name.replace("__", ".", 1)
        run.facts.put(Fact(key, value, "any", (), {"": value}))
    return run


@pytest.mark.parametrize(
    ("state", "per_token", "block"),
    [
        (2_134_016, 512, 4176),  # Mamba2, 64 heads x 64 x 128 in float32, fp8 KV
        (2_146_304, 2048, 1056),  # gated delta net in float32
        (1_097_728, 2048, 544),  # the same in bf16
    ],
)
def test_block_covers_one_state(state: int, per_token: int, block: int) -> None:
    assert hybrid_block_tokens(state, per_token) == block


def test_groups_by_version() -> None:
    assert group_layers((13, 12), (0, 11)).padding == 11
    assert group_layers((13, 12), (0, 12)).padding == 1
    assert group_layers((10, 52), (0, 11)) == group_layers((10, 52), (0, 30))
    assert group_layers((10, 52), (0, 11)).counts == (1, 6)
    assert group_layers((32,), (0, 20)).total == 1


def test_blocks_of_a_request() -> None:
    assert full_blocks(16_384, 16) + window_blocks(16_384, 16, 128, 2048) == 1161
    assert state_blocks(262_144, 544, (0, 22), "align", 2) == 4
    assert state_blocks(262_144, 544, (0, 22), "none", 0) == 1
    assert state_blocks(262_144, 544, (0, 10), "align", 2) == 1


@pytest.mark.parametrize(
    ("plan", "size", "context", "in_flight", "tokens"),
    [
        # 18 full and 18 windowed layers, 2 KV heads x 64 in bf16 on each of four ranks (published, 0.10.1)
        (HybridPlan(18, 512, (0, 10, 1), 18, 128), 45.32 * GIB, 16_384, 2048, 2_640_144),
        # 10 full and 52 windowed layers, 16 KV heads x 128 in bf16 (published, 0.11.0rc2): 7 groups
        (HybridPlan(10, 8192, (0, 11, 0), 52, 1024), 109.86 * GIB, 4096, 8192, 205_696),
    ],
)
def test_windowed_models(plan: HybridPlan, size: float, context: int, in_flight: int, tokens: int) -> None:
    values = {"limit.context": context, "args.max_num_batched_tokens": in_flight}
    steps: list[str] = []
    assert plan.tokens(size, values, steps) == pytest.approx(tokens, rel=2e-4)
    assert steps


def test_meaning_of_the_printed_tokens_changed() -> None:
    """The same 3,212 blocks: a quarter of them counted up to 0.20.0, the capacity from 0.20.1 on."""
    concurrency = 3212 / (full_blocks(262_144, 544) + 3)
    assert printed_tokens(3212, 4, 544, version_key("0.20.0"), concurrency, 262_144) == 436_832
    assert printed_tokens(3212, 4, 544, version_key("0.20.1"), concurrency, 262_144) > 1_700_000
    assert printed_tokens(3212, 4, 544, version_key("0.20.1.dev0"), concurrency, 262_144) == 436_832


def test_swap_blocks_give_the_block_size_of_v0() -> None:
    log = (
        "INFO 12-10 10:00:00 llm_engine.py:249] Initializing an LLM engine (v0.6.5) with config: model='m', "
        "speculative_config=None, max_seq_len=4096, tensor_parallel_size=1\n"
        "INFO 12-10 10:00:10 worker.py:241] Memory profiling takes 2.61 seconds\r\n"
        "INFO 12-10 10:00:10 worker.py:241] the current vLLM instance can use total_gpu_memory (21.95GiB) x "
        "gpu_memory_utilization (0.80) = 17.56GiB\r\n"
        "INFO 12-10 10:00:10 worker.py:241] model weights take 6.47GiB; non_torch_memory takes 0.33GiB; PyTorch "
        "activation peak memory takes 0.74GiB; the rest of the memory reserved for KV Cache is 10.02GiB.\n"
        "INFO 12-10 10:00:10 gpu_executor.py:76] # GPU blocks: 23460, # CPU blocks: 9362\n"
        "INFO 12-10 10:00:10 gpu_executor.py:80] Maximum concurrency for 4096 tokens per request: 91.64x\n"
    )
    run = read(log)
    model = model_for(run)
    assert model is not None
    assert model.inputs["pool.block_bytes"] == pytest.approx(4 * GIB / 9362)
    result = check(model, run)
    assert result.observed_tokens == 23460 * 16
    assert result.error == pytest.approx(0, abs=1e-3)
    assert not result.calibrated


def test_ledger_of_0_23_subtracts_the_graph_estimate() -> None:
    log = (
        line(
            "Initializing a V1 LLM engine (v0.23.0) with config: model='m', speculative_config=None, max_seq_len=400000"
        )
        + line("Estimated CUDA graph memory: 1.41 GiB total", "Worker_TP0")
        + line("Available KV cache memory: 19.86 GiB", "Worker_TP0")
        + line("GPU KV cache size: 400,064 tokens")
        + line("Maximum concurrency for 400,000 tokens per request: 1.00x")
        + line(
            "Free memory on device (92.99/95.0 GiB) on startup. Desired GPU memory utilization is (0.9, 85.5 "
            "GiB). Actual "
            "usage is 61.62 GiB for weight, 2.49 GiB for peak activation, 0.12 GiB for non-torch memory, and "
            "1.89 GiB for "
            "CUDAGraph memory.",
            "Worker_TP0",
        )
    )
    run = read(log)
    model = model_for(run)
    assert model is not None
    base = model.solve().tokens
    assert base == pytest.approx(400_000, rel=2e-3)
    free = model.solve({"graphs.applied": 0}).tokens
    assert free is not None and base is not None
    assert free / base == pytest.approx((19.86 + 1.41) / 19.86, rel=1e-3)
    more = model.solve({"sizing.fraction": 0.95}).tokens
    assert more is not None
    assert more / base == pytest.approx((19.86 + 0.05 * 95) / 19.86, rel=1e-3)
    with pytest.raises(KeyError):
        model.solve({"state.ratio": 1})


def test_estimate_is_not_subtracted_where_the_engine_says_so() -> None:
    later = line(
        "In v0.19, CUDA graph memory profiling will be enabled by default "
        "(VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS=1), "
        "which more accurately accounts for CUDA graph memory during KV cache allocation. To try it now, set "
        "VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS=1 and increase --gpu-memory-utilization from 0.8500 to 0.8565 to "
        "maintain the same effective KV cache size."
    )
    log = (
        line("Initializing a V1 LLM engine (v0.20.1.dev0+g1) with config: model='m', max_seq_len=16384")
        + line("Estimated CUDA graph memory: 0.91 GiB total")
        + later
        + line("Available KV cache memory: 46.4 GiB")
    )
    run = read(log)
    assert model_for(run) is not None
    assert run.facts.value("graphs.applied") == 0


def test_default_fraction_by_version() -> None:
    for version, fraction in (("0.19.1", 0.90), ("0.20.2", 0.92)):
        run = run_with(version, sizing__fraction_default=True, pool__available_bytes=10 * GIB)
        model = model_for(run)
        assert model is not None
        assert model.inputs["sizing.fraction"] == fraction


def test_bytes_per_token_from_a_refusal() -> None:
    run = run_with(
        "0.18.1",
        pool__needed_bytes=1.5 * GIB,
        pool__available_bytes=1.0 * GIB,
        limit__context=131_072,
        limit__context_estimated=87_296,
    )
    model = model_for(run)
    assert model is not None
    assert model.solve().tokens == pytest.approx(87_296, rel=2e-3)


def test_fixed_part_of_a_request_is_not_taken_for_bytes_per_token() -> None:
    run = run_with(
        "0.24.0",
        pool__needed_bytes=4.76 * GIB,
        pool__available_bytes=1.56 * GIB,
        limit__context=65_536,
        limit__context_estimated=15_984,
    )
    model = model_for(run)
    assert model is not None
    assert model.solve().tokens is None
    assert any("pool.bytes_per_token" in text for text in model.missing)


def test_given_bytes_replace_the_budget() -> None:
    log = (
        line("Initializing a V1 LLM engine (v0.24.0) with config: model='m', max_seq_len=2048, device_config=cpu")
        + line("Explicitly set (1.0/23.54) GiB for KV cache on node 0.", "Worker")
        + line("GPU KV cache size: 2,097,152 tokens")
        + line("Maximum concurrency for 2,048 tokens per request: 1024.00x")
    )
    run = read(log)
    model = model_for(run)
    assert model is not None
    assert check(model, run).error == 0
    assert not model.missing


def test_block_override_caps() -> None:
    run = run_with(
        "0.15.0",
        pool__available_bytes=10 * GIB,
        pool__profiled_blocks=10_000,
        pool__user_blocks=512,
        pool__block_tokens=16,
        pool__tokens=8192,
    )
    model = model_for(run)
    assert model is not None
    assert model.solve().tokens == 8192
    assert model.solve({"pool.user_blocks": float("inf")}).tokens == pytest.approx(160_000)
