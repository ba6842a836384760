"""vLLM's arithmetic of blocks: block size of hybrid models, groups, bytes per block, blocks a request takes.

Source: ``v1/core/kv_cache_utils.py``, ``platforms/interface.py`` and the ``*Spec`` classes of vLLM 0.9.2 to 0.33, read
version by version. Everything is per rank; sizes in bytes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


def ceil_div(a: float, b: float) -> int:
    """``a / b`` rounded up."""
    return -int(-a // b)


def hybrid_block_tokens(state_bytes: float, attention_bytes_per_token: float, alignment: int = 16) -> int:
    """Tokens in a block whose attention page covers the state of one linear layer ("Setting attention block size")."""
    return alignment * ceil_div(state_bytes, alignment * attention_bytes_per_token)


@dataclass(frozen=True, slots=True)
class Groups:
    """Layers of several kinds in groups of equal size, which share the same blocks."""

    size: int
    """Layers in one group; a block holds one page of each."""
    counts: tuple[int, ...]
    """Groups of each kind of layer, in the order given."""
    padding: int
    """Layers added to fill the groups."""

    @property
    def total(self) -> int:
        """All groups."""
        return sum(self.counts)


def group_layers(layers: Sequence[int], version: tuple[int, ...]) -> Groups:
    """How ``layers`` (the number of layers of each kind) are grouped.

    The size is the smallest number, or the largest where that is less than r times the smallest: r is 1.25 from 0.12,
    1.5 from 0.18; before that the smallest always counts.
    """
    kinds = [n for n in layers if n > 0]
    if len(kinds) <= 1:
        return Groups(sum(kinds), (1,) if kinds else (), 0)
    ratio = 1.5 if version >= (0, 18) else 1.25 if version >= (0, 12) else 0.0
    size = max(kinds) if max(kinds) < ratio * min(kinds) else min(kinds)
    counts = tuple(ceil_div(n, size) for n in kinds)
    return Groups(size, counts, sum(c * size - n for c, n in zip(counts, kinds, strict=True)))


def full_blocks(context: float, block_tokens: int, context_parallel: int = 1) -> int:
    """Blocks of one full-attention group that a request of ``context`` tokens takes."""
    return ceil_div(context / context_parallel, block_tokens)


def window_blocks(context: float, block_tokens: int, window: int, in_flight: float) -> int:
    """Blocks of one sliding-window group: the window, the tokens in flight, one block of misalignment."""
    return ceil_div(min(window - 1 + in_flight, context), block_tokens) + 1


def state_blocks(context: float, block_tokens: int, version: tuple[int, ...], mode: str, draft_tokens: int) -> int:
    """Blocks of one recurrent group. 0.15 and later: 1 without prefix caching, 2 with mode 'align', and one for each
    draft token; mode 'all' keeps a state for every block of the context."""
    if version < (0, 11, 2):
        return 1
    if version < (0, 15):
        return 1 if mode in ("", "none") else full_blocks(context, block_tokens)
    if mode == "all":
        return full_blocks(context, block_tokens) + (draft_tokens if version >= (0, 22) else 0)
    return (2 if mode == "align" else 1) + draft_tokens


def printed_tokens(
    blocks: float, groups: int, block_tokens: float, version: tuple[int, ...], concurrency: float, context: float
) -> float:
    """What "KV cache size" prints. Up to 0.20.0 blocks of one group; from 0.20.1 concurrency times context length."""
    if version >= (0, 20, 1, 0):
        return math.floor(concurrency * context)
    return math.floor(blocks / groups) * block_tokens
