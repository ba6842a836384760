"""The witness /metrics."""

from __future__ import annotations

from pathlib import Path

import pytest

from analyzer.errors import UserError
from analyzer.evidence.metrics import metric_facts, parse_metrics, read_metrics

BEFORE = """\
# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m"} 3.0
vllm:num_requests_running{engine="1",model_name="m"} 2.0
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.25
# TYPE vllm:generation_tokens counter
vllm:generation_tokens_total{engine="0",model_name="m"} 100.0
vllm:spec_decode_num_drafts_total{engine="0",model_name="m"} 10.0
vllm:spec_decode_num_draft_tokens_total{engine="0",model_name="m"} 30.0
vllm:spec_decode_num_accepted_tokens_total{engine="0",model_name="m"} 20.0
vllm:cache_config_info{block_size="16",num_gpu_blocks="131072",num_gpu_blocks_override="None",engine="0"} 1.0
"""
AFTER = (
    BEFORE.replace("} 100.0", "} 196.0")
    .replace("} 30.0", "} 84.0")
    .replace("} 20.0", "} 61.0")
    .replace("} 10.0", "} 64.0")
)
SGLANG = """\
sglang:num_running_reqs{model_name="m",tp_rank="0"} 0.0
sglang:token_usage{model_name="m",tp_rank="0"} 0.5
sglang:max_total_num_tokens{model_name="m",dp_rank="0"} 774081.0
sglang:max_total_num_tokens{model_name="m",dp_rank="1"} 774000.0
sglang:spec_accept_length{model_name="m",tp_rank="0"} 0.0
sglang:generation_tokens_total{model_name="m"} 592.0
"""


def values(*texts: str) -> dict[str, object]:
    return {f.name: f.value for f in metric_facts([parse_metrics(t, f"m{i}") for i, t in enumerate(texts)])}


def test_one_snapshot_gives_totals() -> None:
    got = values(BEFORE)
    assert got["metrics.running"] == 5
    assert got["metrics.kv_usage"] == 0.25
    assert (got["metrics.blocks"], got["metrics.block_tokens"]) == (131072, 16)
    assert got["metrics.accept_length"] == 3.0
    assert "metrics.moved" not in got


def test_two_snapshots_give_rises() -> None:
    got = values(BEFORE, AFTER)
    assert (got["metrics.drafted"], got["metrics.accepted"]) == (54, 41)
    assert got["metrics.acceptance"] == pytest.approx(0.759, abs=0.001)
    assert got["metrics.generated"] == 96
    assert got["metrics.moved"] is True


def test_counters_that_stand_still() -> None:
    assert values(BEFORE, BEFORE)["metrics.moved"] is False


def test_sglang_pool_is_the_smallest_rank_and_no_length_without_speculation() -> None:
    got = values(SGLANG)
    assert got["metrics.pool_tokens"] == 774000
    assert "metrics.accept_length" not in got


@pytest.mark.parametrize("text", ["go_goroutines 5\n", "", "{}{}{}\n", "vllm:x{ 1\n"])
def test_another_text_is_refused_with_a_sentence(text: str) -> None:
    with pytest.raises(UserError, match=r"Prometheus text|no metric of vLLM or SGLang") as caught:
        parse_metrics(text, "there")
    assert caught.value.status == 3


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot read the metrics"):
        read_metrics(str(tmp_path / "none.txt"))
