"""vLLM's pool from available bytes and the model's layers: block size, groups, blocks, tokens, concurrency.

Reference vllm 3.5 .. 3.8 and 3.10. Checked against published figures: a 64-layer hybrid at TP 2 with fp8 KV gives the
concurrency of its log without and with one MTP layer (17.84 and 16.42 requests of 262,144 tokens).
"""

from __future__ import annotations

from dataclasses import dataclass

from analyzer.evidence.cache_bytes import Setup, layer_bytes, state_bytes, version_key
from analyzer.evidence.geometry import FULL, AttentionSpec, Geometry
from analyzer.sizing.vllm_blocks import (
    full_blocks,
    group_layers,
    hybrid_block_tokens,
    printed_tokens,
    state_blocks,
    window_blocks,
)

MLA_BLOCK = 64
"""Tokens in a block where an MLA back end decides (32, 64 or 128 by back end)."""


@dataclass(frozen=True, slots=True)
class Pool:
    """``block_bytes`` over all layers of one rank; ``tokens`` as the version prints them; ``groups`` of layers."""

    blocks: int
    block_tokens: int
    block_bytes: float
    groups: int
    concurrency: float
    tokens: float
    steps: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Ask:
    """What the pool depends on beside the model. ``mode`` is mamba_cache_mode, ``in_flight`` max_num_batched_tokens."""

    context: int
    block: int = 0
    mode: str = "none"
    in_flight: int = 8192
    context_parallel: int = 1
    draft_layers: tuple[AttentionSpec, ...] = ()
    blocks_given: int = 0


def pool_of(available: float, geometry: Geometry, setup: Setup, ask: Ask) -> Pool:
    """The pool that ``available`` bytes on one rank give."""
    full = [a for a in (*geometry.attention, *ask.draft_layers) if a.span == FULL]
    windows = [a for a in geometry.attention if a.span != FULL]
    block = ask.block or (MLA_BLOCK if any(a.latent for a in full) else 16)
    per_token = [layer_bytes(a, setup) for a in full]
    steps: list[str] = []
    if geometry.states and full:
        return _hybrid(available, geometry, setup, ask, per_token, block)
    if windows and full:
        return _windowed(available, per_token, windows, setup, ask, block)
    layers = per_token or [layer_bytes(a, setup) for a in windows]
    size = block * sum(layers)
    blocks = _blocks(available, size, ask)
    need = full_blocks(ask.context, block, ask.context_parallel)
    if windows and not full:
        need = min(need, window_blocks(ask.context, block, windows[0].window, ask.in_flight))
    steps.append(f"block = {block} tokens x {sum(layers):,.0f} bytes = {size:,.0f} bytes; {blocks:,} blocks")
    concurrency = blocks / need if need else 0.0
    return Pool(blocks, block, size, 1, concurrency, float(blocks * block * ask.context_parallel), tuple(steps))


def _blocks(available: float, size: float, ask: Ask) -> int:
    return ask.blocks_given or (int(max(0.0, available) // size) if size else 0)


def _hybrid(available: float, geometry: Geometry, setup: Setup, ask: Ask, per_token: list[float], minimum: int) -> Pool:
    """Attention blocks grow until a page covers the state of one recurrent layer; all groups share the blocks."""
    version = version_key(setup.version)
    state, attention = max(state_bytes(s, setup) for s in geometry.states), max(per_token)
    block = hybrid_block_tokens(state, attention, minimum)
    page = block * attention
    groups = group_layers([len(per_token), len(geometry.states)], version)
    size = groups.size * page
    blocks = _blocks(available, size, ask)
    counts = groups.counts if len(groups.counts) == 2 else (1, 1)
    per_state = state_blocks(ask.context, block, version, ask.mode, setup.draft_tokens)
    need = counts[0] * full_blocks(ask.context, block, ask.context_parallel) + counts[1] * per_state
    concurrency = blocks / need if need else 0.0
    steps = [
        f"block = {block:,} tokens: {attention:,.0f} bytes a token and layer cover a state of {state:,.0f} bytes",
        f"{groups.total} groups of {groups.size} layers ({groups.padding} padding): {size:,.0f} bytes a block, "
        f"{blocks:,} blocks",
        f"one request of {ask.context:,} tokens takes {need:,} blocks: {concurrency:.2f} at once",
    ]
    tokens = printed_tokens(blocks, groups.total, block, version, concurrency, ask.context)
    return Pool(blocks, block, size, groups.total, concurrency, tokens, tuple(steps))


def _windowed(
    available: float, per_token: list[float], windows: list[AttentionSpec], setup: Setup, ask: Ask, block: int
) -> Pool:
    """Full and window layers in groups of equal size; a window group needs only its window and what is in flight.

    Smaller pages get proportionally larger blocks (0.12 and later).
    """
    version = version_key(setup.version)
    window_bytes = max(layer_bytes(a, setup) for a in windows)
    page = block * max(max(per_token), window_bytes)
    full_block, window_block = int(page // max(per_token)), int(page // window_bytes)
    groups = group_layers([len(per_token), len(windows)], version)
    size = groups.size * page
    blocks = _blocks(available, size, ask)
    counts = groups.counts if len(groups.counts) == 2 else (1, 1)
    per_window = window_blocks(ask.context, window_block, windows[0].window, ask.in_flight)
    need = counts[0] * full_blocks(ask.context, full_block, ask.context_parallel) + counts[1] * per_window
    concurrency = blocks / need if need else 0.0
    steps = [
        f"{groups.total} groups of {groups.size} layers ({groups.padding} padding): {size:,.0f} bytes a block, "
        f"{blocks:,} blocks",
        f"one request of {ask.context:,} tokens takes {need:,} blocks: {concurrency:.2f} at once",
    ]
    tokens = printed_tokens(blocks, groups.total, min(full_block, window_block), version, concurrency, ask.context)
    return Pool(blocks, full_block, size, groups.total, concurrency, tokens, tuple(steps))
