"""What the text of a vLLM exception states: needed and available KV, the budget, free memory, the context length.

Such a text may be the last line of a traceback, a line of its own, or wrapped by a terminal in the middle of a number;
the catalogue's shapes read it in each case.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from analyzer.events import Event
from analyzer.framing.record import Record
from analyzer.run.facts import Facts, Where

Writer = Callable[[dict[str, Any], Where, Facts], None]


def _below_context(fields: dict[str, Any], where: Where, facts: Facts) -> None:
    facts.add("pool.needed_bytes", fields.get("needed"), where, rank="")
    _once(facts, "pool.available_bytes", fields.get("available"), where)
    facts.add("limit.context", fields.get("max_len"), where, rank="")
    facts.add("limit.context_estimated", fields.get("estimated_len"), where, rank="")


def _below_context_v0(fields: dict[str, Any], where: Where, facts: Facts) -> None:
    facts.add("limit.context", fields.get("max_len"), where, rank="")
    facts.add("limit.context_estimated", fields.get("tokens"), where, rank="")
    _once(facts, "pool.tokens", fields.get("tokens"), where)


def _below_target(fields: dict[str, Any], where: Where, facts: Facts) -> None:
    _once(facts, "gpu.free_before_load", fields.get("free"), where)
    _once(facts, "gpu.total", fields.get("total"), where)
    _once(facts, "sizing.fraction", fields.get("fraction"), where)
    _once(facts, "sizing.requested", fields.get("budget"), where)


def _no_memory(fields: dict[str, Any], where: Where, facts: Facts) -> None:
    facts.add("pool.refused", True, where, rank="")


def _cpu_below_target(fields: dict[str, Any], where: Where, facts: Facts) -> None:
    _once(facts, "host.free", fields.get("free"), where)
    _once(facts, "host.total", fields.get("total"), where)
    _once(facts, "sizing.fraction", fields.get("fraction"), where)
    _once(facts, "sizing.requested", fields.get("budget"), where)


def _cpu_above_node(fields: dict[str, Any], where: Where, facts: Facts) -> None:
    _once(facts, "host.free", fields.get("free"), where)
    _once(facts, "host.total", fields.get("total"), where)
    facts.add("sizing.requested", fields.get("requested"), where, rank="")


def _state_blocks(fields: dict[str, Any], where: Where, facts: Facts) -> None:
    facts.add("state.slots", fields.get("blocks"), where, rank="")
    facts.add("limit.running_requested", fields.get("seqs"), where, rank="")


def _profile(fields: dict[str, Any], where: Where, facts: Facts) -> None:
    for name, field in (("before", "free"), ("after", "free_after")):
        value = fields.get(field, fields.get(f"bytes_{name}"))
        facts.add(f"profile.free_{name}", value, where, rank="")


def _metal(fields: dict[str, Any], where: Where, facts: Facts) -> None:
    """Apple: the limit is what Metal gives one process, of which the fraction is used."""
    for name, field in (
        ("gpu.total", "metal_limit"),
        ("sizing.fraction", "fraction"),
        ("sizing.requested", "metal_usable"),
        ("weights.loaded", "metal_model"),
        ("activation.bytes", "metal_overhead"),
        ("pool.available_bytes", "metal_budget"),
    ):
        _once(facts, name, fields.get(field), where)


WRITERS: dict[str, Writer] = {
    "kv_below_context": _below_context,
    "kv_below_context_v0": _below_context_v0,
    "free_below_target": _below_target,
    "free_below_external_target": _below_target,
    "no_kv_memory": _no_memory,
    "cpu_kv_above_node": _cpu_above_node,
    "cpu_below_target": _cpu_below_target,
    "state_blocks_below_seqs": _state_blocks,
    "profile_assert": _profile,
    "metal_no_kv": _metal,
}
"""Shape of the catalogue -> what it proves."""

MARKS = (
    "KV cache", "Free memory on device", "No available memory", "Available memory on node", "Mamba cache blocks",
    "Error in memory profiling", "Metal memory for KV",
)  # fmt: skip
_MOST_TEXT = 40_000


def _once(facts: Facts, name: str, value: Any, where: Where) -> None:
    """Adds a fact unless a line of the start-up gave it already."""
    if name not in facts:
        facts.add(name, value, where, rank="")


def write_refusal(event: Event, facts: Facts) -> None:
    """The facts of an event whose kind is one of ``WRITERS``."""
    WRITERS[event.kind](event.fields, Where.of(event.record), facts)


def facts_from_exception(text: str, where: Record | Where, facts: Facts) -> bool:
    """Adds what the exception text ``text`` states, with ``where`` as proof; False if it states nothing.

    ``text`` may be a message, a whole traceback, or one that a terminal wrapped: then it is read with the breaks
    taken out.
    """
    place = Where.of(where) if isinstance(where, Record) else where
    return any(_read(form, place, facts) for form in (text[-_MOST_TEXT:], _unwrapped(text[-_MOST_TEXT:])))


def _unwrapped(text: str) -> str:
    return text.replace("\n", "")


def _read(text: str, where: Where, facts: Facts) -> bool:
    if not any(mark in text for mark in MARKS):
        return False
    from analyzer.parsing import default_catalog

    catalog = default_catalog()
    record = Record(where.source, where.line, where.line, text)
    for kind, write in WRITERS.items():
        shape = catalog.shape(kind, "vllm")
        if found := shape.search(text):
            write(shape.event(found, record).fields, where, facts)
            return True
    return False
