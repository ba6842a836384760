"""Memory as the back ends for other devices print it (CPU, XPU, TPU, Gaudi, Ascend), and the rank of a line."""

from __future__ import annotations

import re

from analyzer.events import Event
from analyzer.run.facts import Facts

ENGINE_CORE = re.compile(r"EngineCore_(?:DP)?\d+$")
_GIB = 1 << 30


def rank_of(event: Event) -> str:
    """The rank that a line speaks for; ``""`` for a process that is the only one of its kind."""
    record = event.record
    return record.rank or (record.process if ENGINE_CORE.match(record.process) else "")


def cpu_space(event: Event, facts: Facts) -> None:
    facts.add("pool.available_bytes", event.get("available"), event.record, rank=rank_of(event))
    facts.add("host.total", event.get("total"), event.record, rank=rank_of(event))


def xpu_profile(event: Event, facts: Facts) -> None:
    """The peak holds weights, activations and what lies outside the allocator."""
    rank, peak, torch, other = rank_of(event), event.get("peak"), event.get("torch"), event.get("non_torch")
    facts.add("non_torch.bytes", other, event.record, rank=rank)
    if None not in (peak, torch, other):
        facts.add("activation.bytes", peak - torch - other, event.record, rank=rank)


def tpu_memory(event: Event, facts: Facts) -> None:
    """All chips of the worker together."""
    rank = rank_of(event)
    facts.add("gpu.total", event.get("limit"), event.record, rank=rank)
    facts.add("sizing.requested", event.get("budget"), event.record, rank=rank)
    facts.add("pool.available_bytes", event.get("available"), event.record, rank=rank)


def hpu_memory(event: Event, facts: Facts) -> None:
    """Gaudi takes the fraction of what is free after the profile, and a share of that for graphs."""
    rank = rank_of(event)
    facts.add("sizing.fraction", event.get("fraction"), event.record, rank="")
    facts.add("gpu.free_after_load", event.get("hpu_free"), event.record, rank=rank)
    facts.add("sizing.requested", event.get("hpu_usable"), event.record, rank=rank)
    facts.add("graphs.applied", event.get("hpu_graphs"), event.record, rank=rank)
    facts.add("pool.available_bytes", event.get("hpu_cache"), event.record, rank=rank)


def hpu_taken(event: Event, facts: Facts) -> None:
    rank = rank_of(event)
    facts.add("gpu.total", event.get("hpu_total"), event.record, rank=rank)
    facts.add("weights.loaded", event.get("hpu_weights"), event.record, rank=rank)
    facts.add("pool.bytes", event.get("hpu_pool"), event.record, rank=rank)


def tpu_loaded(event: Event, facts: Facts) -> None:
    """What all chips of the worker hold once the model is loaded, as (used, whole) for each."""
    chips = re.findall(r"\(([\d.]+), [\d.]+\)", event.record.text)
    facts.add("weights.loaded", sum(map(float, chips)) * _GIB or None, event.record, rank=rank_of(event))


def ascend_memory(event: Event, facts: Facts) -> None:
    facts.add("gpu.total", event.get("ascend_total"), event.record, rank=rank_of(event))
    facts.add("pool.available_bytes", event.get("ascend_available"), event.record, rank=rank_of(event))
