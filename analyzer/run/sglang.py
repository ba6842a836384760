"""Folds the events of one SGLang server into the facts of its run.

SGLang prints the same text for the target and for the draft model ("Load weight begin/end", "KV Cache is allocated",
"Memory pool end"), each once for every rank. What belongs to which follows from the order within a rank and from the
class that was loaded. This module keeps what was printed, by rank and in order; ``sglang_facts`` draws the facts from
it and ``sglang_version`` the bracket of versions.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from analyzer.events import Event
from analyzer.framing.record import Record
from analyzer.run.balance import write_balance
from analyzer.run.facts import MOST_RANKS
from analyzer.run.model import Run
from analyzer.run.series import Series
from analyzer.run.sglang_command import parse_options

STAGE_OF: dict[str, str] = {
    "server_args": "arguments",
    "attention_backend": "arguments",
    "kernels_for_model": "arguments",
    "dp_launch": "init",
    "custom_allreduce_off": "init",
    "nccl_version": "init",
    "distributed_begin": "init",
    "distributed_end": "init",
    "parallel_begin": "init",
    "parallel_end": "init",
    "memory_baseline": "init",
    "load_weight_begin": "weights",
    "load_weight_end": "weights",
    "load_weight_committed": "weights",
    "mlx_loaded": "weights",
    "kv_cache_allocated": "pool",
    "kv_cache_va_bound": "pool",
    "kv_cache_skipped": "pool",
    "kv_cache_post_capture": "pool",
    "mamba_cache_allocated": "pool",
    "memory_pool_end": "pool",
    "dsv4_calculation": "pool",
    "jax_profile": "pool",
    "jax_pool": "pool",
    "dsv4_pools": "pool",
    "dsv4_draft_pools": "pool",
    "pool_summary_cut": "pool",
    "swa_pool": "pool",
    "swa_pool_all": "pool",
    "mlx_pool": "pool",
    "mlx_stub_pools": "pool",
    "target_graph_begin": "graphs",
    "target_graph_end": "graphs",
    "prefill_graph_begin": "graphs",
    "draft_graph_begin": "graphs",
    "draft_extend_graph_begin": "graphs",
    "graph_batches": "graphs",
    "server_ready": "ready",
    "prefill_batch": "serving",
    "prefill_batch_cut": "serving",
    "decode_batch_cut": "serving",
    "decode_batch": "serving",
    "retraction": "serving",
    "sigterm": "shutdown",
    "graceful_exit": "shutdown",
}
"""Which stage of ``analyzer.run.model.STAGES`` a kind of event belongs to."""

_DRAFT_CLASS = re.compile(r"(?i)mtp|nextn|eagle|dspark|dflash|medusa")
_MAX_ITEMS = 128


@dataclass(slots=True)
class Load:
    """One model's weights on one rank. Sizes in bytes; None where the version does not print them."""

    begin: Record | None = None
    end: Record | None = None
    model_type: str = ""
    before: float | None = None
    after: float | None = None
    used: float | None = None
    quant: str = ""

    @property
    def taken(self) -> float | None:
        """Memory that the load took: as printed, else the difference of the two free figures."""
        if self.used is not None:
            return self.used
        if self.before is not None and self.after is not None:
            return self.before - self.after
        return None

    @property
    def looks_like_draft(self) -> bool:
        """The class is named like a draft (…MTP, …NextN, …Eagle3)."""
        return _DRAFT_CLASS.search(self.model_type) is not None


@dataclass(slots=True)
class Pool:
    """One "KV Cache is allocated" line."""

    record: Record
    tokens: int | None
    size: float | None
    dtype: str = ""
    label: str = ""
    parts: int = 2
    """How many rounded figures ``size`` is the sum of."""


@dataclass(slots=True)
class Graph:
    """One capture: free memory when it began and ended, memory it took."""

    role: str
    begin: Record | None = None
    end: Record | None = None
    before: float | None = None
    after: float | None = None
    used: float | None = None


@dataclass(slots=True)
class RankLog:
    """What one rank printed while starting, in order.

    ``workers`` are the pools of one worker each: closed by "Memory pool end", target first, then draft(s).
    """

    loads: list[Load] = field(default_factory=list)
    workers: list[list[Pool]] = field(default_factory=lambda: [[]])
    ends: list[tuple[float, Record]] = field(default_factory=list)
    graphs: list[Graph] = field(default_factory=list)
    loads_before_pool: int | None = None
    """How many loads had ended when the first pool line came."""


