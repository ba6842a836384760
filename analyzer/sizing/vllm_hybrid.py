"""The pool of a hybrid model (full attention beside windowed or recurrent layers) from its geometry.

    page   = attention bytes per token and layer x block tokens  (with recurrent layers it covers one state)
    block  = layers in a group x page
    blocks = available / block
    requests = blocks / sum over the groups of the blocks that a request of the context length takes

Source: vLLM 0.9.2 to 0.33; reproduces a published two-node run of a 27B model (16 attention and 48 recurrent layers)
to the token, with and without an MTP layer, and published runs with windowed layers to the printed digits.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from analyzer.sizing.vllm_blocks import (
    Groups,
    full_blocks,
    group_layers,
    hybrid_block_tokens,
    printed_tokens,
    state_blocks,
    window_blocks,
)
from analyzer.units import show_bytes


@dataclass(frozen=True, slots=True)
class HybridPlan:
    """Geometry of one rank; all attention layers, windowed or not, keep equally much for one token."""

    full_layers: int
    attention_bytes: float
    """Bytes of one token on one attention layer."""
    version: tuple[int, ...]
    window_layers: int = 0
    window: int = 0
    state_layers: int = 0
    state_bytes: float = 0.0
    """Bytes of one state on one recurrent layer."""
    mode: str = "none"
    """How states are cached: none, align, all."""
    block_tokens: int | None = None
    """As printed; else it follows from the state."""
    batches: int = 1
    """Batches in flight at once, for which windowed layers keep room (2 with asynchronous scheduling, 0.26 on)."""

    def tokens(self, size: float, values: Mapping[str, float], steps: list[str]) -> float | None:
        """Tokens of a pool of ``size`` bytes as this version prints them; None if an input is not known."""
        context, in_flight = values.get("limit.context"), values.get("args.max_num_batched_tokens")
        if not context or (self.window_layers and in_flight is None):
            return None
        block = self._block()
        full = self.full_layers + int(values.get("draft.layers", 0))
        groups = group_layers((full, self.window_layers, self.state_layers), self.version)
        block_bytes = groups.size * block * self.attention_bytes
        blocks = math.floor(size / block_bytes)
        per_request = self._per_request(groups, block, context, in_flight or 0.0, values)
        concurrency = blocks / per_request
        self._explain(groups, block, block_bytes, blocks, steps)
        steps.append(f"a request of {context:,.0f} tokens takes {per_request:,} blocks: {concurrency:.2f} requests fit")
        return printed_tokens(blocks, groups.total, block, self.version, concurrency, context)

    def _block(self) -> int:
        if self.block_tokens:
            return self.block_tokens
        return hybrid_block_tokens(self.state_bytes, self.attention_bytes) if self.state_layers else 16

    def _per_request(
        self, groups: Groups, block: int, context: float, in_flight: float, values: Mapping[str, float]
    ) -> int:
        """Blocks of one request over all groups; of windowed and recurrent ones it takes a fixed number."""
        counts = list(groups.counts)
        total = counts.pop(0) * full_blocks(context, block)
        if self.window_layers:
            total += counts.pop(0) * window_blocks(context, block, self.window, in_flight * self.batches)
        if self.state_layers:
            draft_tokens = int(values.get("spec.draft_tokens", 0))
            total += counts.pop(0) * state_blocks(context, block, self.version, self.mode, draft_tokens)
        return total

    def _explain(self, groups: Groups, block: int, block_bytes: float, blocks: int, steps: list[str]) -> None:
        kinds = [(self.full_layers, "full"), (self.window_layers, "windowed"), (self.state_layers, "recurrent")]
        layers = " + ".join(f"{number} {kind}" for number, kind in kinds if number)
        padding = f", {groups.padding} padding layers" if groups.padding else ""
        steps.append(
            f"{layers} layers in {groups.total} groups of {groups.size}{padding}; a block of {block} tokens has "
            f"{show_bytes(block_bytes)}: {blocks:,} blocks"
        )
