"""What each tensor is for, and how many bytes of it one rank holds.

Approximations for the share of a rank, which are those of the engines' usual layers: column- and row-parallel matrices
are divided by TP; embedding and head too (the embedding is whole on each rank under SGLang's DP attention); K and V
projections are divided only down to one KV head; norms, routers, MLA's down projections and the draft's fusing layer
are whole on each rank; experts are divided by the larger of TP and EP. A pipeline stage holds its own layers, the first
one the embedding and vision tower too, the last one head and MTP. Not modelled: redundant experts, data-parallel
vision towers, LoRA, padding of the vocabulary.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache

from analyzer.evidence.geometry import Geometry
from analyzer.evidence.model_config import ModelConfig
from analyzer.evidence.safetensors import Tensor

COMPONENTS = (
    "embedding", "head", "attention", "linear attention", "MLP", "experts", "shared experts", "router", "norms",
    "vision", "audio", "MTP", "other",
)  # fmt: skip

_PATTERNS: tuple[tuple[str, str], ...] = (
    ("MTP", r"(^|\.)(mtp|nextn|mtp_layers|mtp_block|mtp_emb_norm|mtp_hidden_norm|mtp_linear_proj)\b|(^|\.)mtp_"),
    ("vision", r"(^|\.)(visual|vision\w*|vit|mm_projector|multi_modal_projector|image_newline|patch_embed|mlp1)\b"),
    ("audio", r"(^|\.)(audio\w*|speech\w*|code2wav|talker)\b"),
    ("head", r"(^|\.)(lm_head|embed_out|output_layer)\b|^output\."),
    ("embedding", r"(^|\.)(embed_tokens\w*|wte|word_embeddings|tok_embeddings|token_embd\w*|embed_in)\b"
                  r"|(^|\.)(backbone|transformer|model)\.(embeddings?|embedding\.word_embeddings)\b|per_layer_token_embd"),
    ("shared experts", r"\bshared_(expert|experts|mlp)\b|_shexp\b"),
    ("experts", r"\b(experts|local_experts)\b|_exps\b"),
    ("router", r"\b(mlp|block_sparse_moe|moe|mixer|feed_forward|ffn)\.(gate|router)\.|_gate_inp\b|shared_expert_gate"
               r"|e_score_correction_bias"),
    ("linear attention", r"\b(linear_attn|mamba|linear_attention|ssm|conv)\.|\.ssm_|\b(A_log|dt_bias|conv1d)\b"),
    ("norms", r"(layer_?norm|rms_?norm|(^|\.)\w*norm\w*)\.(weight|bias)$|\.ln_\w+\.(weight|bias)$"),
    ("attention", r"\b(self_attn|self_attention|attention|attn|cross_attn)\b|\.attn_"),
    ("MLP", r"\b(mlp|feed_forward|ffn|dense_h_to_4h|w1|w2|w3)\b|\.ffn_"),
)  # fmt: skip

_DIGITS = re.compile(r"\d+")
_LAYER = re.compile(r"(?:^|\.)(?:layers|h|blocks|blk|layer)\.(\d{1,5})\.")


@lru_cache(maxsize=1)
def _compiled() -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple((name, re.compile(pattern)) for name, pattern in _PATTERNS)


def layer_index(name: str) -> int | None:
    """The number of the hidden layer that tensor ``name`` belongs to, or None."""
    match = _LAYER.search(name)
    return int(match[1]) if match else None


@lru_cache(maxsize=4096)
def _by_name(name: str) -> str:
    """The component that ``name`` alone tells. Numbers do not matter, so a name stands for all layers and experts."""
    return next((what for what, pattern in _compiled() if pattern.search(name)), "other")


def component_of(name: str, config: ModelConfig, geometry: Geometry) -> str:
    """The component (one of ``COMPONENTS``) of tensor ``name``."""
    component = _by_name(_DIGITS.sub("0", name))
    if component in ("vision", "audio", "MTP"):
        return component
    index, count = layer_index(name), config.number("layers")
    if index is None or not count:
        return component
    if index >= count:  # DeepSeek, GLM and others store MTP as further layers
        return "MTP"
    if component in ("attention", "norms", "other") or ".mixer." in name:
        return _by_layer(name, component, index, geometry)
    return component


def _by_layer(name: str, component: str, index: int, geometry: Geometry) -> str:
    """Names that mean attention or recurrence depending on the layer (``self_attn`` of Kimi, ``mixer`` of Nemotron)."""
    layer = geometry.layers[index] if index < len(geometry.layers) else None
    inner = component == "attention" or ".mixer." in name
    if layer is None or not inner or component in ("experts", "shared experts", "router"):
        return component
    if layer.state and not layer.attention:
        return "linear attention"
    return "attention" if layer.attention else "MLP"


@dataclass(slots=True)
class Sizes:
    """Bytes of one group of tensors."""

    bytes: int = 0
    tensors: int = 0
    dtypes: Counter[str] = field(default_factory=Counter)


def by_component(tensors: Iterable[Tensor], config: ModelConfig, geometry: Geometry) -> dict[str, Sizes]:
    """Bytes, tensor count and bytes per dtype of each component that occurs."""
    sizes: dict[str, Sizes] = defaultdict(Sizes)
    for tensor in tensors:
        group = sizes[component_of(tensor.name, config, geometry)]
        group.bytes += tensor.bytes
        group.tensors += 1
        group.dtypes[tensor.dtype] += tensor.bytes
    return {name: sizes[name] for name in COMPONENTS if name in sizes}


@dataclass(frozen=True, slots=True)
class Ranks:
    """How the server spreads the model. ``attention_tp`` is TP over DP with SGLang's DP attention."""

    tp: int = 1
    pp: int = 1
    ep: int = 1
    attention_tp: int = 1
    engine: str = "sglang"


