"""Headers of GGUF files: metadata and tensor list, never tensor data (public specification, versions 2 and 3).

Counts and lengths in the file are bounded by what the file can hold, so that a lying header is refused instead of
filling memory. Long arrays (the tokenizer's vocabulary) are skipped: only their length is kept.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from analyzer.evidence.safetensors import HeaderError, Tensor, elements

MAX_STRING = 1 << 24
MAX_ITEMS = 1 << 20
KEPT_ITEMS = 1024
"""Arrays longer than this are skipped; per-layer arrays (head counts, windows) are shorter."""

_FIXED = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9

BLOCKS: dict[int, tuple[str, int, int]] = {
    0: ("F32", 1, 4), 1: ("F16", 1, 2), 2: ("Q4_0", 32, 18), 3: ("Q4_1", 32, 20), 6: ("Q5_0", 32, 22),
    7: ("Q5_1", 32, 24), 8: ("Q8_0", 32, 34), 9: ("Q8_1", 32, 36), 10: ("Q2_K", 256, 84), 11: ("Q3_K", 256, 110),
    12: ("Q4_K", 256, 144), 13: ("Q5_K", 256, 176), 14: ("Q6_K", 256, 210), 15: ("Q8_K", 256, 292),
    16: ("IQ2_XXS", 256, 66), 17: ("IQ2_XS", 256, 74), 18: ("IQ3_XXS", 256, 98), 19: ("IQ1_S", 256, 50),
    20: ("IQ4_NL", 32, 18), 21: ("IQ3_S", 256, 110), 22: ("IQ2_S", 256, 82), 23: ("IQ4_XS", 256, 136),
    24: ("I8", 1, 1), 25: ("I16", 1, 2), 26: ("I32", 1, 4), 27: ("I64", 1, 8), 28: ("F64", 1, 8),
    29: ("IQ1_M", 256, 56), 30: ("BF16", 1, 2), 34: ("TQ1_0", 256, 54), 35: ("TQ2_0", 256, 66),
    39: ("MXFP4", 32, 17), 40: ("NVFP4", 64, 36),
}  # fmt: skip
"""Type number -> name, elements in a block, bytes of a block."""


@dataclass(frozen=True, slots=True)
class GgufFile:
    """One GGUF file's header."""

    name: str
    version: int
    metadata: dict[str, Any]
    tensors: tuple[Tensor, ...]
    problems: tuple[str, ...] = ()


def read_gguf(path: Path) -> GgufFile:
    """The header of ``path``. Raises ``HeaderError`` if it cannot be believed, ``OSError`` if it cannot be read."""
    if not path.is_file():
        raise HeaderError(f"{path.name} is not a regular file")
    size = path.stat().st_size
    with path.open("rb") as file:
        return _Reader(file, path.name, size).header()


