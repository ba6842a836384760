"""Folds the events of one vLLM server into the facts of its run.

Every line that bears on memory, limits, speculation or configuration is kept (bounded for each kind) and replayed
when facts are asked for, so that ``fill`` may be called at any time and always gives the same answer for the same
lines. ``vllm_facts`` says what one line proves, ``vllm_args`` reads arguments and configuration, ``vllm_refusals``
the texts of exceptions, ``vllm_version`` the version.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from analyzer.events import Event
from analyzer.run.acceptance import write_acceptance
from analyzer.run.balance import write_balance
from analyzer.run.facts import Where
from analyzer.run.model import Run
from analyzer.run.series import Series
from analyzer.run.stall import write_stall, write_waits
from analyzer.run.vllm_args import ARGUMENT_KINDS, write_arguments
from analyzer.run.vllm_facts import FACT_KINDS, Lines, write_facts
from analyzer.run.vllm_refusals import facts_from_exception
from analyzer.run.vllm_version import before, write_version

STAGE_OF: dict[str, str] = {
    "api_server_version": "arguments",
    "banner": "arguments",
    "server_args": "arguments",
    "non_default_args": "arguments",
    "engine_init": "init",
    "nccl_version": "init",
    "placement_wait": "init",
    "devices_short": "init",
    "core_awaited": "init",
    "dp_coordinator": "init",
    "core_handshake": "init",
    "offload_region": "pool",
    "rank_assigned": "init",
    "distributed_init": "init",
    "load_start": "weights",
    "weights_format": "weights",
    "neuron_compile": "weights",
    "load_seconds": "weights",
    "bnb_load": "weights",
    "weights_loaded": "weights",
    "spec_drafter_loading": "weights",
    "compile_cache": "weights",
    "dynamo_seconds": "weights",
    "compile_graph": "weights",
    "compile_cached": "weights",
    "compile_stored": "weights",
    "compile_seconds": "weights",
    "aot_loaded": "weights",
    "aot_saved": "weights",
    "encoder_too_long": "weights",
    "ray_workers": "init",
    "graph_profiling": "weights",
    "graph_estimate": "weights",
    "graph_estimate_off": "weights",
    "graph_estimate_on": "weights",
    "v0_profile": "pool",
    "v0_profile_results": "pool",
    "v0_blocks": "pool",
    "v1_blocks": "pool",
    "available_kv": "pool",
    "kv_bytes_given": "pool",
    "startup_plan_applied": "pool",
    "kv_tokens": "pool",
    "max_concurrency": "pool",
    "cpu_kv_space": "pool",
    "xpu_after_profile": "pool",
    "tpu_memory": "pool",
    "hpu_memory": "pool",
    "hpu_cache_taken": "pool",
    "hpu_weights_taken": "weights",
    "tpu_worker": "init",
    "tpu_model": "weights",
    "ascend_memory": "pool",
    "graphs_begin_v0": "graphs",
    "graphs_captured": "graphs",
    "warm_up_kernels": "graphs",
    "autotune_cache": "graphs",
    "tpu_compile": "graphs",
    "graph_compared": "graphs",
    "engine_ready": "graphs",
    "server_start": "graphs",
    "supported_tasks": "ready",
    "stats": "serving",
    "stats_v0": "serving",
    "prefix_hits_v0": "serving",
    "spec_stats": "serving",
    "spec_stats_v0": "serving",
    "iteration": "serving",
    "preemption_v0": "serving",
    "shutdown_signal": "shutdown",
    "shutdown_triggered": "shutdown",
    "shutdown_initiated": "shutdown",
    "http_shutting_down": "shutdown",
}
"""Which stage of ``analyzer.run.model.STAGES`` a kind of event belongs to. Ready is uvicorn's word, a common shape."""

_MOST_OF_A_KIND = 1024
_ACCEPT_LENGTH_WITHOUT_BONUS = "0.9"
"""Before this version the mean acceptance length does not count the token that every step gives anyway."""


def engine_name(index: int) -> str:
    """How vLLM names an engine in its statistics."""
    return f"Engine {index:03d}"


