"""Bytes that the sizing charged for one token of the pool (reference 3.3 and 3.6, SGLang 0.4.0 .. 0.5.23).

Stored bytes per token come from the printed pools (or from the model's config); charged bytes are those times what
the version adds or leaves out: draft layers, scale buffers, the wide fp8 latent of sparse attention. Where speculation
is on the charged figure also follows from the budget itself; if the two disagree the budget is right, the store is not
what was charged, and the cell is called calibrated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from analyzer.units import GIB

if TYPE_CHECKING:
    from analyzer.sizing.sglang_inputs import Draft

SPARSE_MODELS = ("DeepseekV32ForCausalLM", "GlmMoeDsaForCausalLM", "MistralLarge3DsaForCausalLM")
SCALED_LATENT, RAW_LATENT, INDEXER = 656, 576, 132
RAW_BACKENDS = ("tilelang", "trtllm")
FP4_WITH_SCALES = 9 / 8
"""The store of fp4 KV with its scales over the packed values alone, which is all that versions before 0.5.13 print.
(``pool.scales_unprinted``)"""
TOLERANCE = 0.03
ROUNDING = 0.005 * GIB
MOST_UNCERTAIN = 0.04
"""A budget that is less certain than this share of it says nothing of what was charged."""
MOST_ROUNDING = 0.06
"""A printed pool that is rounded more coarsely than this says too little of the bytes per token."""


@dataclass(frozen=True, slots=True)
class Cell:
    """``bytes`` charged per token (None: ``how`` says what would give it), ``margin`` its relative uncertainty.

    ``stored_target`` and ``stored`` are bytes per token in the target's store and in all stores,
    ``charged_ratio`` charged over stored, ``layers_counted`` the draft layers that the charge amounts to over
    ``attention_layers`` of the target, ``charged_depth`` the first over the second.
    """

    bytes: float | None
    how: str = ""
    margin: float = 0.0
    calibrated: bool = False
    stored_target: float | None = None
    stored: float | None = None
    charged_ratio: float | None = None
    layers_counted: float | None = None
    attention_layers: float | None = None
    charged_depth: float | None = None


def charged_cell(draft: Draft, rest: float | None, draft_charged: bool, printed_budget: bool) -> Cell:
    """The cell of the run that ``draft`` describes, with ``rest`` bytes for state and KV."""
    number = draft.number
    tokens = number("pool.tokens")
    printed = number("sizing.cell")
    fact = draft.facts.get("sizing.cell")
    if printed is not None and fact is not None and fact.origin == "log":
        return Cell(printed)
    target, margin = _stored_target(draft, tokens)
    if target is None:
        by_config = _by_config(draft, draft_charged)
        if by_config is not None:
            return Cell(by_config, stored_target=number("model.cell"))
        return Cell(None, how="the printed pool is too small or absent: give --model-dir")
    config = number("model.cell")
    base = config if config is not None else target
    base_margin = 0.0 if config is not None else margin
    if config is not None and abs(target / config - 1) <= max(TOLERANCE, margin):
        target = config  # exact, where the printed pool is rounded
    draft_part = _draft_part(draft, tokens)
    stored = target + draft_part
    factor = 1 + draft_part / target if draft_charged and draft_part else 1.0
    charged = base * factor * _charged_width(draft)
    if draft.facts.value("spec.enabled") is not True or printed_budget or not tokens or rest is None:
        ratio = _ratio(draft, rest, tokens, stored, draft_charged)
        return Cell(charged, "", base_margin, False, target, stored, ratio)
    ratio = _ratio(draft, rest, tokens, stored, draft_charged)
    reference = charged / (base / target * stored) if draft_charged else charged / base
    if ratio is None or not draft_charged or abs(ratio / reference - 1) <= max(TOLERANCE, 2 * margin):
        layers = _layers(draft, target, draft_part)
        return Cell(charged, "", base_margin, False, target, stored, ratio, 1.0 if draft_part else None, layers)
    depth = ratio * stored / target - 1
    layers = number("model.attention_layers") or _layers(draft, target, draft_part)
    if layers is None:
        return Cell(ratio * stored, "", margin, True, target, stored, ratio, charged_depth=depth)
    counted = depth * layers
    if abs(counted - round(counted)) <= max(0.35, 0.02 * counted):
        counted = float(round(counted))
    calibrated = not _expected(draft, counted)
    return Cell(
        base * (1 + counted / layers), "", base_margin, calibrated, target, stored, ratio, counted, layers, depth
    )


def _expected(draft: Draft, counted: float) -> bool:
    """Whether the version's own rule gives ``counted`` draft layers, so that they need not be read off the pool.

    The whole depth of the target up to 0.5.17 (known from its config), none without a draft path up to 0.5.19.
    """
    if counted == draft.number("model.layers"):
        return not draft.span.likely("0.5.18")
    path = draft.argument("speculative_draft_model_path")
    return counted == 0 and path in (None, "", "None") and not draft.span.likely("0.5.20")


def _layers(draft: Draft, target: float, draft_part: float) -> float | None:
    """KV layers of the target for one of the draft, from the two pools; None where rounding hides them."""
    size, rounding = draft.number("draft.pool.bytes"), draft.number("draft.pool.rounding") or 0.0
    if not size or not draft_part or rounding / size * target / draft_part > 0.4:
        return None
    return _whole(target / draft_part)


def uncertainty(draft: Draft) -> float:
    """Bytes by which the budget may be off: A0 and A1 and each part of the state are printed to 0.01 GiB."""
    fraction = draft.inputs.get("sizing.fraction", 1.0)
    parts = 4 if "state.bytes" in draft.facts else 0
    return ROUNDING * (2 - fraction + parts) + 0.5 * max(draft.late_reading, 0.05 * GIB) * (1 - fraction)


def _stored_target(draft: Draft, tokens: float | None) -> tuple[float | None, float]:
    """(stored bytes per token of the target, relative uncertainty); None where rounding hides it."""
    size, rounding = draft.number("pool.bytes"), draft.number("pool.rounding") or 0.0
    stored_tokens = _pool_line_tokens(draft) or tokens
    page = max(1.0, draft.number("pool.block_tokens") or 1.0)
    if size and stored_tokens and stored_tokens > 0 and rounding / size <= MOST_ROUNDING:
        scales = FP4_WITH_SCALES if draft.facts.value("pool.scales_unprinted") is True else 1.0
        return scales * size / (stored_tokens + page), rounding / size
    if (config := draft.number("model.cell")) is not None:
        return config, 0.0
    cap = draft.number("pool.user_cap")
    if (
        size is not None
        and size + rounding > 0
        and stored_tokens
        and stored_tokens > 0
        and cap is not None
        and cap - page < stored_tokens <= cap
    ):
        # rough, but good enough to see that the cap decides
        return (size + rounding) / stored_tokens, rounding / max(size, rounding)
    return None, 0.0


def _pool_line_tokens(draft: Draft) -> float | None:
    """Tokens of the full pool. A window pool's bytes count in ``pool.bytes``, its tokens do not."""
    fact = draft.facts.get("pool.tokens")
    values = [v for v in fact.ranks.values() if isinstance(v, int | float)] if fact else []
    return float(max(values)) if values else None


