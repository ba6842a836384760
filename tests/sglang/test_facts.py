"""Facts of SGLang runs: what is the target's, what the draft's, and which rank said it."""

from __future__ import annotations

import pytest

from analyzer.sizing import model_for
from tests.sglang.read import read, sample, stamped

GIB = 1 << 30
ARGS = "server_args=ServerArgs(model_path='/m', tp_size=2, pp_size=1, dp_size=1, mem_fraction_static=0.85, "
EAGLE = ARGS + "speculative_algorithm='EAGLE', speculative_num_draft_tokens=4, speculative_num_steps=3, page_size=1)"
PLAIN = ARGS + "speculative_algorithm=None, max_total_tokens=None, kv_cache_dtype='auto', page_size=64)"


def test_ranks_keep_their_own_figures() -> None:
    lines = []
    for rank, free in (("TP0", 78.0), ("TP1", 70.0)):
        lines.append(
            stamped(
                f"Load weight begin. avail mem={free:.2f} GB",
                f"Load weight end. type=Qwen2ForCausalLM, dtype=torch.bfloat16, avail mem={free - 30:.2f} GB,"
                " mem usage=30.00 GB.",
                "KV Cache is allocated. #tokens: 400000, K size: 15.00 GB, V size: 15.00 GB",
                f"Memory pool end. avail mem={free - 60.5:.2f} GB",
                rank=rank,
            )
        )
    run = read(stamped(PLAIN) + "".join(lines))
    facts = run.facts
    free_before = facts.get("gpu.free_before_load")
    assert free_before is not None and free_before.value == pytest.approx(70 * GIB)
    assert free_before.ranks == {"TP0": pytest.approx(78 * GIB), "TP1": pytest.approx(70 * GIB)}
    assert facts.value("pool.bytes") == pytest.approx(30 * GIB), "one rank's pool, never the sum"
    assert facts.value("args.tensor_parallel_size") == 2
    assert facts.value("spec.enabled") is False
    model = model_for(run)
    assert model is not None and model.inputs["gpu.foreign"] == pytest.approx(8 * GIB)


def test_draft_before_and_after_the_pool() -> None:
    early = sample("hybrid_nextn_ratio02.log")
    assert early.facts.value("gpu.free_after_load") == pytest.approx(117.45 * GIB)
    late = read(
        stamped(
            EAGLE,
            "Load weight begin. avail mem=78.00 GB",
            "Load weight end. type=LlamaForCausalLM, dtype=torch.bfloat16, avail mem=62.00 GB, mem usage=16.00 GB.",
            "KV Cache is allocated. #tokens: 400000, K size: 25.00 GB, V size: 25.00 GB",
            "Memory pool end. avail mem=11.70 GB",
            "Load weight begin. avail mem=11.20 GB",
            "Load weight end. type=LlamaForCausalLMEagle3, dtype=torch.bfloat16, avail mem=10.20 GB,"
            " mem usage=1.00 GB.",
            "KV Cache is allocated. #tokens: 400000, K size: 0.80 GB, V size: 0.80 GB",
            "Memory pool end. avail mem=8.50 GB",
        )
    )
    facts = late.facts
    assert facts.value("gpu.free_after_load") == pytest.approx(62 * GIB), "the draft came after the sizing"
    assert facts.value("weights.loaded") == pytest.approx(16 * GIB)
    assert facts.value("draft.weights.loaded") == pytest.approx(1 * GIB)
    assert facts.value("pool.bytes") == pytest.approx(50 * GIB)
    assert facts.value("draft.pool.bytes") == pytest.approx(1.6 * GIB)
    assert facts.value("free.after_pool") == pytest.approx(8.5 * GIB)
    assert late.version_range == (">=0.4.5", "<=0.5.8")
    model_for(late)
    assert "draft.duplicate_vocab" not in facts, "up to 0.5.13 the draft is not charged"