class VllmFolder:
    """Takes the events of one vLLM run and writes its facts; may be asked for them at any time."""

    engine = "vllm"
    SAME_MEAN = 0.02
    """Two means printed with two decimals are the same within this."""

    def __init__(self) -> None:
        self.lines: Lines = {}
        self.series = Series()
        self.generated = 0.0
        self.drafted = 0
        self._generated_at: Event | None = None
        self._version = ""
        self._totals: dict[str, float] = {}
        self._first_engine: int | None = None

    def feed(self, event: Event) -> None:
        """Takes one event of this engine."""
        kind = event.kind
        if kind in ("stats", "stats_v0"):
            self._statistics(event)
        elif kind in ("spec_stats", "spec_stats_v0"):
            self._speculation(event)
        elif kind == "prefix_hits_v0":
            self.series.feed(event, decode=False)
        elif kind == "preemption_v0":
            self.series.retracted(event.record)
        elif kind in FACT_KINDS or kind in ARGUMENT_KINDS:
            if (version := event.get("version")) and not self._version:
                self._version = str(version)
            kept = self.lines.setdefault(kind, [])
            if len(kept) < _MOST_OF_A_KIND:
                kept.append(event)

    def _statistics(self, event: Event) -> None:
        self.series.feed(event, of=self.track_of(event.rank, event.get("engine_index")))
        if rate := event.get("decode_rate"):
            self.generated_so_far(self.generated + float(rate), event)
        if count := event.get("preempted"):
            self.series.retracted(event.record, count)

    def track_of(self, rank: str, engine: int | None) -> str:
        """The series of a statistics line; one API server prints those of all its data-parallel engines.

        The first engine shares its series with the lines that name none (speculation), so that the usual server, which
        has one engine, has one series.
        """
        if rank or engine is None:
            return rank
        if self._first_engine is None:
            self._first_engine = engine
            self.series.unnamed = engine_name(engine)
        return "" if engine == self._first_engine else engine_name(engine)

    def generated_so_far(self, total: float, event: Event | None) -> None:
        """Takes the sum of all generation rates printed; ``event`` is the last line that shows one."""
        self.generated = total
        self._generated_at = event or self._generated_at

    def _speculation(self, event: Event) -> None:
        """Counts a statistics line of speculation; one that drafted nothing says nothing about acceptance."""
        drafted = event.get("drafted") or 0
        self.drafted += int(drafted)
        if not drafted:
            return
        fields = {name: value for name, value in event.fields.items() if value == value}
        if event.kind == "spec_stats_v0":
            fields = self.interval_of_totals(fields)
        elif "accept_length" in fields and self._lacks_bonus(fields):
            fields["accept_length"] += 1
        self.series.feed(replace(event, fields=fields), decode=False)

    def _lacks_bonus(self, fields: dict[str, Any]) -> bool:
        """Whether the printed mean is the sum of the rates by position alone; by the version where none are printed."""
        rates = re.findall(r"\d+\.\d+", str(fields.get("positions", "")))
        if rates:
            return abs(sum(map(float, rates)) - float(fields["accept_length"])) < self.SAME_MEAN
        return self.without_bonus

    @property
    def without_bonus(self) -> bool:
        """Whether this version prints the mean acceptance length without the token that every step gives anyway."""
        return before(self._version, _ACCEPT_LENGTH_WITHOUT_BONUS)

    def interval_of_totals(self, totals: dict[str, Any]) -> dict[str, Any]:
        """V0 prints totals since the start: what was added since its line before."""
        names = ("drafted", "accepted", "emitted")
        before = self._totals if all(totals.get(n, 0) >= self._totals.get(n, 0) for n in names) else {}
        added = {name: totals.get(name, 0) - before.get(name, 0) for name in names}
        self._totals = {name: totals.get(name, 0) for name in names}
        if added["drafted"] > 0:
            steps = added["drafted"] / max(1, totals.get("draft_tokens", 1))
            added["accept_length"] = added["emitted"] / steps
            added["acceptance"] = added["accepted"] / added["drafted"]
        return added

    def fill(self, run: Run) -> None:
        """Writes version, facts and series into ``run``."""
        facts = run.facts
        facts.add("engine.name", "vllm", None, rank="")
        write_version(self.lines, run)
        write_arguments(self.lines, facts)
        write_facts(self.lines, facts)
        for failure in run.failures:
            where = failure.where[0] if failure.where else Where(run.source, failure.first_line, failure.message)
            facts_from_exception(f"{failure.message}\n{failure.text}", where, facts)
        write_waits(run.events, run.stages.get("serving"), facts)
        self._write_runtime(run)

    def _write_runtime(self, run: Run) -> None:
        facts = run.facts
        self.series.write(facts)
        write_acceptance(self.series, facts)
        write_stall(self.series, facts)
        write_balance(self.series, facts, timed=True)
        if self._generated_at is not None:
            facts.add("load.generated_rate", self.generated, self._generated_at.record, rank="")
        if summary := self.series.summary():
            run.series.update(summary)
