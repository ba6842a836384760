"""Declarations in all their forms, and packages that look odd and are right."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from analyzer.evidence.consistency import check_package
from analyzer.evidence.model_dir import inspect_model
from analyzer.evidence.quantization import Quantization, parse_quantization
from tests.evidence.packages import Spec, linear, shard

BASE = {"num_hidden_layers": 2, "hidden_size": 256, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 64}


@pytest.mark.parametrize(
    ("config", "side", "label", "kv"),
    [
        ({"quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}}, None,
         "fp8 8-bit block 128x128", ""),
        ({"quantization_config": {"quant_method": "awq", "bits": 4, "group_size": 128, "version": "gemm"}}, None,
         "awq gemm 4-bit group 128", ""),
        ({"quantization_config": {"quant_method": "compressed-tensors", "format": "float-quantized",
                                  "config_groups": {"g": {"targets": ["Linear"], "weights": {"num_bits": 8}}},
                                  "kv_cache_scheme": {"num_bits": 8}}}, None,
         "compressed-tensors float-quantized 8-bit", "fp8"),
        ({"text_config": {"quantization_config": {"quant_method": "gptq", "bits": 4}}}, None, "gptq 4-bit", ""),
        ({"quantization_config": {"load_in_4bit": True, "bnb_4bit_quant_type": "nf4"}}, None,
         "bitsandbytes nf4 4-bit", ""),
        ({}, {"quantization": {"quant_algo": "NVFP4", "kv_cache_quant_algo": "FP8", "exclude_modules": ["lm_head"]}},
         "modelopt NVFP4 4-bit group 16", "fp8"),
        ({"quantization_config": {"quant_method": "modelopt", "quant_algo": "FP8"}}, None, "modelopt FP8 8-bit", ""),
        ({"quantization_config": "nonsense"}, "nonsense", "none", ""),
        ({}, None, "none", ""),
    ],
)  # fmt: skip
def test_declarations(config: dict[str, Any], side: Any, label: str, kv: str) -> None:
    quant = parse_quantization(config, side)
    assert (quant.label, quant.kv_dtype) == (label, kv)


@pytest.mark.parametrize(
    ("style", "entry", "name", "same"),
    [
        ("exact", "model.layers.1", "model.layers.1.mlp", True),
        ("exact", "model.layers.1", "model.layers.10.mlp", False),
        ("exact", "lm_head", "model.lm_head", True),
        ("exact", "re:.*mlp\\.gate$", "model.layers.0.mlp.gate", True),
        ("exact", "re:.*mlp\\.gate$", "model.layers.0.mlp.gate_proj", False),
        ("exact", "model.layers.*.self_attn", "model.layers.7.self_attn.q_proj", True),
        ("glob", "model.layers.0.self_attn*", "model.layers.0.self_attn.k_proj", True),
        ("part", "visual", "model.visual.blocks.0.attn", True),
        ("part", "mlp.gate.", "model.layers.0.mlp.gate", True),
        ("part", "mlp.gate", "model.layers.0.mlp.gate_proj", False),
    ],
)
def test_what_an_entry_means(style: str, entry: str, name: str, same: bool) -> None:
    assert Quantization("x", style=style).matcher(entry)(name) is same


def found(folder: Path, specs: list[Spec], quant: dict[str, Any]) -> dict[str, int]:
    folder.mkdir()
    shard(folder / "model.safetensors", specs)
    (folder / "config.json").write_text(json.dumps({**BASE, "quantization_config": quant}))
    return {i.name: i.count for i in check_package(inspect_model(folder)) if i.count}


def layers(packed: str, attention: str | None = None) -> list[Spec]:
    specs: list[Spec] = []
    for index in range(2):
        name = f"model.layers.{index}"
        for part, out in (("q", 256), ("k", 128), ("v", 128), ("o", 256)):
            kind = packed if attention is None else attention
            specs += linear(f"{name}.self_attn.{part}_proj", out, 256, packed=kind)
        specs += linear(f"{name}.mlp.up_proj", 512, 256, packed=packed)
    return [*specs, ("lm_head.weight", "BF16", (1000, 256))]


def test_right_packages_are_left_alone(tmp_path: Path) -> None:
    block = {"quant_method": "fp8", "weight_block_size": [128, 128]}
    assert found(tmp_path / "fp8", layers("fp8"), block) == {}
    assert found(tmp_path / "online", layers(""), {"quant_method": "fp8"}) == {}
    assert found(tmp_path / "bnb", layers(""), {"load_in_4bit": True}) == {}
    assert found(tmp_path / "other", layers(""), {"quant_method": "quark"}) == {}
    fused = {"quant_method": "fp8", "ignored_layers": ["model.layers.0.self_attn.qkv_proj", "o_proj"]}
    specs = [s for s in layers("fp8") if "layers.0.self_attn" not in s[0] and "o_proj" not in s[0]]
    specs += [s for s in layers("") if ("layers.0.self_attn" in s[0] or "o_proj" in s[0]) and "lm_head" not in s[0]]
    assert found(tmp_path / "fused", specs, fused) == {}
    mxfp4 = {"quant_method": "mxfp4", "modules_to_not_convert": ["model.layers.*.self_attn", "lm_head"]}
    specs = [s for s in layers("", "") if ".mlp." not in s[0]]
    specs += [(f"model.layers.{n}.mlp.experts.gate_up_proj_blocks", "U8", (4, 64, 8, 16)) for n in range(2)]
    assert found(tmp_path / "mxfp4", specs, mxfp4) == {}
    gptq = {"quant_method": "gptq", "bits": 4, "group_size": 128, "dynamic": {"-:.*self_attn.*": {}}}
    assert found(tmp_path / "gptq", layers("awq", ""), gptq) == {}


def test_wrong_packages_are_found(tmp_path: Path) -> None:
    block = {"quant_method": "fp8", "weight_block_size": [128, 128]}
    assert found(tmp_path / "a", layers(""), block) == {"declared_but_plain": 10}
    assert found(tmp_path / "b", layers("awq", ""), {"quant_method": "awq", "bits": 4}) == {"packed_expected": 8}
    ignored = {"quant_method": "awq", "bits": 4, "modules_to_not_convert": ["self_attn"]}
    assert found(tmp_path / "c", layers("awq"), ignored) == {"ignored_but_packed": 8}
