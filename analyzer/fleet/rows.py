"""One report as rows of the fleet's tables. A row is a flat dict; which columns a table has is fixed here."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from analyzer.report.model import Report, RunReport
from analyzer.units import number_or_none

Row = dict[str, Any]

NUMBERS = (
    "pool.tokens", "pool.bytes", "pool.blocks", "pool.block_tokens", "pool.available_bytes", "pool.bytes_per_token",
    "weights.loaded", "draft.weights.loaded", "state.bytes", "state.slots", "gpu.total", "gpu.free_before_load",
    "free.after_pool", "free.after_graphs", "graphs.bytes", "limit.running", "limit.context", "limit.concurrency",
    "sizing.fraction", "spec.draft_tokens", "spec.accept_length",
)  # fmt: skip
NAMES = ("model.path", "model.arch", "gpu.name", "spec.method", "limit.bound_by")
FLAGS = (
    "args.tensor_parallel_size", "args.pipeline_parallel_size", "args.data_parallel_size", "args.kv_cache_dtype",
    "args.quantization", "args.mem_fraction_static", "args.gpu_memory_utilization", "args.max_running_requests",
    "args.max_num_seqs", "args.max_num_batched_tokens", "args.chunked_prefill_size", "args.context_length",
    "args.max_model_len", "args.max_total_tokens", "args.page_size", "args.block_size", "args.cuda_graph_max_bs",
    "args.enforce_eager", "args.speculative_algorithm", "args.speculative_num_draft_tokens",
    "args.speculative_config", "args.mamba_full_memory_ratio", "args.max_mamba_cache_size", "args.mamba_ssm_dtype",
    "args.kv_cache_memory_bytes", "args.num_gpu_blocks_override", "args.attention_backend",
)  # fmt: skip
"""Launch arguments that bear on capacity: runs that agree in them (and in the model) should have the same pool."""

NOT_A_LOG = "nothing recognised: not a log of SGLang or vLLM"
"""The reason in the ``files`` table for a file that was read and is something else."""

TEXT, NUMBER, INTEGER, BOOL = "str", "float", "int", "bool"
TABLES: dict[str, dict[str, str]] = {
    "runs": {
        "run": TEXT, "source": TEXT, "first_line": INTEGER, "last_line": INTEGER, "lines": INTEGER,
        "recognised_lines": INTEGER, "engine": TEXT, "version": TEXT, "version_low": TEXT, "version_high": TEXT,
        "outcome": TEXT, "verdict": TEXT, "cause": TEXT, "rule": TEXT, "failure_cause": TEXT,
        "failure_exception": TEXT, "findings": INTEGER, "critical": INTEGER, "benign": INTEGER,
        "lost_tokens": NUMBER, "sizing_error": NUMBER, "flags": TEXT,
        **{name.replace(".", "_"): NUMBER for name in NUMBERS},
        **{name.replace(".", "_"): TEXT for name in NAMES},
    },
    "ranks": {"run": TEXT, "rank": TEXT, "fact": TEXT, "value": NUMBER, "unit": TEXT},
    "findings": {
        "run": TEXT, "source": TEXT, "engine": TEXT, "rule": TEXT, "cause": TEXT, "severity": TEXT,
        "confidence": TEXT, "title": TEXT, "summary": TEXT, "lost_tokens": NUMBER, "lost_bytes": NUMBER,
        "pool_if_fixed": NUMBER, "line": INTEGER, "explained_by": TEXT,
    },
    "events": {"run": TEXT, "source": TEXT, "line": INTEGER, "time": TEXT, "rank": TEXT, "kind": TEXT, "fields": TEXT},
    "series": {"run": TEXT, "series": TEXT, "stat": TEXT, "value": NUMBER},
    "files": {"source": TEXT, "path": TEXT, "size": INTEGER, "mtime": INTEGER, "fingerprint": TEXT, "error": TEXT},
}  # fmt: skip


def rows_of(report: Report) -> dict[str, list[Row]]:
    """The rows of every table but ``events`` and ``files`` for one report."""
    tables: dict[str, list[Row]] = {name: [] for name in TABLES}
    read = {i.source: i for i in report.inputs}
    for run in report.runs:
        key = run_key(run)
        inputs = read.get(run.source)
        tables["runs"].append(
            {"run": key, **_run_row(run), "lines": getattr(inputs, "lines", 0),
             "recognised_lines": getattr(inputs, "recognised_lines", 0)}
        )  # fmt: skip
        tables["ranks"].extend({"run": key, **row} for row in _rank_rows(run))
        tables["findings"].extend({"run": key, **row} for row in _finding_rows(run))
        tables["series"].extend({"run": key, **row} for row in _series_rows(run))
    return tables


def run_key(run: RunReport) -> str:
    """What names a run in all tables."""
    return f"{run.source}#{run.id}"


def flags_of(run: RunReport) -> str:
    """The launch arguments that bear on capacity, as canonical JSON."""
    given = {name[5:]: run.facts[name].value for name in FLAGS if name in run.facts}
    return json.dumps({k: v for k, v in given.items() if v not in (None, "None")}, sort_keys=True, default=str)


def _run_row(run: RunReport) -> Row:
    low, high = (run.version_range or ["", ""])[:2]
    main = next((f for f in run.findings if f.severity != "info"), None)
    row: Row = {
        "source": run.source, "first_line": run.first_line, "last_line": run.last_line, "engine": run.engine,
        "version": run.version, "version_low": low, "version_high": high, "outcome": run.outcome,
        "verdict": run.verdict,
        "cause": run.failure.cause if run.failure else main.cause if main else None,
        "rule": run.failure.rule if run.failure else main.rule if main else None,
        "failure_cause": run.failure.cause if run.failure else None,
        "failure_exception": run.failure.exception if run.failure else None,
        "findings": len(run.findings), "critical": sum(f.severity == "critical" for f in run.findings),
        "benign": len(run.benign),
        "lost_tokens": sum(f.lost_tokens or 0.0 for f in run.findings) or None,
        "sizing_error": run.sizing.error if run.sizing else None, "flags": flags_of(run),
    }  # fmt: skip
    for name in NUMBERS:
        row[name.replace(".", "_")] = number_or_none(run.facts[name].value) if name in run.facts else None
    for name in NAMES:
        row[name.replace(".", "_")] = str(run.facts[name].value) if name in run.facts else None
    return row


def _rank_rows(run: RunReport) -> Iterator[Row]:
    for name, fact in run.facts.items():
        for rank, value in fact.ranks.items():
            if (number := number_or_none(value)) is not None:
                yield {"rank": rank, "fact": name, "value": number, "unit": fact.unit}


def _finding_rows(run: RunReport) -> Iterator[Row]:
    for f in run.findings:
        yield {
            "source": run.source, "engine": run.engine, "rule": f.rule, "cause": f.cause, "severity": f.severity,
            "confidence": f.confidence, "title": f.title, "summary": f.summary, "lost_tokens": f.lost_tokens,
            "lost_bytes": f.lost_bytes, "pool_if_fixed": f.pool_if_fixed,
            "line": f.evidence[0].line if f.evidence else None, "explained_by": f.explained_by or None,
        }  # fmt: skip


def _series_rows(run: RunReport) -> Iterator[Row]:
    for series, stats in run.series.items():
        if isinstance(stats, dict):
            for stat, value in stats.items():
                if (number := number_or_none(value)) is not None:
                    yield {"series": series, "stat": stat, "value": number}
        elif (number := number_or_none(stats)) is not None:
            yield {"series": series, "stat": "value", "value": number}