class SglangFolder:
    """Takes the events of one SGLang run and writes its facts; may be asked for them at any time."""

    engine = "sglang"

    def __init__(self) -> None:
        self.ranks: dict[str, RankLog] = {}
        self.series = Series()
        self.first: dict[str, Event] = {}
        """First event of each kind, and of each rank under ``kind@rank``."""
        self.last: dict[str, Event] = {}
        """Last event of each kind, and of each rank under ``kind@rank``."""
        self.args: dict[str, Any] = {}
        self.args_event: Event | None = None
        self.given: dict[str, Any] = {}
        """Options of a command line that the log shows; ``{}`` without one."""
        self._handlers: dict[str, Callable[[Event], None]] = {
            "server_args": self._server_args,
            "launch_command": self._launch_command,
            "load_weight_begin": self._load_begin,
            "load_weight_end": self._load_end,
            "kv_cache_allocated": self._pool,
            "memory_pool_end": self._pool_end,
        }
        for role in ("target", "prefill", "draft", "draft_extend"):
            self._handlers[f"{role}_graph_begin"] = self._graph_begin
            self._handlers[f"{role}_graph_end"] = self._graph_end

    def feed(self, event: Event) -> None:
        """Takes the next event in order."""
        kind = event.kind
        if kind in ("decode_batch", "prefill_batch"):
            self.series.feed(event, decode=kind == "decode_batch")
            self.first.setdefault(kind, event)
            self.last[kind] = event
            return
        if kind == "retraction":
            self.series.retracted(event.record, event.get("retracted", 1))
        self._remember(kind, event)
        if (handler := self._handlers.get(kind)) is not None:
            handler(event)

    def handles(self, kind: str) -> bool:
        """Whether more is done with events of ``kind`` than to remember the first and the last."""
        return kind in self._handlers

    def saw(self, event: Event) -> None:
        """Remembers ``event`` as the last of its kind; for the last of many lines that were counted together."""
        if event.kind in ("decode_batch", "prefill_batch"):
            self.last[event.kind] = event
        else:
            self._remember(event.kind, event)

    def fill(self, run: Run) -> None:
        """Writes facts, version and series into ``run``. May be called repeatedly while a log grows."""
        from analyzer.run.collapse import write_collapse
        from analyzer.run.sglang_facts import write_facts
        from analyzer.run.sglang_version import write_version

        write_facts(self, run)
        write_version(self, run)
        self.series.write(run.facts)
        write_balance(self.series, run.facts)
        write_collapse(self.series, run.facts)
        run.series = self.series.summary()

    def of(self, kind: str, rank: str | None = None) -> Event | None:
        """The last event of ``kind`` (of ``rank``, if given), or None."""
        return self.last.get(kind if rank is None else f"{kind}@{rank}")

    @property
    def arguments(self) -> dict[str, Any]:
        """Launch arguments: as printed by the engine, and what a command line gave beyond that (a dump may be cut)."""
        return {**self.given, **self.args}

    def events_by_rank(self, kind: str) -> list[Event]:
        """The last event of ``kind`` of each rank that printed it."""
        prefix = kind + "@"
        return [event for key, event in self.last.items() if key.startswith(prefix)]

    def _remember(self, kind: str, event: Event) -> None:
        self.first.setdefault(kind, event)
        self.last[kind] = event
        if len(self.last) < 4096:
            self.last[f"{kind}@{event.record.rank}"] = event

    def _rank(self, event: Event) -> RankLog:
        rank = event.record.rank
        log = self.ranks.get(rank)
        if log is None:
            log = RankLog()
            if len(self.ranks) < MOST_RANKS:
                self.ranks[rank] = log
        return log

    def _server_args(self, event: Event) -> None:
        value = event.get("args")
        if isinstance(value, dict) and len(value) >= len(self.args):
            self.args = value
            self.args_event = event

    def _launch_command(self, event: Event) -> None:
        if options := parse_options(event.get("options", "")):
            self.given = options

    def _load_begin(self, event: Event) -> None:
        loads = self._rank(event).loads
        if len(loads) < _MAX_ITEMS:
            loads.append(Load(begin=event.record, before=event.get("avail")))

    def _load_end(self, event: Event) -> None:
        log = self._rank(event)
        if (not log.loads or log.loads[-1].end is not None) and len(log.loads) < _MAX_ITEMS:
            log.loads.append(Load())
        load = log.loads[-1]
        load.end = event.record
        load.model_type = event.get("model_type", "")
        load.quant = event.get("quant") or ""
        load.after = event.get("avail")
        load.used = event.get("used")
        if load.before is None and load.after is not None and load.used is not None:
            load.before = load.after + load.used

    def _pool(self, event: Event) -> None:
        log = self._rank(event)
        if log.loads_before_pool is None:
            log.loads_before_pool = sum(load.end is not None for load in log.loads)
        parts = [event.fields[name] for name in ("kv_bytes", "k_bytes", "v_bytes") if name in event.fields]
        pool = Pool(
            event.record,
            event.get("tokens"),
            sum(parts) if parts else None,
            event.get("dtype", ""),
            event.get("label", ""),
            len(parts),
        )
        if len(log.workers[-1]) < _MAX_ITEMS:
            log.workers[-1].append(pool)

    def _pool_end(self, event: Event) -> None:
        log = self._rank(event)
        if len(log.ends) < _MAX_ITEMS:
            log.ends.append((event.get("avail"), event.record))
            log.workers.append([])

    def _graph_begin(self, event: Event) -> None:
        graphs = self._rank(event).graphs
        if len(graphs) < _MAX_ITEMS:
            graphs.append(Graph(event.kind.removesuffix("_graph_begin"), event.record, before=event.get("avail")))

    def _graph_end(self, event: Event) -> None:
        graphs = self._rank(event).graphs
        role = event.kind.removesuffix("_graph_end")
        graph = next((g for g in reversed(graphs) if g.role == role and g.end is None), None)
        if graph is None:
            if len(graphs) >= _MAX_ITEMS:
                return
            graphs.append(graph := Graph(role))
        graph.end = event.record
        graph.after = event.get("avail")
        graph.used = event.get("used", event.get("used_after"))
        if graph.used is None and graph.before is not None and graph.after is not None:
            graph.used = graph.before - graph.after
