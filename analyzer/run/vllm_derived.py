"""Facts that follow from printed ones: parts of a sum that vLLM prints as one figure, tokens where only blocks are."""

from __future__ import annotations

from analyzer.run.facts import Facts

_BLOCK_TOKENS = 16
"""vLLM's default; other sizes are printed."""


def derive(facts: Facts, *, consumed: bool) -> None:
    """Adds what follows. ``consumed``: the run printed the ledger of 0.27 and later."""
    if consumed:
        _split_consumed(facts)
    _split_peak(facts)
    _apply_override(facts)
    _derive_tokens(facts)
    device = facts.value("args.device")
    if device not in (None, "auto") and "engine.platform" not in facts:
        facts.add("engine.platform", device, facts.where("args.device"), rank="", origin="derived")


def _split_consumed(facts: Facts) -> None:
    """From 0.27 the printed activation holds the graph estimate, and weights are a part of what was consumed."""
    estimated, applied = facts.get("graphs.estimated"), facts.get("graphs.applied")
    if applied is None and estimated is not None:
        for rank, value in estimated.ranks.items():
            facts.add("graphs.applied", value, estimated.where, rank=rank, origin="derived")
        applied = facts.get("graphs.applied")
    activation = facts.get("activation.bytes")
    if applied is not None and activation is not None:
        for rank, value in activation.ranks.items():
            graphs = applied.ranks.get(rank, applied.value)
            facts.add("activation.bytes", max(0.0, value - graphs), activation.where, rank=rank)
    consumed, weights = facts.get("sizing.consumed"), facts.get("weights.loaded")
    if consumed is not None and weights is not None and "non_torch.bytes" not in facts:
        for rank, value in consumed.ranks.items():
            rest = value - weights.ranks.get(rank, weights.value)
            facts.add("non_torch.bytes", rest, consumed.where, rank=rank, origin="derived")


def _split_peak(facts: Facts) -> None:
    """0.6.4 prints the allocator's peak; what is not weights in it is the activations' peak."""
    peak, weights = facts.get("sizing.peak_torch"), facts.get("weights.loaded")
    if peak is not None and weights is not None:
        for rank, value in peak.ranks.items():
            rest = value - weights.ranks.get(rank, weights.value)
            facts.add("activation.bytes", max(0.0, rest), peak.where, rank=rank, origin="derived")


def _apply_override(facts: Facts) -> None:
    """Up to 0.9.1 the tokens were printed of the profiled blocks, though the user's number of blocks was allocated."""
    given, profiled, tokens = (facts.get(f"pool.{name}") for name in ("user_blocks", "profiled_blocks", "tokens"))
    if given is None or profiled is None or tokens is None:
        return
    block = facts.value("pool.block_tokens", _BLOCK_TOKENS)
    if given.value >= profiled.value or tokens.value != block * profiled.value:
        return
    where = (*given.where, *tokens.where)
    if "pool.block_tokens" not in facts:
        facts.add("pool.block_tokens", block, where, rank="", origin="derived")
    for rank in tokens.ranks:
        facts.add("pool.tokens", block * given.value, where, rank=rank, origin="derived")
    concurrency = facts.get("limit.concurrency")
    if concurrency is not None:
        share = given.value / profiled.value
        for rank, value in concurrency.ranks.items():
            facts.add("limit.concurrency", value * share, concurrency.where, rank=rank, origin="derived")


def _derive_tokens(facts: Facts) -> None:
    """V0 and the first V1 print blocks, not tokens: the block's tokens follow from the concurrency, else from the
    arguments."""
    blocks, context, concurrency = (facts.value(name) for name in ("pool.blocks", "limit.context", "limit.concurrency"))
    if not blocks or "pool.tokens" in facts:
        return
    block_tokens = facts.value("pool.block_tokens")
    if concurrency and context:
        block_tokens = _power_of_two(concurrency * context / blocks) or block_tokens
    if not block_tokens:
        return
    where = facts.where("pool.blocks")
    if "pool.block_tokens" not in facts:
        facts.add("pool.block_tokens", block_tokens, where, rank="", origin="derived")
    for rank, count in facts.get("pool.blocks").ranks.items():  # type: ignore[union-attr]
        facts.add("pool.tokens", count * block_tokens, where, rank=rank, origin="derived")


def _power_of_two(tokens: float) -> int | None:
    """The block size next to ``tokens``, which rounding of printed figures may have moved by some percent."""
    return next((1 << n for n in range(10) if abs(tokens / (1 << n) - 1) < 0.1), None)
