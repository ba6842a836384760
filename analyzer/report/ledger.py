"""Where the memory of the tightest rank went, as rows that add up to what the device had.

SGLang prints what was free before loading and after each step, so its ledger starts at that figure and ends with what
is left. vLLM budgets a fraction of the whole device: its ledger is the budget (total x utilization), and what lies
outside the budget is a row of its own. A part that no line shows is not invented: the remainder is named as such.
"""

from __future__ import annotations

from collections.abc import Iterable

from analyzer.report.model import LedgerRow
from analyzer.run.facts import Fact, Facts
from analyzer.run.model import Run
from analyzer.units import GIB, number_or_none

SMALL = GIB // 20
"""Remainders below this are rounding of printed figures (two decimals of a GiB, several of them)."""

TIGHTNESS = (
    "sizing.budget", "pool.available_bytes", "gpu.free_after_load", "pool.tokens", "pool.blocks", "free.after_pool",
    "gpu.free_before_load",
)  # fmt: skip
"""Facts that tell which rank has the least, the most telling first."""


def tightest_rank(facts: Facts) -> str:
    """The rank with the least memory for its pool: it decides for all. ``""`` where ranks print no name."""
    for name in TIGHTNESS:
        fact = facts.get(name)
        if fact is not None and len(fact.ranks) > 1:
            numbers = {rank: v for rank, v in fact.ranks.items() if isinstance(v, int | float)}
            if len(set(numbers.values())) > 1:
                return min(numbers, key=lambda rank: (numbers[rank], rank))
    named = (r for fact in facts for r in fact.ranks if r not in ("", "draft") and isinstance(fact.value, int | float))
    return next(named, "")


class _Rank:
    """The facts of one rank, falling back to the run's value for what only one process printed."""

    def __init__(self, facts: Facts, rank: str) -> None:
        self.facts, self.rank = facts, rank

    def get(self, name: str) -> float | None:
        """The value of ``name`` on this rank in base units, None if no line shows it."""
        fact = self.facts.get(name)
        return None if fact is None else number_or_none(fact.ranks.get(self.rank, fact.value))

    def lines(self, *names: str) -> list[int]:
        """The lines that prove ``names``, sorted."""
        found = (self.facts.get(name) for name in names)
        return sorted({line for fact in found if fact for line in lines_of(fact)})


def lines_of(fact: Fact) -> list[int]:
    """The line numbers that prove ``fact``, in order and each once."""
    return list(dict.fromkeys(w.line for w in fact.where if w.line))


def ledger(run: Run) -> list[LedgerRow]:
    """The rows of ``run``'s tightest rank; empty if the log shows no size at all."""
    rank = _Rank(run.facts, tightest_rank(run.facts))
    rows = list(_vllm(rank) if run.engine == "vllm" else _sglang(rank))
    return [row for row in rows if row.bytes > 0]


def _row(rank: _Rank, item: str, name: str, note: str = "", kind: str = "used") -> Iterable[LedgerRow]:
    value = rank.get(name)
    if value:
        yield LedgerRow(rank.rank, item, value, rank.lines(name), note, kind)


def _parts(rank: _Rank) -> Iterable[LedgerRow]:
    """The rows that both engines print."""
    target, draft, freed = rank.get("weights.loaded"), rank.get("draft.weights.loaded"), _freed(rank)
    if target and draft and draft < 0:
        note = f"{target / GIB:.2f} loaded, {-draft / GIB:.2f} came back with the draft's load"
        lines = rank.lines("weights.loaded", "draft.weights.loaded")
        yield LedgerRow(rank.rank, "weights", target + draft, lines, note)
    else:
        yield from _row(rank, "weights, target", "weights.loaded")
    if draft and draft > 0:
        note = f"{freed / GIB:.2f} of it freed after sizing" if freed else ""
        lines = rank.lines("draft.weights.loaded")
        yield LedgerRow(rank.rank, "weights, draft", draft, lines, note, freed=min(freed, draft))
    state = rank.get("state.bytes")
    if state:
        slots, extra = rank.get("state.slots"), rank.get("state.intermediate_bytes")
        note = f"{(state - extra) / GIB:.2f} slots + {extra / GIB:.2f} for speculation" if extra else ""
        item = f"state, {slots:,.0f} slots" if slots else "recurrent state"
        yield LedgerRow(rank.rank, item, state, rank.lines("state.bytes", "state.slots"), note)


def _freed(rank: _Rank) -> float:
    """What of the draft was given back after the pool was sized: its own vocabulary, else the rise of free memory."""
    if (vocabulary := rank.get("draft.duplicate_vocab")) is not None:
        return vocabulary
    before, after = rank.get("free.after_pool"), rank.get("free.before_graphs")
    rise = after - before if before is not None and after is not None else 0.0
    return rise if rise > SMALL else 0.0


