"""Published geometries: KV bytes per token in BF16 at TP 1, layers with KV, state; figures by hand from each config."""

from __future__ import annotations

from typing import Any

import pytest

from analyzer.evidence.cache_bytes import Setup, cell_bytes, slot_bytes
from analyzer.evidence.geometry import geometry_of
from analyzer.evidence.model_config import parse_config

CASES: dict[str, tuple[dict[str, Any], float, int, int]] = {
    "Llama 3 8B": (
        {"num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32, "num_key_value_heads": 8},
        131_072, 32, 0,
    ),
    "DeepSeek V3": (
        {"num_hidden_layers": 61, "kv_lora_rank": 512, "qk_rope_head_dim": 64, "hidden_size": 7168,
         "num_attention_heads": 128, "num_key_value_heads": 128, "num_nextn_predict_layers": 1, "v_head_dim": 128},
        70_272, 61, 0,
    ),
    "GLM 4.5 Air": (
        {"num_hidden_layers": 46, "hidden_size": 4096, "num_attention_heads": 96, "num_key_value_heads": 8,
         "head_dim": 128, "num_nextn_predict_layers": 1},
        188_416, 46, 0,
    ),
    "gpt-oss 120b": (
        {"num_hidden_layers": 36, "hidden_size": 2880, "num_attention_heads": 64, "num_key_value_heads": 8,
         "head_dim": 64, "sliding_window": 128, "layer_types": ["sliding_attention", "full_attention"] * 18},
        36 * 2048, 36, 18,
    ),
    "Gemma 3 27B": (
        {"text_config": {"num_hidden_layers": 62, "hidden_size": 5376, "num_attention_heads": 32,
                         "num_key_value_heads": 16, "head_dim": 128, "sliding_window": 1024,
                         "sliding_window_pattern": 6}},
        62 * 8192, 62, 52,
    ),
    "Llama 4 Scout": (
        {"text_config": {"num_hidden_layers": 48, "hidden_size": 5120, "num_attention_heads": 40,
                         "num_key_value_heads": 8, "head_dim": 128, "attention_chunk_size": 8192,
                         "no_rope_layers": [1, 1, 1, 0] * 12}},
        48 * 4096, 48, 36,
    ),
    "Gemma 3n, shared KV": (
        {"text_config": {"num_hidden_layers": 30, "hidden_size": 2048, "num_attention_heads": 8,
                         "num_key_value_heads": 2, "head_dim": 256, "num_kv_shared_layers": 10,
                         "sliding_window": 512, "layer_types": (["sliding_attention"] * 4 + ["full_attention"]) * 6}},
        20 * 2048, 20, 16,
    ),
    "MiMo V2, other heads in window layers": (
        {"num_hidden_layers": 4, "hidden_size": 4096, "num_attention_heads": 64, "num_key_value_heads": 4,
         "head_dim": 192, "v_head_dim": 128, "hybrid_layer_pattern": [0, 1, 1, 1], "swa_num_key_value_heads": 8,
         "swa_head_dim": 192, "swa_v_head_dim": 128, "sliding_window": 128},
        4 * 320 * 2 + 3 * 8 * 320 * 2, 4, 3,
    ),
    "Falcon, multi-query": (
        {"num_hidden_layers": 32, "hidden_size": 4544, "num_attention_heads": 71, "multi_query": True},
        32 * 2 * 64 * 2, 32, 0,
    ),
    "ChatGLM": (
        {"num_layers": 28, "hidden_size": 4096, "num_attention_heads": 32, "multi_query_group_num": 2,
         "kv_channels": 128, "seq_length": 131072, "padded_vocab_size": 151552},
        28 * 1024, 28, 0,
    ),
    "GPT-2 style": ({"n_layer": 12, "n_embd": 768, "n_head": 12, "n_positions": 1024}, 12 * 3072, 12, 0),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_kv_of_families(name: str) -> None:
    config, cell, layers, windows = CASES[name]
    geometry = geometry_of(parse_config(config))
    assert (geometry.unknown, len(geometry.attention), len(geometry.windowed)) == ("", layers, windows)
    assert cell_bytes(geometry, Setup("vllm")) == cell
    if windows:
        full = cell_bytes(geometry, Setup("sglang", hybrid_swa=False))
        assert full == cell and cell_bytes(geometry, Setup("sglang", "0.5.17")) < cell


STATES: dict[str, tuple[dict[str, Any], int, float]] = {
    "Kimi Linear 48B": (  # 20 KDA layers of 32 x 128 x 128, 7 MLA layers
        {"num_hidden_layers": 27, "hidden_size": 2304, "num_attention_heads": 32, "kv_lora_rank": 512,
         "qk_rope_head_dim": 64, "linear_attn_config": {
             "full_attn_layers": [4, 8, 12, 16, 20, 24, 27], "kda_layers": [], "num_heads": 32, "head_dim": 128,
             "short_conv_kernel_size": 4}},
        7, 20 * (3 * 32 * 128 * 3 * 2 + 32 * 128 * 128 * 4),
    ),
    "MiniMax M1": (
        {"num_hidden_layers": 8, "hidden_size": 6144, "num_attention_heads": 64, "num_key_value_heads": 8,
         "head_dim": 128, "attn_type_list": [0, 0, 0, 0, 0, 0, 0, 1]},
        1, 7 * 64 * 128 * 128 * 4,
    ),
    "Jamba": (
        {"num_hidden_layers": 8, "hidden_size": 4096, "num_attention_heads": 32, "num_key_value_heads": 8,
         "attn_layer_period": 8, "attn_layer_offset": 4, "mamba_d_state": 16, "mamba_d_conv": 4, "mamba_expand": 2},
        1, 7 * (8192 * 3 * 2 + 8192 * 16 * 4),
    ),
    "Granite hybrid": (
        {"num_hidden_layers": 4, "hidden_size": 2048, "num_attention_heads": 16, "num_key_value_heads": 4,
         "layer_types": ["mamba", "mamba", "attention", "mamba"], "mamba_n_heads": 64, "mamba_d_head": 64,
         "mamba_d_state": 128, "mamba_n_groups": 1, "mamba_d_conv": 4},
        1, 3 * ((4096 + 256) * 3 * 2 + 64 * 64 * 128 * 4),
    ),
    "LFM2": (
        {"num_hidden_layers": 4, "hidden_size": 2048, "num_attention_heads": 32, "num_key_value_heads": 8,
         "layer_types": ["conv", "conv", "full_attention", "conv"], "conv_L_cache": 3},
        1, 3 * 2048 * 2 * 2,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", STATES)
def test_states_of_families(name: str) -> None:
    config, layers, slot = STATES[name]
    geometry = geometry_of(parse_config(config))
    assert (geometry.unknown, len(geometry.attention)) == ("", layers)
    assert slot_bytes(geometry, Setup("sglang")) == slot


def test_groups_that_cannot_be_divided_are_kept_whole() -> None:
    config = STATES["Granite hybrid"][0]
    state = geometry_of(parse_config(config)).states[0]
    assert state.conv_elements(4) == (4096 // 4 + 2 * 128) * 3


def test_yarn_scales_the_context() -> None:
    scaling = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}
    assert parse_config({"max_position_embeddings": 32768, "rope_scaling": scaling}).context == 131_072
    assert parse_config({"max_position_embeddings": 131072, "rope_scaling": scaling}).context == 131_072


@pytest.mark.parametrize("value", [-1, "32", True, 2.5, None, [], 1 << 60])
def test_nonsense_counts_as_absent(value: Any) -> None:
    assert geometry_of(parse_config({"num_hidden_layers": value})).unknown
