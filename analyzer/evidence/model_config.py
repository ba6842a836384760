"""config.json as one plain view: text and vision parts, names of the same thing under different keys, draft fields.

Published configs nest the language model under several names (``text_config``, ``llm_config``, ``language_config``,
``thinker_config`` …) and call one thing by several names (``num_hidden_layers``, ``n_layer``). Only what bears on
memory is read. A value of the wrong type counts as absent: a config is other people's file.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

MAX_JSON = 64 << 20
"""The longest JSON file of a model folder that is read (a shard index with hundreds of thousands of names fits)."""

TEXT_PARTS = ("text_config", "llm_config", "language_config", "language_model_config", "lm_config", "thinker_config")
VISION_PARTS = ("vision_config", "vit_config", "visual_config", "vision_tower_config", "vision_encoder_config")

MTP_FIELDS = (
    "num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_layers", "mtp_num_layers", "num_mtp_modules",
    "n_predict",
)  # fmt: skip
"""Fields that give the number of MTP layers. SGLang 0.5.14 .. 0.5.23 reads the first only (reference sglang 3.6)."""

_ALIASES: dict[str, tuple[str, ...]] = {
    "layers": ("num_hidden_layers", "n_layer", "num_layers", "n_layers", "num_decoder_layers"),
    "hidden": ("hidden_size", "n_embd", "d_model", "dim", "model_dim"),
    "heads": ("num_attention_heads", "n_head", "n_heads", "num_heads"),
    "kv_heads": ("num_key_value_heads", "num_kv_heads", "multi_query_group_num", "n_kv_heads", "n_head_kv"),
    "head_dim": ("head_dim", "kv_channels", "attention_head_dim", "head_size"),
    "vocab": ("vocab_size", "padded_vocab_size", "n_vocab"),
    "context": ("max_position_embeddings", "max_sequence_length", "seq_length", "n_positions", "model_max_length",
                "max_seq_len", "n_ctx"),
    "intermediate": ("intermediate_size", "ffn_hidden_size", "n_inner", "hidden_dim"),
    "experts": ("n_routed_experts", "num_experts", "num_local_experts", "moe_num_experts"),
}  # fmt: skip


class ConfigError(ValueError):
    """A JSON file of a model folder that cannot be used. The message is one sentence."""


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """What config.json says, as far as memory is concerned.

    ``text`` is the language model's part (with the outer values below it where it lacks them), ``text_part`` the key
    it was found under (``""`` if the config is flat). ``mtp_field`` is the key that gave ``mtp_layers``, and
    ``mtp_in_text`` says whether it stands in the language model's own part.
    """

    raw: dict[str, Any] = field(default_factory=dict)
    text: dict[str, Any] = field(default_factory=dict)
    text_part: str = ""
    vision: dict[str, Any] = field(default_factory=dict)
    architecture: str = ""
    model_type: str = ""
    dtype: str = "bfloat16"
    tied: bool = False
    mtp_layers: int | None = None
    mtp_field: str = ""
    mtp_in_text: bool = False

    def number(self, name: str, default: int | None = None) -> int | None:
        """The integer called ``name`` (a key of the aliases above, or a config key of the language model)."""
        for key in _ALIASES.get(name, (name,)):
            value = whole(self.text.get(key))
            if value is not None:
                return value
        return default

    @property
    def head_dim(self) -> int | None:
        """The size of one attention head: given, else hidden size over heads."""
        given = self.number("head_dim")
        hidden, heads = self.number("hidden"), self.number("heads")
        return given or (hidden // heads if hidden and heads else None)

    @property
    def kv_heads(self) -> int | None:
        """KV heads of the whole model: given, one for multi-query, else as many as attention heads."""
        if (given := self.number("kv_heads")) is not None:
            return given
        nested = self.text.get("attn_config")
        if isinstance(nested, dict) and (count := whole(nested.get("kv_n_heads"))) is not None:
            return count
        if self.text.get("multi_query") is True and not self.text.get("new_decoder_architecture"):
            return 1
        return self.number("heads")

    @property
    def context(self) -> int | None:
        """The context length: declared, or scaled by a rope factor that the config carries (yarn and the like)."""
        declared = self.number("context")
        for key in ("rope_scaling", "rope_parameters"):
            scaling = self.text.get(key)
            if not isinstance(scaling, dict) or declared is None:
                continue
            kind = scaling.get("rope_type", scaling.get("type"))
            original, factor = whole(scaling.get("original_max_position_embeddings")), scaling.get("factor")
            if kind == "yarn" and original and isinstance(factor, int | float) and not isinstance(factor, bool):
                return max(declared, int(original * factor))
        return declared


def read_json(path: Path) -> Any:
    """The JSON value in ``path``. Raises ``ConfigError`` if it is too long or no JSON, ``OSError`` if unreadable."""
    if not path.is_file():
        raise ConfigError(f"{path.name} is not a regular file")
    if path.stat().st_size > MAX_JSON:
        raise ConfigError(f"{path.name} is longer than any file of this kind ({path.stat().st_size:,} bytes)")
    try:
        return json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path.name} is no valid JSON: {str(error)[:120]}") from error


def parse_config(raw: Any) -> ModelConfig:
    """The view of a config. Raises ``ConfigError`` if ``raw`` is no object."""
    if not isinstance(raw, dict):
        raise ConfigError("config.json holds no object")
    part, inner = _part(raw, TEXT_PARTS)
    while part and (deeper := _part(inner, TEXT_PARTS)[0]):  # omni models nest twice
        part, inner = f"{part}.{deeper}", inner[deeper]
    text = {**{k: v for k, v in raw.items() if not isinstance(v, dict)}, **inner} if part else raw
    architectures = raw.get("architectures")
    architecture = architectures[0] if isinstance(architectures, list) and architectures else ""
    layers, name, in_text = _mtp(raw, inner if part else raw)
    tied = raw.get("tie_word_embeddings", inner.get("tie_word_embeddings", False))
    return ModelConfig(
        raw=raw,
        text=text,
        text_part=part,
        vision=_part(raw, VISION_PARTS)[1],
        architecture=str(architecture),
        model_type=str(text.get("model_type") or raw.get("model_type") or ""),
        dtype=_dtype(inner) or _dtype(raw) or "bfloat16",
        tied=bool(inner.get("tie_word_embeddings", tied)),
        mtp_layers=layers,
        mtp_field=name,
        mtp_in_text=in_text,
    )


def whole(value: Any) -> int | None:
    """``value`` as a non-negative integer, or None if it is none."""
    if isinstance(value, bool):
        return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and 0 <= value < 1 << 50 else None


def _part(config: dict[str, Any], names: tuple[str, ...]) -> tuple[str, dict[str, Any]]:
    for name in names:
        value = config.get(name)
        if isinstance(value, dict) and value:
            return name, value
    return "", {}


def _dtype(config: dict[str, Any]) -> str:
    value = config.get("dtype") or config.get("torch_dtype")
    return value.removeprefix("torch.") if isinstance(value, str) else ""


def _mtp(raw: dict[str, Any], text: dict[str, Any]) -> tuple[int | None, str, bool]:
    for place, in_text in ((text, True), (raw, text is raw)):
        for name in MTP_FIELDS:
            if (count := whole(place.get(name))) is not None:
                return count, name, in_text
        nested = place.get("mtp_config")
        if isinstance(nested, dict) and (count := whole(nested.get("num_hidden_layers"))) is not None:
            return count, "mtp_config.num_hidden_layers", in_text
    return None, "", False
