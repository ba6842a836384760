"""The pool of a hybrid model (full attention beside recurrent layers) from its geometry.

    page   = attention bytes per token and layer x block tokens  (covers one recurrent state)
    block  = layers in a group x page
    blocks = available / block
    requests = blocks / (groups of attention x blocks of the context + groups of states x states of a request)

Source: vLLM 0.10 to 0.33; reproduces a published two-node run of a 27B model (16 attention and 48 recurrent layers)
to the token, with and without an MTP layer.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from analyzer.sizing.vllm_blocks import (
    full_blocks,
    group_layers,
    hybrid_block_tokens,
    printed_tokens,
    state_blocks,
)
from analyzer.units import show_bytes


@dataclass(frozen=True, slots=True)
class HybridPlan:
    """Geometry of one rank. ``mode`` is the cache mode of the states (none, align, all)."""

    attention_layers: int
    attention_bytes: float
    """Bytes of one token on one attention layer."""
    state_layers: int
    state_bytes: float
    """Bytes of one state on one recurrent layer."""
    version: tuple[int, ...]
    mode: str = "none"
    block_tokens: int | None = None
    """As printed; else it follows from the state."""

    def tokens(self, size: float, values: Mapping[str, float], steps: list[str]) -> float | None:
        """Tokens of a pool of ``size`` bytes as this version prints them; None without a context length."""
        context = values.get("limit.context")
        if not context:
            return None
        block = self.block_tokens or hybrid_block_tokens(self.state_bytes, self.attention_bytes)
        attention = self.attention_layers + int(values.get("draft.layers", 0))
        draft_tokens = int(values.get("spec.draft_tokens", 0))
        groups = group_layers((attention, self.state_layers), self.version)
        block_bytes = groups.size * block * self.attention_bytes
        blocks = math.floor(size / block_bytes)
        states = state_blocks(context, block, self.version, self.mode, draft_tokens)
        per_request = groups.counts[0] * full_blocks(context, block) + groups.counts[1] * states
        concurrency = blocks / per_request
        padding = f", {groups.padding} padding layers" if groups.padding else ""
        steps.append(
            f"{attention} attention and {self.state_layers} recurrent layers in {groups.total} groups of "
            f"{groups.size}{padding}; a block of {block} tokens has {show_bytes(block_bytes)}: {blocks:,} blocks"
        )
        steps.append(
            f"a request of {context:,.0f} tokens takes {per_request} blocks ({states} for each group of states): "
            f"{concurrency:.2f} requests"
        )
        return printed_tokens(blocks, groups.total, block, self.version, concurrency, context)