def _draft_part(draft: Draft, tokens: float | None) -> float:
    """Stored bytes per token of the draft's own pool; 0 without one."""
    size, rounding = draft.number("draft.pool.bytes"), draft.number("draft.pool.rounding") or 0.0
    if not size or not tokens or tokens < 0:
        return 0.0
    layers, target_layers = draft.number("draft.layers"), draft.number("model.attention_layers")
    target = draft.number("model.cell")
    if rounding / size > 0.1 and layers and target_layers and target:
        return target * layers / target_layers
    return size / (tokens + 1)


def _charged_width(draft: Draft) -> float:
    """What the charge has for one byte that the pool line shows."""
    dtype = str(draft.facts.value("pool.dtype") or draft.argument("kv_cache_dtype") or "")
    arch = str(draft.facts.value("model.arch") or "")
    if arch in SPARSE_MODELS and ("float8" in dtype or "fp8" in dtype) and not draft.span.likely("0.5.17"):
        backends = [str(draft.facts.value(f"sparse.{phase}_backend") or "") for phase in ("prefill", "decode")]
        if all(backend == "" for backend in backends) or any(b in RAW_BACKENDS for b in backends):
            return 1.0
        return (RAW_LATENT + INDEXER) / (SCALED_LATENT + INDEXER)
    return 1.0


def _by_config(draft: Draft, draft_charged: bool) -> float | None:
    target = draft.number("model.cell")
    if target is None:
        return None
    layers, target_layers = draft.number("draft.layers"), draft.number("model.attention_layers")
    if draft_charged and layers and target_layers:
        return target * (1 + layers / target_layers)
    return target


def _ratio(draft: Draft, rest: float | None, tokens: float | None, stored: float, draft_charged: bool) -> float | None:
    """Charged over stored bytes, from the budget: what was not spent on state went to KV, at the charged rate."""
    cap = draft.number("pool.user_cap")
    if rest is None or not tokens or tokens < 0 or not stored or (cap is not None and tokens > cap - 4096):
        return None
    left = rest - (draft.number("state.bytes") or 0.0) - (draft.number("sizing.fixed") or 0.0)
    if uncertainty(draft) > MOST_UNCERTAIN * left:
        return None
    if not draft_charged:
        own = stored * tokens - (draft.number("draft.pool.bytes") or 0.0)
        return left / own if left > 0 and own > 0 else None
    return left / (stored * tokens) if left > 0 else None


def _whole(value: float | None) -> float | None:
    """A number of layers: ``value`` if it is near a whole number, else None."""
    if value is None or value < 0.5:
        return None
    return float(round(value)) if abs(value - round(value)) <= max(0.12, 0.06 * value) else None
