"""What each layer keeps per token (KV) and per request (recurrent state), from the config.

One layer may keep KV, a recurrent state, both (Falcon-H1) or neither (MLP-only blocks of Nemotron-H, layers that share
another layer's KV). Sizes in bytes, ranks and dtypes are the business of ``cache_bytes``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from analyzer.evidence.model_config import ModelConfig, whole
from analyzer.evidence.states import StateSpec, state_spec

FULL, WINDOW, CHUNKED = "full", "window", "chunked"
LINEAR_NAMES = frozenset({"linear_attention", "linear", "mamba", "mamba2", "recurrent", "lightning_attention", "kda"})


@dataclass(frozen=True, slots=True)
class AttentionSpec:
    """The KV that one layer keeps.

    ``latent`` > 0 means MLA: one latent vector of ``latent`` + ``rope`` elements for all heads. ``indexer`` is the
    head size of a sparse-attention indexer's keys, 0 without one. ``window`` is the reach in tokens for
    ``span`` window or chunked.
    """

    span: str
    kv_heads: int
    head_dim: int
    v_head_dim: int
    window: int = 0
    latent: int = 0
    rope: int = 0
    indexer: int = 0


@dataclass(frozen=True, slots=True)
class Layer:
    """One hidden layer. Both parts None: it keeps nothing."""

    attention: AttentionSpec | None = None
    state: StateSpec | None = None


@dataclass(frozen=True, slots=True)
class Geometry:
    """The layers of a model. ``unknown`` says why the cache sizes cannot be told, ``""`` if they can."""

    layers: tuple[Layer, ...] = ()
    unknown: str = ""

    @property
    def attention(self) -> tuple[AttentionSpec, ...]:
        """The layers that keep KV."""
        return tuple(layer.attention for layer in self.layers if layer.attention)

    @property
    def states(self) -> tuple[StateSpec, ...]:
        """The layers that keep a recurrent state."""
        return tuple(layer.state for layer in self.layers if layer.state)

    @property
    def kv_heads(self) -> int:
        """KV heads of the widest layer (1 for MLA)."""
        return max((1 if a.latent else a.kv_heads for a in self.attention), default=0)

    @property
    def windowed(self) -> tuple[AttentionSpec, ...]:
        """The layers whose attention does not reach back to the first token."""
        return tuple(a for a in self.attention if a.span != FULL)


def geometry_of(config: ModelConfig) -> Geometry:
    """The layers that ``config`` describes."""
    count = config.number("layers")
    if not count:
        return Geometry(unknown="config.json gives no number of layers")
    if count > 10_000:
        return Geometry(unknown=f"config.json claims {count:,} layers")
    if config.text.get("compress_ratios") or config.text.get("compress_ratio"):
        return Geometry(unknown="compressed attention (DeepSeek V4 class): the engine prints its own bytes per token")
    if config.raw.get("is_encoder_decoder") is True:
        return Geometry(unknown="an encoder-decoder model: cross attention is not modelled")
    kinds = _kinds(config, count)
    full, windowed = _attention(config, FULL), _attention(config, WINDOW)
    if full is None and any(kind not in ("state", "none") for kind in kinds):
        return Geometry(unknown="config.json gives neither head size nor hidden size and heads")
    shared = config.number("num_kv_shared_layers") or 0
    state = state_spec(config) if {"state", "both"} & set(kinds) else None
    if state is None and {"state", "both"} & set(kinds):
        return Geometry(unknown="recurrent layers of a kind whose state is not known")
    layers = []
    for index, kind in enumerate(kinds):
        attention = windowed if kind in (WINDOW, CHUNKED) else full
        if kind in ("state", "none") or (shared and index >= count - shared):
            attention = None
        layers.append(Layer(attention, state if kind in ("state", "both") else None))
    return Geometry(tuple(layers))


def _attention(config: ModelConfig, span: str) -> AttentionSpec | None:
    latent, rope = config.number("kv_lora_rank") or 0, config.number("qk_rope_head_dim") or 0
    if latent:
        return AttentionSpec(FULL, 1, latent + rope, 0, latent=latent, rope=rope,
                             indexer=config.number("index_head_dim") or 0)  # fmt: skip
    heads, size = config.kv_heads, config.head_dim
    v_size = config.number("v_head_dim") or size
    if span == FULL:  # Gemma 4 class: full layers have other heads than window layers
        heads = config.number("num_global_key_value_heads") or heads
        if (wide := config.number("global_head_dim")) is not None:
            size = v_size = wide
    else:  # MiMo V2 class: window layers have other heads
        heads = config.number("swa_num_key_value_heads") or heads
        size = config.number("swa_head_dim") or size
        v_size = config.number("swa_v_head_dim") or v_size
    if not heads or not size or not v_size:
        return None
    reach = config.number("sliding_window") or config.number("sliding_window_size") or config.number("window_size")
    chunk = config.number("attention_chunk_size")
    if span == FULL:
        return AttentionSpec(FULL, heads, size, v_size)
    return AttentionSpec(CHUNKED if chunk and not reach else WINDOW, heads, size, v_size, reach or chunk or 0)


def _kinds(config: ModelConfig, count: int) -> list[str]:
    """For each layer: full, window, chunked, state, both, none."""
    for read in (_by_layer_types, _by_pattern, _by_lists, _by_period, _by_window):
        kinds = read(config.text, config, count)
        if kinds:
            return kinds
    return [FULL] * count


def _by_layer_types(text: dict[str, Any], config: ModelConfig, count: int) -> list[str]:
    types = text.get("layer_types") or text.get("layers_block_type") or text.get("block_types")
    if not isinstance(types, list) or not types:
        return []
    names = {"full_attention": FULL, "attention": FULL, "sliding_attention": WINDOW, "chunked_attention": CHUNKED,
             "sparse": FULL, "conv": "state", "moe": "none", "mlp": "none", "hybrid": "both"}  # fmt: skip
    kinds = ["state" if str(name) in LINEAR_NAMES else names.get(str(name), FULL) for name in types]
    kinds = (kinds * -(-count // len(kinds)))[:count]  # short lists repeat
    if WINDOW in kinds and not (config.number("sliding_window") or config.number("window_size")):
        return [FULL if kind == WINDOW else kind for kind in kinds]
    return kinds


def _by_pattern(text: dict[str, Any], config: ModelConfig, count: int) -> list[str]:
    pattern = text.get("hybrid_override_pattern")
    if isinstance(pattern, str) and pattern:  # Nemotron-H: M mamba, * attention, - MLP, E experts
        return [{"M": "state", "*": FULL}.get(letter, "none") for letter in pattern if letter in "M*-E"][:count]
    pattern = text.get("hybrid_layer_pattern")
    if isinstance(pattern, list) and pattern:  # MiMo V2: 1 marks a window layer
        return [WINDOW if mark == 1 else FULL for mark in pattern][:count]
    pattern = text.get("attn_type_list")
    if isinstance(pattern, list) and pattern:  # MiniMax: 0 marks lightning attention
        return ["state" if mark == 0 else FULL for mark in pattern][:count]
    return []


def _by_lists(text: dict[str, Any], config: ModelConfig, count: int) -> list[str]:
    linear = text.get("linear_attn_config")
    if isinstance(linear, dict) and isinstance(linear.get("full_attn_layers"), list):  # Kimi Linear counts from 1
        full = {whole(n) for n in linear["full_attn_layers"]}
        return [FULL if index + 1 in full else "state" for index in range(count)]
    for key in ("attn_layer_indices", "full_attn_idxs", "attention_layers_idx"):
        if isinstance(text.get(key), list) and text[key]:
            full = {whole(n) for n in text[key]}
            return [FULL if index in full else "state" for index in range(count)]
    flags = text.get("no_rope_layers")
    if isinstance(flags, list) and config.number("attention_chunk_size") and len(flags) >= count:  # Llama 4
        return [CHUNKED if flag else FULL for flag in flags[:count]]
    return []


def _by_period(text: dict[str, Any], config: ModelConfig, count: int) -> list[str]:
    if (period := whole(text.get("full_attention_interval"))) and text.get("linear_num_value_heads"):
        return [FULL if (index + 1) % period == 0 else "state" for index in range(count)]
    if period := whole(text.get("attn_layer_period")):  # Jamba
        offset = whole(text.get("attn_layer_offset")) or 0
        return [FULL if index % period == offset else "state" for index in range(count)]
    if (period := whole(text.get("layer_group_size"))) and "linear" in config.model_type:  # Bailing linear
        return [FULL if (index + 1) % period == 0 or index >= count // period * period else "state"
                for index in range(count)]  # fmt: skip
    if text.get("mamba_d_ssm") and config.number("heads"):  # Falcon-H1: both in every layer
        return ["both"] * count
    if (config.model_type in ("mamba", "mamba2", "falcon_mamba")) and text.get("state_size"):
        return ["state"] * count
    return []


def _by_window(text: dict[str, Any], config: ModelConfig, count: int) -> list[str]:
    window = config.number("sliding_window")
    if not window or text.get("use_sliding_window") is False:
        return []
    period = whole(text.get("sliding_window_pattern")) or whole(text.get("_sliding_window_pattern"))
    if not period and config.model_type == "gemma2":
        period = 2
    if period:
        return [FULL if (index + 1) % period == 0 else WINDOW for index in range(count)]
    if (first := whole(text.get("max_window_layers"))) is not None and text.get("use_sliding_window"):  # Qwen2
        return [FULL if index < first else WINDOW for index in range(count)]
    return [WINDOW] * count
