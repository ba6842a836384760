"""config.json is other people's file: whatever it holds, reading gives figures or says why not, and never fails."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from analyzer.evidence.cache_bytes import Setup, cell_bytes, slot_bytes
from analyzer.evidence.consistency import check_package
from analyzer.evidence.geometry import geometry_of
from analyzer.evidence.model_config import parse_config
from analyzer.evidence.model_dir import inspect_model
from analyzer.evidence.model_facts import model_facts
from analyzer.evidence.quantization import parse_quantization
from tests.evidence.packages import shard

KEYS = [
    "num_hidden_layers", "hidden_size", "num_attention_heads", "num_key_value_heads", "head_dim", "v_head_dim",
    "vocab_size", "max_position_embeddings", "layer_types", "text_config", "vision_config", "quantization_config",
    "kv_lora_rank", "qk_rope_head_dim", "index_head_dim", "sliding_window", "sliding_window_pattern", "dtype",
    "hybrid_override_pattern", "linear_attn_config", "full_attention_interval", "linear_num_key_heads",
    "linear_num_value_heads", "linear_key_head_dim", "linear_value_head_dim", "linear_conv_kernel_dim",
    "mamba_num_heads", "mamba_head_dim", "ssm_state_size", "n_groups", "conv_kernel", "attn_type_list",
    "attn_layer_period", "attn_layer_offset", "num_kv_shared_layers", "num_nextn_predict_layers", "rope_scaling",
    "mtp_num_hidden_layers", "architectures", "tie_word_embeddings", "mamba_ssm_dtype", "no_rope_layers",
    "attention_chunk_size", "mtp_config", "layer_group_size", "conv_L_cache", "max_window_layers",
    "use_sliding_window", "mamba_d_ssm", "attn_config", "model_type", "hybrid_layer_pattern",
]  # fmt: skip
QUANT = ["quant_method", "ignore", "modules_to_not_convert", "config_groups", "bits", "group_size", "dynamic", "format",
         "weight_block_size", "kv_cache_scheme", "quant_algo", "exclude_modules", "load_in_4bit"]  # fmt: skip
words = st.sampled_from(
    ["full_attention", "linear_attention", "sliding_attention", "mamba", "conv", "M*-E", "yarn", "bfloat16", "fp8",
     "awq", "gptq", "modelopt", "compressed-tensors", "re:.*a", "re:(", "model.layers.0", "*"]
)  # fmt: skip
leaf = st.none() | st.booleans() | st.integers(-5, 300) | st.floats(allow_nan=False) | st.text(max_size=8) | words
value = st.recursive(
    leaf,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(KEYS + QUANT), inner, max_size=5),
    max_leaves=12,
)
config = st.dictionaries(st.sampled_from(KEYS), value, max_size=25)


@settings(max_examples=150, deadline=None)
@given(config, st.integers(1, 9))
def test_any_config_gives_sizes_or_a_reason(raw: dict[str, Any], tp: int) -> None:
    geometry = geometry_of(parse_config(raw))
    quantization = parse_quantization(raw)
    assert isinstance(quantization.label, str)
    for engine in ("sglang", "vllm"):
        setup = Setup(engine, attention_tp=tp, draft_tokens=2)
        cell, slot = cell_bytes(geometry, setup), slot_bytes(geometry, setup)
        assert (cell is None or cell >= 0) and slot >= 0
        assert not geometry.unknown or cell is None


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(config, value)
def test_any_package_is_judged(tmp_path: Path, raw: dict[str, Any], weight_map: Any) -> None:
    names = ("model.layers.0.self_attn.q_proj.weight", "model.layers.1.linear_attn.in_proj_a.qweight", "lm_head.weight",
             "mtp.layers.0.x.weight", "model.layers.0.mlp.up_proj.weight_packed", "a")  # fmt: skip
    shard(tmp_path / "model.safetensors", [(name, "I32", (3, 5)) for name in names])
    (tmp_path / "config.json").write_text(json.dumps(raw))
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
    folder = inspect_model(tmp_path)
    check_package(folder)
    assert model_facts(folder, tp=2, pp=3, ep=2, engine="vllm", draft_tokens=1)
