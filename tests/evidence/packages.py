"""Makes model folders whose safetensors files have true headers and no data (sparse), in every state of disorder."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from analyzer.evidence.safetensors import BITS, elements

Spec = tuple[str, str, tuple[int, ...]]

QWEN_TEXT: dict[str, Any] = {
    "model_type": "qwen3_5_text", "hidden_size": 5120, "intermediate_size": 17408, "num_hidden_layers": 64,
    "num_attention_heads": 24, "num_key_value_heads": 4, "head_dim": 256, "vocab_size": 248320,
    "max_position_embeddings": 262144, "full_attention_interval": 4, "linear_conv_kernel_dim": 4,
    "linear_key_head_dim": 128, "linear_value_head_dim": 128, "linear_num_key_heads": 16,
    "linear_num_value_heads": 48, "attn_output_gate": True, "mtp_num_hidden_layers": 1, "dtype": "bfloat16",
    "mamba_ssm_dtype": "float32",
}  # fmt: skip

IGNORE = ["lm_head", "re:.*linear_attn\\.in_proj_[ab]$", "re:^mtp.*", "re:.*visual.*"]


def shard(path: Path, tensors: Iterable[Spec], *, metadata: dict[str, str] | None = None) -> int:
    """Writes the header of a file that holds ``tensors`` and extends it to its true length. Returns tensor bytes."""
    entries: dict[str, Any] = {"__metadata__": metadata or {"format": "pt"}}
    end = 0
    for name, dtype, shape in tensors:
        size = elements(shape) * BITS[dtype] // 8
        entries[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [end, end + size]}
        end += size
    header = json.dumps(entries).encode()
    header += b" " * (-len(header) % 8)
    with path.open("wb") as file:
        file.write(len(header).to_bytes(8, "little") + header)
        file.truncate(8 + len(header) + end)
    return end


def linear(name: str, out: int, into: int, *, packed: str = "") -> list[Spec]:
    """A linear layer: plain BF16, or ``ct`` (compressed-tensors int4), ``awq``, ``fp8``."""
    if packed == "ct":
        return [(f"{name}.weight_packed", "I32", (out, into // 8)), (f"{name}.weight_shape", "I64", (2,)),
                (f"{name}.weight_scale", "BF16", (out, into // 128))]  # fmt: skip
    if packed == "awq":
        return [(f"{name}.qweight", "I32", (into, out // 8)), (f"{name}.scales", "F16", (into // 128, out)),
                (f"{name}.qzeros", "I32", (into // 128, out // 8))]  # fmt: skip
    if packed == "fp8":
        return [(f"{name}.weight", "F8_E4M3", (out, into)),
                (f"{name}.weight_scale_inv", "F32", (-(-out // 128), -(-into // 128)))]  # fmt: skip
    return [(f"{name}.weight", "BF16", (out, into))]


def hybrid_layer(prefix: str, index: int, text: dict[str, Any], packed: str, plain_ab: bool = True) -> list[Spec]:
    """One layer of a Qwen3.5-like hybrid."""
    hidden, wide = text["hidden_size"], text["intermediate_size"]
    name = f"{prefix}layers.{index}"
    specs: list[Spec] = [(f"{name}.input_layernorm.weight", "BF16", (hidden,)),
                         (f"{name}.post_attention_layernorm.weight", "BF16", (hidden,))]  # fmt: skip
    if (index + 1) % text["full_attention_interval"] == 0:
        heads, kv, size = text["num_attention_heads"], text["num_key_value_heads"], text["head_dim"]
        specs += linear(f"{name}.self_attn.q_proj", 2 * heads * size, hidden, packed=packed)
        specs += linear(f"{name}.self_attn.k_proj", kv * size, hidden, packed=packed)
        specs += linear(f"{name}.self_attn.v_proj", kv * size, hidden, packed=packed)
        specs += linear(f"{name}.self_attn.o_proj", hidden, heads * size, packed=packed)
        specs += [(f"{name}.self_attn.{n}_norm.weight", "BF16", (size,)) for n in "qk"]
    else:
        key = text["linear_num_key_heads"] * text["linear_key_head_dim"]
        value = text["linear_num_value_heads"] * text["linear_value_head_dim"]
        specs += linear(f"{name}.linear_attn.in_proj_qkv", 2 * key + value, hidden, packed=packed)
        specs += linear(f"{name}.linear_attn.in_proj_z", value, hidden, packed=packed)
        for letter in "ab":
            specs += linear(f"{name}.linear_attn.in_proj_{letter}", text["linear_num_value_heads"], hidden,
                            packed="" if plain_ab else packed)  # fmt: skip
        specs += linear(f"{name}.linear_attn.out_proj", hidden, value, packed=packed)
        specs += [(f"{name}.linear_attn.conv1d.weight", "BF16", (2 * key + value, 1, 4)),
                  (f"{name}.linear_attn.A_log", "F32", (text["linear_num_value_heads"],)),
                  (f"{name}.linear_attn.dt_bias", "BF16", (text["linear_num_value_heads"],)),
                  (f"{name}.linear_attn.norm.weight", "F32", (text["linear_value_head_dim"],))]  # fmt: skip
    specs += linear(f"{name}.mlp.gate_proj", wide, hidden, packed=packed)
    specs += linear(f"{name}.mlp.up_proj", wide, hidden, packed=packed)
    specs += linear(f"{name}.mlp.down_proj", hidden, wide, packed=packed)
    return specs


def mtp_tensors(text: dict[str, Any]) -> list[Spec]:
    """The MTP block of such a model: one full-attention layer and the fusing projection, in BF16."""
    hidden = text["hidden_size"]
    one = {**text, "full_attention_interval": 1}
    norms = [(f"mtp.{n}.weight", "BF16", (hidden,)) for n in ("norm", "pre_fc_norm_embedding", "pre_fc_norm_hidden")]
    return [*hybrid_layer("mtp.", 0, one, ""), ("mtp.fc.weight", "BF16", (hidden, 2 * hidden)), *norms]


def config_of(text: dict[str, Any], *, ignore: list[str] | None, method: str = "") -> dict[str, Any]:
    """The config.json of such a package."""
    config: dict[str, Any] = {"architectures": ["Qwen3_5ForConditionalGeneration"], "model_type": "qwen3_5",
                              "tie_word_embeddings": False, "text_config": text}  # fmt: skip
    if method == "ct":
        weights = {"num_bits": 4, "group_size": 128, "type": "int", "symmetric": True}
        config["quantization_config"] = {
            "quant_method": "compressed-tensors", "format": "pack-quantized", "ignore": ignore or [],
            "config_groups": {"group_0": {"targets": ["Linear"], "weights": weights}},
        }  # fmt: skip
    if method == "awq":
        config["quantization_config"] = {"quant_method": "awq", "bits": 4, "group_size": 128, "version": "gemm",
                                         "modules_to_not_convert": ignore or []}  # fmt: skip
    return config


def hybrid(
    folder: Path,
    *,
    layers: int = 64,
    shards: int = 4,
    method: str = "ct",
    ignore: list[str] | None = None,
    prefix: str = "model.language_model.",
    plain_ab: bool = True,
    mtp: bool = True,
    extra: Iterable[Spec] = (),
    drop: Iterable[str] = (),
    **text_changes: Any,
) -> Path:
    """A sharded hybrid with MTP in ``model_mtp.safetensors``: a package as people publish it."""
    folder.mkdir(parents=True, exist_ok=True)
    text = {**QWEN_TEXT, "num_hidden_layers": layers, **text_changes}
    hidden, vocab = text["hidden_size"], text["vocab_size"]
    specs: list[Spec] = [(f"{prefix}embed_tokens.weight", "BF16", (vocab, hidden))]
    for index in range(layers):
        specs += hybrid_layer(prefix, index, text, method, plain_ab)
    specs += [(f"{prefix}norm.weight", "BF16", (hidden,)), ("lm_head.weight", "BF16", (vocab, hidden)), *extra]
    gone = set(drop)
    specs = [s for s in specs if s[0] not in gone]
    weight_map: dict[str, str] = {}
    total = 0
    size = -(-len(specs) // shards)
    parts = {f"model-{n + 1:05d}-of-{shards:05d}.safetensors": specs[n * size : (n + 1) * size] for n in range(shards)}
    if mtp:
        parts["model_mtp.safetensors"] = mtp_tensors(text)
    for name, part in parts.items():
        total += shard(folder / name, part)
        weight_map |= {spec[0]: name for spec in part}
    index_file = {"metadata": {"total_size": total}, "weight_map": weight_map}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index_file))
    config = config_of(text, ignore=IGNORE if ignore is None else ignore, method=method)
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def edit_json(path: Path, change: Any) -> None:
    """Rewrites the JSON file ``path`` with ``change`` applied to its value."""
    value = json.loads(path.read_text())
    change(value)
    path.write_text(json.dumps(value))
