"""Cache sizes from configs whose figures were confirmed on hardware (reference sglang 3.11, vllm 3.5)."""

from __future__ import annotations

import pytest

from analyzer.evidence.cache_bytes import Setup, cell_bytes, slot_bytes
from analyzer.evidence.geometry import geometry_of
from analyzer.evidence.model_config import parse_config

QWEN35 = {
    "architectures": ["Qwen3_5ForConditionalGeneration"],
    "text_config": {
        "model_type": "qwen3_5_text", "hidden_size": 5120, "num_hidden_layers": 16, "num_attention_heads": 24,
        "num_key_value_heads": 4, "head_dim": 256, "vocab_size": 248320, "full_attention_interval": 4,
        "linear_conv_kernel_dim": 4, "linear_key_head_dim": 128, "linear_value_head_dim": 128,
        "linear_num_key_heads": 16, "linear_num_value_heads": 48, "mtp_num_hidden_layers": 1,
        "max_position_embeddings": 262144, "dtype": "bfloat16",
    },
    "vision_config": {"depth": 2, "hidden_size": 128},
}  # fmt: skip


def test_hybrid_cell_and_state_as_measured_on_a_gpu() -> None:
    config = parse_config(QWEN35)
    geometry = geometry_of(config)
    assert len(geometry.attention) == 4 and len(geometry.states) == 12
    assert cell_bytes(geometry, Setup("sglang", "0.5.17")) == 16384
    assert slot_bytes(geometry, Setup("sglang", "0.5.17")) == 38_486_016
    assert slot_bytes(geometry, Setup("sglang", ssm_dtype="bfloat16")) == 12 * (61440 + 48 * 128 * 128 * 2)
    assert (config.mtp_layers, config.mtp_field, config.mtp_in_text) == (1, "mtp_num_hidden_layers", True)


@pytest.mark.parametrize(("tp", "cell"), [(1, 16384), (2, 8192), (4, 4096), (8, 4096)])
def test_tp_divides_heads_until_they_are_replicated(tp: int, cell: int) -> None:
    assert cell_bytes(geometry_of(parse_config(QWEN35)), Setup("sglang", attention_tp=tp)) == cell


@pytest.mark.parametrize(
    ("heads", "k", "dtype", "state"),
    # reference vllm 3.5: 32 value heads, 16 key heads of 128, fp32 state gives block 1056 with fp8 pages
    [(32, 0, "float32", 2_146_304), (32, 15, "float32", 2_146_304 + 15 * 8192 * 2)],
)
def test_vllm_gdn_state_grows_with_draft_tokens(heads: int, k: int, dtype: str, state: int) -> None:
    text = {**QWEN35["text_config"], "linear_num_value_heads": heads}
    geometry = geometry_of(parse_config({**QWEN35, "text_config": text}))
    setup = Setup("vllm", "0.24.0", ssm_dtype=dtype, draft_tokens=k)
    per_layer = slot_bytes(geometry, setup) / 12
    assert per_layer == state
    if k == 0:  # block 1056 of 2,048 bytes a token, padding 0.76 %
        block = 16 * -(-state // (16 * 2048))
        assert block == 1056
        assert round(100 * (block * 2048 - state) / state, 2) == 0.76


def test_mamba2_state_reproduces_the_block_of_a_real_log() -> None:
    config = {"num_hidden_layers": 4, "hybrid_override_pattern": "M-M*", "hidden_size": 4096, "num_attention_heads": 32,
              "num_key_value_heads": 2, "head_dim": 128, "mamba_num_heads": 64, "mamba_head_dim": 64,
              "ssm_state_size": 128, "n_groups": 8, "conv_kernel": 4}  # fmt: skip
    geometry = geometry_of(parse_config(config))
    assert [bool(layer.state) for layer in geometry.layers] == [True, False, True, False]
    state = slot_bytes(geometry, Setup("vllm", ssm_dtype="float32")) / 2
    block = 16 * -(-state // (16 * 512))
    assert block == 4176 and round(100 * (block * 512 - state) / state, 2) == 0.19


def test_mla_and_indexer_by_version() -> None:
    config = {"num_hidden_layers": 2, "kv_lora_rank": 512, "qk_rope_head_dim": 64, "num_attention_heads": 16,
              "hidden_size": 2048, "index_head_dim": 128}  # fmt: skip
    geometry = geometry_of(parse_config(config))
    assert cell_bytes(geometry, Setup("sglang", "0.5.3")) == 2 * 1152
    assert cell_bytes(geometry, Setup("sglang", "0.5.10", kv_dtype="fp8_e4m3")) == 2 * (576 + 132)
    assert cell_bytes(geometry, Setup("sglang", "0.5.18", kv_dtype="fp8_e4m3")) == 2 * (656 + 132)
    assert cell_bytes(geometry, Setup("vllm", "0.24.0", kv_dtype="fp8", attention_tp=8)) == 2 * (656 + 132)


@pytest.mark.parametrize(
    ("extra", "full", "window", "state"),
    [
        ({"layer_types": ["sliding_attention", "full_attention"], "sliding_window": 128}, 4, 4, 0),
        ({"sliding_window": 4096, "use_sliding_window": False}, 8, 0, 0),
        ({"sliding_window": 4096}, 0, 8, 0),
        ({"sliding_window": 512, "sliding_window_pattern": 4}, 2, 6, 0),
        ({"num_kv_shared_layers": 3}, 5, 0, 0),
        ({"attn_layer_period": 4, "attn_layer_offset": 1, "mamba_d_state": 16, "mamba_d_conv": 4, "mamba_expand": 2},
         2, 0, 6),
        ({"linear_attn_config": {"full_attn_layers": [4, 8], "num_heads": 32, "head_dim": 128,
                                 "short_conv_kernel_size": 4}}, 2, 0, 6),
        ({"attn_type_list": [0, 0, 0, 1, 0, 0, 0, 1]}, 2, 0, 6),
        ({"mamba_d_ssm": 1024, "mamba_n_heads": 16, "mamba_d_head": 64, "mamba_d_state": 64, "mamba_n_groups": 1,
          "mamba_d_conv": 4}, 8, 0, 8),
    ],
)  # fmt: skip
def test_layer_kinds(extra: dict[str, object], full: int, window: int, state: int) -> None:
    base = {"num_hidden_layers": 8, "hidden_size": 512, "num_attention_heads": 8, "num_key_value_heads": 2}
    geometry = geometry_of(parse_config({**base, **extra}))
    assert not geometry.unknown
    windowed = len(geometry.windowed)
    assert (len(geometry.attention) - windowed, windowed, len(geometry.states)) == (full, window, state)


def test_what_cannot_be_told_is_said() -> None:
    assert "number of layers" in geometry_of(parse_config({})).unknown
    assert geometry_of(parse_config({"num_hidden_layers": 4, "compress_ratios": [4]})).unknown
    assert cell_bytes(geometry_of(parse_config({"num_hidden_layers": 4})), Setup()) is None
