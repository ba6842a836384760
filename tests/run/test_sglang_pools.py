"""Which lines of SGLang show that a draft is there, and which tell the tokens of pools of a special kind."""

from __future__ import annotations

import pytest

from tests.run.helpers import only

POOLS = """\
[2026-10-02 00:39:41] KV Cache is allocated. dtype: torch.bfloat16, #tokens: 295950, K size: 4.52 GB, V size: 4.52 GB
[2026-10-02 00:39:41] Memory pool end. avail mem=21.57 GB
[2026-10-02 00:39:42] KV Cache is allocated. dtype: torch.bfloat16, #tokens: 295950, K size: 3.39 GB, V size: 3.39 GB
[2026-10-02 00:39:42] Memory pool end. avail mem=14.77 GB
"""
SIGNS = [
    "[2026-10-02 00:40:09] Capture draft verify CUDA graph end. elapsed=1.96 s, mem usage=2.17 GB, avail mem=2.56 GB.",
    "[2026-10-02 00:40:07] Capture target verify CUDA graph end. elapsed=6.90 s, mem usage=6.13 GB, avail mem=4.72 GB.",
    "[2026-10-02 00:39:40] Mamba Cache is allocated. max_mamba_cache_size: 64, conv_state size: 0.07GB, "
    "ssm_state size: 3.05GB intermediate_ssm_state_cache size: 48.75GB",
]


@pytest.mark.parametrize("sign", SIGNS)
def test_a_sign_of_speculation_makes_the_second_pool_the_drafts(sign: str) -> None:
    run = only(POOLS + sign + "\n")
    assert run.facts.value("draft.pool.bytes") == pytest.approx(6.78 * 2**30)
    assert run.facts.value("pool.bytes") == pytest.approx(9.04 * 2**30)


def test_a_graph_for_decoding_is_no_sign() -> None:
    line = (
        "[2026-10-02 00:40:07] Capture target decode CUDA graph end. elapsed=6.90 s, mem usage=6.13 GB, "
        "avail mem=4.72 GB.\n"
    )
    assert "draft.pool.bytes" not in only(POOLS + line).facts


def test_the_window_pools_own_line_tells_the_tokens_where_no_other_does() -> None:
    line = "SWAKVPool mem usage: 79.94 GB, swa size: 798276, full size: 997846\n"
    run = only(line)
    assert (run.facts.value("pool.tokens"), run.facts.value("pool.swa_tokens")) == (997846, 798276)
    told = "Use sliding window memory pool. full_layer_tokens=318715, swa_layer_tokens=254972\n"
    assert only(told + line).facts.value("pool.tokens") == 318715


def test_the_summary_ends_the_allocation_too() -> None:
    text = (
        "[2026-10-02 00:39:41] KV Cache is allocated. #tokens: 2618868, K 19.98 GB, V 19.98 GB\n"
        "[2026-10-02 00:39:42] max_total_num_tokens=2618868, max_running_requests=48, available_gpu_mem=13.38 GB\n"
    )
    run = only(text)
    assert "end.unfinished" not in run.facts
    assert run.facts.value("pool.bytes") == pytest.approx(39.96 * 1024**3)


def test_a_pool_whose_line_was_cut_is_not_reckoned_from_free_memory() -> None:
    """It may hold recurrent state as well: only versions that print no line for a pool are read so."""
    ends = "Memory pool end. avail mem=12.13 GB\n"
    new = "Load weight end. elapsed=1.0 s, type=Qwen3_5ForCausalLM, avail mem=24.12 GB, mem usage=17.17 GB.\n"
    old = "Load weight end. type=Qwen2ForCausalLM, dtype=torch.bfloat16, avail mem=24.12 GB\n"
    assert only(new + ends).facts.value("pool.bytes") is None
    assert only(old + ends).facts.value("pool.bytes") == pytest.approx(11.99 * 1024**3)


def test_bare_figures_of_a_summary_tell_pool_and_slots() -> None:
    run = only("max_total_num_tokens=2200000\nMamba Cache is allocated. max_mamba_cache_size: 320\n")
    assert (run.engine, run.outcome) == ("sglang", "starting")
    assert (run.facts.value("pool.tokens"), run.facts.value("state.slots")) == (2_200_000, 320)
    assert "state.bytes" not in run.facts


def test_the_drafts_pool_tells_that_of_the_target() -> None:
    run = only("[DP0 TP0 EP0] DSv4 pool sizes (DRAFT): using TARGET's pool sizes - full=312064, swa=30976\n")
    assert run.facts.value("pool.tokens") == run.facts.value("draft.pool.tokens") == 312_064
    assert run.facts.value("spec.enabled") is True


def test_a_capture_whose_line_was_cut_has_begun() -> None:
    run = only(
        "[2026-09-22 19:53:38] KV Cache is allocated. dtype: torch.float8_e4m3fn, #tokens: 914573\n"
        "[2026-09-22 19:53:41] Capture target verify CUDA graph begin. backend=full\n"
    )
    assert run.facts.value("end.unfinished") == "capturing graphs"