def _sglang(rank: _Rank) -> Iterable[LedgerRow]:
    """From free-before-load (A0) down to what is left; A0 x (1 - fraction) is kept on purpose."""
    rows = list(_parts(rank))
    rows += _row(rank, "KV pool, target", "pool.bytes")
    rows += _row(rank, "KV pool, draft", "draft.pool.bytes")
    rows += _row(rank, "CUDA graphs", "graphs.bytes")
    total, fraction = rank.get("gpu.free_before_load"), rank.get("sizing.fraction")
    final = next((n for n in ("free.after_graphs", "free.after_pool", "gpu.free_after_load") if rank.get(n)), None)
    if final is None:
        yield from rows
        return
    left = rank.get(final) or 0.0
    if final != "free.after_graphs":
        rows = [row for row in rows if row.item != "CUDA graphs"]
    if final == "gpu.free_after_load":  # the pools were taken out of what this line tells
        left -= sum(row.bytes for row in rows if not row.item.startswith("weights"))
    if total is not None:
        rest = total - left - sum(row.bytes - row.freed for row in rows)
        if rest > SMALL:
            known = "weights.loaded" in rank.facts
            item, note = ("other", "tables, workspaces") if known else ("weights, other", "no line tells the weights")
            if known and "pool.tokens" in rank.facts and "pool.bytes" not in rank.facts:
                item, note = "pool, other", "no line tells the bytes of the pool"
            lines = rank.lines("gpu.free_before_load")
            rows.append(LedgerRow(rank.rank, item, rest, lines, f"not itemised: {note}", "unknown"))
    yield from rows
    lines = rank.lines(final)
    kept = rank.get("sizing.reserve")
    if kept is None and total is not None and fraction is not None:
        kept = total * (1 - fraction)
    if kept is None or "pool.tokens" not in rank.facts or final == "gpu.free_after_load":
        yield LedgerRow(rank.rank, "left free", left, lines, kind="unused" if "pool.tokens" in rank.facts else "kept")
        return
    note = f"by mem_fraction_static {fraction:g}" if fraction is not None else "by the engine's reserve"
    yield LedgerRow(rank.rank, "free, kept", min(kept, left), lines, note, "kept")
    if left - kept > SMALL:
        yield LedgerRow(rank.rank, "free, unused", left - kept, lines, "more than was to be kept", "unused")


def _vllm(rank: _Rank) -> Iterable[LedgerRow]:
    """The budget T x u and its parts, then what lies outside of it."""
    total, fraction = rank.get("gpu.total"), rank.get("sizing.fraction")
    budget = rank.get("sizing.requested")
    if budget is None and total is not None and fraction is not None:
        budget = total * fraction
    rows = list(_parts(rank))
    rows += _row(rank, "activation peak", "activation.bytes", "measured while profiling")
    rows += _row(rank, "outside torch", "non_torch.bytes", "communication, context")
    rows += _row(rank, "CUDA graphs", "graphs.applied", "reserved by estimate")
    pool = "pool.available_bytes" if rank.get("pool.available_bytes") else "pool.bytes"
    pool_rows = list(_row(rank, "KV pool", pool))
    if budget is not None and pool_rows:
        rest = budget - sum(row.bytes for row in rows) - sum(row.bytes for row in pool_rows)
        if rest > SMALL:
            note = "the budget less the rows shown"
            rows.append(LedgerRow(rank.rank, "not itemised", rest, rank.lines("sizing.requested"), note, "unknown"))
    yield from rows
    if not pool_rows:
        yield from _vllm_without_pool(rank, sum(row.bytes for row in rows))
        return
    yield from pool_rows
    actual = rank.get("graphs.bytes")
    if total is not None and budget is not None and total > budget:
        outside = total - budget
        percent = f"not asked for: gpu_memory_utilization {fraction:g}" if fraction is not None else "not asked for"
        if actual and not rank.get("graphs.applied"):
            lines = rank.lines("graphs.bytes")
            yield LedgerRow(rank.rank, "CUDA graphs", min(actual, outside), lines, "outside the budget", "outside")
            outside -= min(actual, outside)
        yield LedgerRow(rank.rank, "outside the budget", outside, rank.lines("gpu.total"), percent, "kept")
    elif actual and not rank.get("graphs.applied"):
        yield LedgerRow(rank.rank, "CUDA graphs", actual, rank.lines("graphs.bytes"), "outside the budget", "outside")


def _vllm_without_pool(rank: _Rank, shown: float) -> Iterable[LedgerRow]:
    """A start that ended before its pool: what others held, and what was free of the rest."""
    total, free = rank.get("gpu.total"), rank.get("gpu.free_before_load")
    if total is None or free is None or free > total:
        return
    held = rank.lines("gpu.free_before_load")
    if total - free > SMALL:
        yield LedgerRow(rank.rank, "taken before loading", total - free, held, "other processes, contexts")
    if free - shown > SMALL:
        yield LedgerRow(rank.rank, "the rest", free - shown, held, "free before loading, less the rows above", "kept")