def stage_of(index: int, layers: int, ranks: Ranks) -> int:
    """The pipeline stage of layer ``index``. Left-over layers: SGLang gives them to the first stages, vLLM to the last
    but one and those before it."""
    if ranks.pp <= 1 or layers <= 0:
        return 0
    sizes = [layers // ranks.pp] * ranks.pp
    for extra in range(layers % ranks.pp):
        sizes[extra if ranks.engine == "sglang" else ranks.pp - 2 - extra] += 1
    for stage, size in enumerate(sizes):
        if index < size:
            return stage
        index -= size
    return ranks.pp - 1


@dataclass(frozen=True, slots=True)
class StageBytes:
    """Bytes that one rank of each pipeline stage holds: of the target and of its MTP layers."""

    target: tuple[int, ...]
    mtp: int


def rank_bytes(tensors: Iterable[Tensor], config: ModelConfig, geometry: Geometry, ranks: Ranks) -> StageBytes:
    """Bytes of the files that one rank of each stage loads (approximations: see the module)."""
    stages = [0.0] * max(1, ranks.pp)
    mtp = 0.0
    layers = config.number("layers") or 0
    for tensor in tensors:
        component = component_of(tensor.name, config, geometry)
        share = tensor.bytes * _share(tensor.name, component, geometry, ranks)
        if component == "MTP":
            mtp += share
            continue
        if component == "head" and config.tied:  # a stored copy of a tied head is not loaded
            continue
        index = None if component in ("vision", "audio") else layer_index(tensor.name)
        if index is not None:
            stages[stage_of(index, layers, ranks)] += share
        elif component == "head":
            stages[-1] += share
        else:
            stages[0] += share
            if component == "embedding" and config.tied and ranks.pp > 1:
                stages[-1] += share
    return StageBytes(tuple(int(s) for s in stages), int(mtp))


_WHOLE = re.compile(r"(q_a_proj|kv_a_proj_with_mqa|fused_qkv_a_proj|indexer\.|\.(fc|eh_proj|mtp_linear_proj)\.|norm)")
_KV = re.compile(r"\b(k_proj|v_proj|k|v|attn_k|attn_v)\.")


def _share(name: str, component: str, geometry: Geometry, ranks: Ranks) -> float:
    if ranks.tp <= 1 and ranks.ep <= 1:
        return 1.0
    if component in ("router", "norms") or (component != "linear attention" and _WHOLE.search(name)):
        return 1.0
    if "experts." in name and component in ("experts", "MTP"):
        return 1.0 / max(ranks.tp, ranks.ep)
    if component == "embedding":
        return 1.0 if ranks.attention_tp < ranks.tp else 1.0 / ranks.tp
    if component == "attention":
        heads = geometry.kv_heads
        if _KV.search(name) and heads and 0 < heads < ranks.attention_tp:
            return 1.0 / heads
        return 1.0 / ranks.attention_tp
    return 1.0 / (ranks.attention_tp if component == "linear attention" else ranks.tp)