def test_a_small_draft_of_the_same_class_is_still_the_draft() -> None:
    run = read(
        stamped(
            EAGLE.replace("EAGLE", "STANDALONE"),
            "Load weight begin. avail mem=78.00 GB",
            "Load weight end. elapsed=9.10 s, type=Qwen3ForCausalLM, avail mem=62.00 GB, mem usage=16.00 GB.",
            "Load weight begin. avail mem=62.00 GB",
            "Load weight end. elapsed=1.10 s, type=Qwen3ForCausalLM, avail mem=60.80 GB, mem usage=1.20 GB.",
        )
    )
    assert run.facts.value("weights.loaded") == pytest.approx(16 * GIB)
    assert run.facts.value("draft.weights.loaded") == pytest.approx(1.2 * GIB)
    assert run.facts.value("gpu.free_after_load") == pytest.approx(60.8 * GIB)


def test_window_pool_is_not_the_capacity() -> None:
    run = read(
        stamped(
            "Load weight begin. avail mem=78.00 GB",
            "Load weight end. elapsed=9.10 s, type=GptOssForCausalLM, avail mem=60.00 GB, mem usage=18.00 GB.",
            "Use sliding window memory pool. full_layer_tokens=375360, swa_layer_tokens=300288",
            "KV Cache is allocated. #tokens: 300288, K size: 7.00 GB, V size: 7.00 GB",
            "KV Cache is allocated. #tokens: 375360, K size: 9.00 GB, V size: 9.00 GB",
            "SWAKVPool mem usage: 32.00 GB, swa size: 300288, full size: 375360",
            "Memory pool end. avail mem=27.50 GB",
        )
    )
    assert run.facts.value("pool.tokens") == 375360
    assert run.facts.value("pool.swa_tokens") == 300288
    assert run.facts.value("pool.bytes") == pytest.approx(32 * GIB)


def test_provisional_pools_do_not_count() -> None:
    run = read(
        stamped(
            "KV Cache VA upper bound. dtype: torch.bfloat16, #tokens: 900000, K size: 40.00 GB, V size: 40.00 GB",
            "Post-capture KV sizing: KV cache allocated. dtype: torch.bfloat16, #tokens: 500000, KV size: 44.00 GB,"
            " avail mem=9.00 GB",
        )
    )
    assert run.facts.value("pool.tokens") == 500000
    assert run.facts.value("pool.bytes") == pytest.approx(44 * GIB)


def test_printed_budgets() -> None:
    run = read(
        stamped(
            "DSV4 memory calculation: bytes_per_full_token=1670.75, available_bytes=8.84 GB, c128_state_fixed=0.00 GB,"
            " swa_fixed=0.30 GB, full_token=5491200",
            "DSV4 pool sizes: full=5491200, swa=13312, c4=1372800, c128=42900, c4_state=1664, c128_state=0",
        )
    )
    model = model_for(run)
    assert model is not None and model.solve().tokens == pytest.approx(5_491_200, rel=0.002)
    mlx = read(
        stamped(
            "Auto-sized attention KV pool: sys_available=28.82 GB, mlx_limit=51.8 GB, mlx_used=19.00 GB,"
            " kv_budget=6.92 GB, bytes_per_slot=20480, pool_size=362734"
        )
    )
    model = model_for(mlx)
    assert model is not None and model.solve().tokens == pytest.approx(362_734, rel=0.001)
    assert not model.missing, "A0 and A1 are not needed where the budget is printed"


def test_sizing_that_follows_other_rules_is_not_predicted() -> None:
    run = read(
        stamped(
            "Load weight begin. avail mem=78.00 GB",
            "Load weight end. elapsed=9.10 s, type=Qwen3NextForCausalLM, avail mem=60.00 GB, mem usage=18.00 GB.",
            "[unified-memory-pool] total_bytes=42949672960, max_total_num_tokens=812345, max_mamba_cache_size=64,"
            " max_num_reqs=48, speculative_num_draft_tokens=None",
            "KV Cache is allocated. dtype: torch.bfloat16, #tokens: 812345, K size: 19.00 GB, V size: 19.00 GB",
        )
    )
    model = model_for(run)
    assert model is not None and model.solve().tokens is None
    assert any("one byte pool" in line for line in model.missing)


