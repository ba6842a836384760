"""Bytes of KV per token and of state per slot on one rank, by engine, version, element types and parallelism.

Formulas: reference sglang 3.3 (cell size by version) and 3.7 (state), vllm 3.5 (page size per layer kind). All give
bytes per token, so a page or block is these times its tokens.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from analyzer.evidence.geometry import FULL, AttentionSpec, Geometry
from analyzer.evidence.states import StateSpec

SGLANG_SWA_RATIO = 0.8
"""Default of swa_full_tokens_ratio (reference sglang 3.5)."""

FP8_LATENT = 656
"""Bytes of a scaled fp8 MLA entry of DeepSeek V3.2: 512 latent, 16 scales, 128 rope in bf16."""


@dataclass(frozen=True, slots=True)
class Setup:
    """How the model is served, as far as cache sizes depend on it.

    ``attention_tp`` ranks share the attention heads (TP over DP with SGLang's DP attention). ``version`` is a text
    like ``0.5.17``; empty means the newest known. ``draft_tokens`` are the speculative tokens of one step.
    """

    engine: str = "sglang"
    version: str = ""
    attention_tp: int = 1
    kv_dtype: str = "auto"
    ssm_dtype: str = "auto"
    conv_dtype: str = "auto"
    model_dtype: str = "bfloat16"
    swa_ratio: float = SGLANG_SWA_RATIO
    hybrid_swa: bool = True
    draft_tokens: int = 0


def version_key(text: str) -> tuple[int, ...]:
    """``0.5.17.post1`` as numbers that compare; an empty text is newer than all."""
    numbers = [int(n) for n in re.findall(r"\d{1,6}", text)[:4]]
    return tuple(numbers) if numbers else (1 << 30,)


def element_bytes(dtype: str, model_dtype: str = "bfloat16") -> float:
    """Bytes of one element of ``dtype``; ``auto`` is the model's own. Packed four-bit types count their scales.

    fp4 (SGLang 0.5.6+, nvfp4 in vLLM 0.21+): half a byte and one scale byte for sixteen elements.
    """
    name = dtype.lower().removeprefix("torch.")
    if name in ("", "auto", "none"):
        name = model_dtype.lower().removeprefix("torch.")
    if "fp4" in name or "float4" in name or name == "f4":
        return 0.5625
    if "fp8" in name or "float8" in name or name.startswith(("e4m3", "e5m2", "int8", "uint8", "f8")):
        return 1.0
    if name in ("float32", "fp32", "float", "f32"):
        return 4.0
    return 2.0


def rank_heads(attention: AttentionSpec, attention_tp: int) -> int:
    """KV heads of one layer on one rank: once there are more ranks than heads, each keeps a copy of one head."""
    return max(1, attention.kv_heads // max(1, attention_tp))


def layer_bytes(attention: AttentionSpec, setup: Setup) -> float:
    """KV bytes that one layer keeps for one token on one rank."""
    e = element_bytes(setup.kv_dtype, setup.model_dtype)
    if attention.latent:
        return _latent_bytes(attention, setup, e)
    sizes = attention.head_dim + attention.v_head_dim
    if setup.engine == "sglang" and version_key(setup.version) < (0, 5, 7):
        sizes = 2 * attention.head_dim
    return rank_heads(attention, setup.attention_tp) * sizes * e


def _latent_bytes(attention: AttentionSpec, setup: Setup, e: float) -> float:
    """MLA: one latent for all heads on every rank, and the sparse indexer's keys beside it (fp8 with scales)."""
    width = attention.latent + attention.rope
    latent = width * e
    if not attention.indexer:
        return latent
    version, size = version_key(setup.version), attention.indexer
    if setup.engine == "vllm":
        return (FP8_LATENT if e == 1 else latent) + size + 4
    if version < (0, 5, 4):
        return latent
    if e == 1 and version >= (0, 5, 17):
        latent = FP8_LATENT
    return latent + size + size / 128 * 4


def cell_bytes(geometry: Geometry, setup: Setup) -> float | None:
    """KV bytes for one token of the pool on one rank, target only; None if the geometry is not known.

    SGLang with window layers counts them at ``swa_ratio`` of the full pool (3.3, hybrid SWA from 0.5.9); vLLM's window
    layers take full pages of their own groups, so all layers count there.
    """
    if geometry.unknown or not geometry.attention:
        return None
    full = sum(layer_bytes(a, setup) for a in geometry.attention if a.span == FULL)
    window = sum(layer_bytes(a, setup) for a in geometry.windowed)
    if setup.engine == "sglang" and full and setup.hybrid_swa and version_key(setup.version) >= (0, 5, 9):
        window *= setup.swa_ratio
    return full + window


def state_bytes(state: StateSpec, setup: Setup) -> float:
    """State bytes of one layer and slot on one rank. vLLM's convolution window grows with the draft tokens."""
    extra = setup.draft_tokens if setup.engine == "vllm" else 0
    conv = state.conv_elements(setup.attention_tp, extra) * element_bytes(setup.conv_dtype, setup.model_dtype)
    ssm = "float32" if setup.ssm_dtype in ("", "auto", "None") and setup.engine == "sglang" else setup.ssm_dtype
    return conv + state.ssm_elements(setup.attention_tp) * element_bytes(ssm, setup.model_dtype)


def slot_bytes(geometry: Geometry, setup: Setup) -> float:
    """State bytes of one slot over all layers on one rank; 0 for a model without recurrent layers."""
    return sum(state_bytes(state, setup) for state in geometry.states)
