"""What SGLang makes of speculation before it sizes the pool: draft weights, draft layers charged, draft layers stored.

Reference sglang 3.6. Charged and stored differ where a version reads the number of draft layers from the wrong place:
that is the trap that costs a wrapper model up to four fifths of its pool.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from analyzer.evidence.cache_bytes import Setup, cell_bytes, version_key
from analyzer.evidence.components import Ranks
from analyzer.evidence.model_config import whole
from analyzer.evidence.model_dir import count_mtp_layers
from analyzer.evidence.model_facts import vocab_table_bytes
from analyzer.planning.launch import Launch

EAGLE_FAMILY = frozenset({"EAGLE", "EAGLE3", "NEXTN", "STANDALONE"})
DEFAULT_48 = EAGLE_FAMILY | {"NGRAM", "DFLASH", "DSPARK"}
AUTO_PATH = ("DeepseekV3", "DeepseekV32", "DeepseekV4", "Glm4Moe", "GlmMoeDsa", "BailingMoe", "MistralLarge3",
             "Pixtral", "HYV3", "HunYuan")  # fmt: skip
"""Architectures whose draft path is filled in with the model's own (reference 3.6, rule 1)."""
_TABLE = re.compile(r"(embed_tokens|shared_head\.head|lm_head)\.weight$")
"""Copies of the vocabulary tables that some packages store with their MTP layers; they are the same tables."""
OUTER_ONLY = ("Qwen3_5ForConditionalGeneration", "Qwen3_5MoeForConditionalGeneration",
              "InternS2PreviewForConditionalGeneration")  # fmt: skip
"""Wrappers whose draft-mode rewrite sets the layer count on the outer config only (0.5.14 .. 0.5.17)."""


@dataclass(frozen=True, slots=True)
class Speculation:
    """``charged`` and ``stored`` are draft layers; ``weights`` bytes of the draft on one rank, ``duplicate`` of them
    its own vocabulary tables; ``stored_cell`` its KV bytes per token. ``charge_cell``: it enters the target's cell."""

    algorithm: str
    draft_tokens: int
    own: bool
    charged: float
    stored: float
    stored_cell: float
    weights: float
    duplicate: float
    charge_cell: bool
    charge_weights: bool
    why: str = ""


def speculation(launch: Launch, setup: Setup, ranks: Ranks) -> Speculation | None:
    """The draft of ``launch``, or None without a draft model (no speculation, ngram)."""
    algorithm = launch.text("speculative_algorithm").upper()
    if algorithm not in EAGLE_FAMILY:
        return None
    version = version_key(launch.version)
    path = launch.text("speculative_draft_model_path")
    own = has_own_draft(launch)
    architecture = launch.folder.config.architecture
    filled = bool(path) or architecture.startswith(AUTO_PATH)
    by_config = version >= (0, 5, 20) and launch.folder.config.mtp_field == "num_nextn_predict_layers"
    charge = version >= (0, 5, 14) and (filled or by_config)
    steps = int(launch.number("speculative_num_steps", 3))
    tokens = int(launch.number("speculative_num_draft_tokens", steps + 1))
    weights, duplicate = _weights(launch, ranks)
    charged, why = _charged(launch, own)
    stored = 1.0 if own and launch.folder.geometry.states else float(_stored(launch))
    target = cell_bytes(launch.folder.geometry, setup) or 0.0
    layers = len(launch.folder.geometry.attention)
    if launch.draft is not None and not own:
        stored_cell = cell_bytes(launch.draft.geometry, setup) or 0.0
    else:
        stored_cell = target / layers * stored if layers else 0.0
    return Speculation(algorithm, tokens, own, charged, stored, stored_cell, weights, duplicate, charge,
                       version >= (0, 5, 14), why)  # fmt: skip


def has_own_draft(launch: Launch) -> bool:
    """Whether the draft is the target's own MTP part: no draft folder, or a copy of the target's."""
    draft = launch.draft
    return draft is None or (
        draft.config.architecture == launch.folder.config.architecture
        and draft.config.number("layers") == launch.folder.config.number("layers")
    )


def _stored(launch: Launch) -> int:
    if launch.draft is not None and not has_own_draft(launch):
        return len(launch.draft.geometry.attention)
    return launch.folder.mtp_layers or launch.folder.config.mtp_layers or 1


def _charged(launch: Launch, own: bool) -> tuple[float, str]:
    """Draft layers that the sizing counts (rules 2 and 3 of 3.6), and why if that is wrong."""
    config = (launch.draft or launch.folder).config
    in_text = whole(config.text.get("num_nextn_predict_layers")) if config.mtp_in_text or not config.text_part else None
    if config.mtp_field == "num_nextn_predict_layers" and in_text is not None:
        return float(in_text), ""
    depth = float(config.number("layers") or 1)
    if not own:
        return depth, ""
    version = version_key(launch.version)
    if (0, 5, 14) <= version < (0, 5, 18) and config.architecture in OUTER_ONLY:
        return depth, (
            f"SGLang {launch.version} reads num_nextn_predict_layers from the text config, where this model has none, "
            f"and counts all {depth:.0f} layers as draft layers"
        )
    return 1.0, ""


def _weights(launch: Launch, ranks: Ranks) -> tuple[float, float]:
    """(bytes of the draft on one rank with its own vocabulary tables, bytes of these tables)."""
    folder = launch.folder
    table = vocab_table_bytes(folder.config, ranks) or 0.0
    if launch.draft is not None and not has_own_draft(launch):
        draft = launch.draft
        files = draft.rank_bytes(ranks)
        held = max(files.target, default=0) + files.mtp
        has_table = "embedding" in draft.components
        return held + (0.0 if has_table else table), table
    tables = table * (1 if folder.config.tied else 2)
    mtp = float(folder.rank_bytes(ranks).mtp)
    in_files = sum(
        t.bytes for t in folder.tensors if _TABLE.search(t.name) and count_mtp_layers([t.name], folder.config)
    )
    return mtp - in_files / ranks.attention_tp + tables, tables