class _Reader:
    """Reads one header. Every count is checked against the bytes that are left."""

    def __init__(self, file: BinaryIO, name: str, size: int) -> None:
        self.file, self.name, self.size = file, name, size

    def header(self) -> GgufFile:
        if self._take(4) != b"GGUF":
            raise HeaderError(f"{self.name} does not begin with GGUF")
        version = self._number("I")
        if version not in (2, 3):
            raise HeaderError(f"{self.name} is GGUF version {version}: only little-endian versions 2 and 3 are known")
        tensor_count, pair_count = self._number("Q"), self._number("Q")
        if max(tensor_count, pair_count) > min(MAX_ITEMS, self.size // 12):
            raise HeaderError(
                f"{self.name} claims {tensor_count:,} tensors and {pair_count:,} entries: too many for it"
            )
        metadata: dict[str, Any] = {}
        for _ in range(pair_count):
            key = self._string()
            metadata[key] = self._value(self._number("I"))
        infos = [self._tensor_info() for _ in range(tensor_count)]
        align = metadata.get("general.alignment", 32)
        align = align if isinstance(align, int) and align > 0 else 32
        data_start = -(-self.file.tell() // align) * align
        problems: list[str] = []
        tensors = []
        for name, shape, kind, offset in infos:
            label, per_block, block_bytes = BLOCKS.get(kind, (f"type {kind}", 0, 0))
            if not per_block:
                problems.append(f"{self.name}: {name[:120]} has a type that is not known ({kind}), counted as 0 bytes")
            bytes_ = elements(shape) // per_block * block_bytes if per_block else 0
            missing = min(bytes_, max(0, data_start + offset + bytes_ - self.size))
            tensors.append(Tensor(name, label, tuple(reversed(shape)), bytes_, self.name, missing))
        return GgufFile(self.name, version, metadata, tuple(tensors), tuple(problems))

    def _tensor_info(self) -> tuple[str, tuple[int, ...], int, int]:
        name = self._string()
        rank = self._number("I")
        if rank > 8:
            raise HeaderError(f"{self.name} gives tensor {name[:120]!r} {rank} dimensions")
        shape = tuple(self._number("Q") for _ in range(rank))
        return name, shape, self._number("I"), self._number("Q")

    def _value(self, kind: int, depth: int = 0) -> Any:
        if kind in _FIXED:
            return self._number(_FIXED[kind])
        if kind == _STRING:
            return self._string()
        if kind == _ARRAY and depth < 3:
            return self._array(depth)
        raise HeaderError(f"{self.name} holds a metadata value of an unknown type ({kind})")

    def _array(self, depth: int) -> Any:
        kind, count = self._number("I"), self._number("Q")
        if count > self.size:
            raise HeaderError(f"{self.name} claims an array of {count:,} values, but holds only {self.size:,} bytes")
        if kind in _FIXED:
            code = _FIXED[kind]
            if count > KEPT_ITEMS:
                self._skip(count * struct.calcsize(f"<{code}"))
                return {"length": count}
            raw = self._take(count * struct.calcsize(f"<{code}"))
            return list(struct.unpack(f"<{count}{code}", raw))
        if count > KEPT_ITEMS:
            for _ in range(count):
                self._skip(self._number("Q")) if kind == _STRING else self._value(kind, depth + 1)
            return {"length": count}
        return [self._value(kind, depth + 1) for _ in range(count)]

    def _string(self) -> str:
        length = self._number("Q")
        if length > MAX_STRING:
            raise HeaderError(f"{self.name} claims a text of {length:,} bytes")
        return self._take(length).decode("utf-8", "replace")

    def _number(self, code: str) -> Any:
        return struct.unpack(f"<{code}", self._take(struct.calcsize(f"<{code}")))[0]

    def _take(self, count: int) -> bytes:
        data = self.file.read(count) if count <= self.size else b""
        if len(data) != count:
            raise HeaderError(f"{self.name} ended in the middle of its header")
        return data

    def _skip(self, count: int) -> None:
        if self.file.tell() + count > self.size:
            raise HeaderError(f"{self.name} ended in the middle of its header")
        self.file.seek(count, 1)


_ARCH_KEYS = {
    "block_count": "num_hidden_layers", "embedding_length": "hidden_size", "context_length": "max_position_embeddings",
    "attention.head_count": "num_attention_heads", "attention.head_count_kv": "num_key_value_heads",
    "attention.key_length": "head_dim", "attention.value_length": "v_head_dim", "vocab_size": "vocab_size",
    "feed_forward_length": "intermediate_size", "attention.sliding_window": "sliding_window",
    "expert_count": "n_routed_experts", "attention.kv_lora_rank": "kv_lora_rank",
    "rope.dimension_count": "qk_rope_head_dim", "nextn_predict_layers": "num_nextn_predict_layers",
    "full_attention_interval": "full_attention_interval", "ssm.conv_kernel": "linear_conv_kernel_dim",
    "ssm.state_size": "linear_key_head_dim", "ssm.group_count": "linear_num_key_heads",
    "ssm.time_step_rank": "linear_num_value_heads", "ssm.inner_size": "_ssm_inner",
}  # fmt: skip


def config_of(metadata: dict[str, Any]) -> dict[str, Any]:
    """A config in the names of config.json from GGUF metadata (names of llama.cpp's own converter)."""
    arch = str(metadata.get("general.architecture", ""))
    config: dict[str, Any] = {"architectures": [f"gguf:{arch}"], "model_type": arch}
    for key, name in _ARCH_KEYS.items():
        if (value := metadata.get(f"{arch}.{key}")) is not None:
            config[name] = value
    tokens = metadata.get("tokenizer.ggml.tokens")
    if "vocab_size" not in config and isinstance(tokens, dict | list):
        config["vocab_size"] = tokens["length"] if isinstance(tokens, dict) else len(tokens)
    heads = config.get("num_key_value_heads")
    if isinstance(heads, list):  # per layer; 0 marks a layer without attention
        config["layer_types"] = ["full_attention" if h else "linear_attention" for h in heads]
        config["num_key_value_heads"] = max(heads, default=0)
    inner, value_heads = config.pop("_ssm_inner", None), config.get("linear_num_value_heads")
    if inner and value_heads:
        config["linear_value_head_dim"] = inner // value_heads
    if "kv_lora_rank" not in config:
        config.pop("qk_rope_head_dim", None)
    if isinstance(config.get("num_attention_heads"), list):
        config["num_attention_heads"] = max(config["num_attention_heads"], default=0)
    return config