def test_reservations_add_up() -> None:
    run = read(
        stamped(
            "Reserving 1.10 GB of the KV budget for post-sizing multimodal allocations (feature-transport pools +"
            " embedding cache).",
            "Page-interleave KV sharding enabled: shard_rank=0 shard_size=4 page_size=64 prefix_tokens=8192"
            " chunk_tokens=2048 scratch_rows=512 x2 (64.00 MiB per rank, charged against the KV budget), NCCL"
            " symmetric scratch=False.",
        )
    )
    assert run.facts.value("sizing.reserved") == pytest.approx(1.1 * GIB + 64 * (1 << 20))


def test_refusals_and_limits() -> None:
    run = read(
        stamped(
            "max_total_num_tokens=674, chunked_prefill_size=8192, max_prefill_tokens=16384, max_running_requests=337,"
            " context_len=32768, available_gpu_mem=9.08 GB",
            "Input length (2369 tokens) exceeds the maximum allowed length (668 tokens). Use a shorter input or enable"
            " --allow-auto-truncate., self.rid='a'",
        )
    )
    assert run.facts.value("limit.input") == 668
    assert run.facts.value("request.refused_tokens") == 2369
    model_for(run)
    assert run.facts.value("limit.bound_by") == "tokens"


def test_parallel_sizes_from_tags_without_the_dump() -> None:
    text = "".join(stamped("Load weight begin. avail mem=60.00 GB", rank=f"DP{i // 4} TP{i}") for i in range(8))
    facts = read(text).facts
    assert facts.value("args.tensor_parallel_size") == 8 and facts.value("args.data_parallel_size") == 2


def test_what_the_profile_of_a_failed_sizing_tells() -> None:
    profile = (
        "Memory profiling: available_gpu_memory=11.66 GB, total_gpu_memory=77.80 GB, mem_fraction_static={}, "
        "rest_memory={} GB"
    )
    failed = read(
        stamped(profile.format("0.81", "-3.51"), "Not enough memory. Please try to increase --mem-fraction-static.")
    )
    assert failed.facts.value("sizing.fraction_least") == pytest.approx(1 - 11.66 / 77.80)
    assert failed.facts.value("gpu.free_before_load") == pytest.approx(77.80 * GIB)
    assert failed.facts.value("sizing.budget") is None
    sized = read(stamped(profile.format("0.95", "7.77"), "Memory pool end. avail mem=3.90 GB"))
    assert sized.facts.value("sizing.budget") == pytest.approx(7.77 * GIB)
    assert sized.facts.value("sizing.fraction_least") is None


def test_the_pool_of_a_version_that_only_prints_its_calculation() -> None:
    lines = (
        "DSv4 memory calculation: bytes_per_full_token=176983.05, available_bytes=87.26 GB, full_token=529408",
        "Initialize DeepSeekV4TokenToKVPool with max_num_reqs=256 swa_size=423424 c4_size=132352 c128_size=4136",
    )
    run = read(stamped(*lines))
    assert (run.facts.value("pool.tokens"), run.facts.value("pool.swa_tokens")) == (529408, 423424)
    assert read(stamped(lines[0])).facts.value("pool.tokens") is None, "the store may still be cut"


@pytest.mark.parametrize(
    ("slots", "limit", "asked", "each"), [(40, 8, 64, 5), (40, 13, 64, 3), (5, 1, 64, None), (40, 8, 8, None)]
)
def test_the_printed_limit_tells_the_slots_of_a_request(slots: int, limit: int, asked: int, each: int | None) -> None:
    run = read(
        stamped(ARGS + f"max_mamba_cache_size={slots}, max_running_requests={asked}, speculative_algorithm=None)")
        + stamped(
            f"Mamba Cache is allocated. max_mamba_cache_size: {slots}, conv_state size: 0.12GB, ssm_state size: 5.6GB ",
            "KV Cache is allocated. #tokens: 410000, K size: 2.35 GB, V size: 2.35 GB",
            "max_total_num_tokens=410000, chunked_prefill_size=8192, max_prefill_tokens=16384,"
            f" max_running_requests={limit}, context_len=262144, available_gpu_mem=5.10 GB",
        )
    )
    model_for(run)
    assert run.facts.value("state.slots_per_request") == each
