"""Reports made by hand, for the tests of the pages."""

from __future__ import annotations

from analyzer.report.model import (
    BenignRow,
    Evidence,
    FactRow,
    FailureRow,
    Finding,
    InputSummary,
    LedgerRow,
    Report,
    RunReport,
    SizingRow,
    UndecidedRow,
)
from analyzer.units import GIB

LOG = "server.log"


def draft_run() -> RunReport:
    """A healthy SGLang run with a draft that was charged for its own vocabulary."""
    lines = {
        30: "Load weight end. elapsed=0.12 s, type=Qwen3_5ForCausalLMMTP, avail mem=117.45 GB, mem usage=5.53 GB.",
        31: "max_running_requests is capped to 45 by the mamba state cache (max_mamba_cache_size=228, 5 state slots "
        "per request). To raise it: increase --mamba-full-memory-ratio or --max-mamba-cache-size",
        36: "Memory pool end. avail mem=27.81 GB",
        44: "Capture target verify CUDA graph begin. backend=full, num_tokens_per_req=4, avail mem=32.28 GB",
    }

    def proof(line: int) -> Evidence:
        around = [(n, text) for n, text in lines.items() if abs(n - line) < 9]
        return Evidence(LOG, line, lines[line], around)

    times: list[float] = [1000.0 + 5 * i for i in range(120)]
    running: list[float | None] = [float(min(45, i)) for i in range(120)]
    usage: list[float | None] = [0.004 * min(45, i) for i in range(120)]
    accept: list[float | None] = [3.4 - 0.01 * i if i % 10 else None for i in range(120)]
    return RunReport(
        id=1,
        source=LOG,
        first_line=1,
        last_line=78,
        engine="sglang",
        version_range=[">=0.5.14", "<=0.5.17"],
        version_basis="shapes",
        outcome="stopped",
        outcome_basis=[Evidence(LOG, 75, "SIGTERM received. Draining requests and shutting down...")],
        verdict="The pool holds 3,922,281 tokens; it would hold 4,125,988. The draft's own embedding and head "
        "(4.74 GiB) were charged to the pool and freed after it was sized. 45 requests can run at once because of "
        "state slots (228 // 5), not because of KV.",
        facts={
            "gpu.free_before_load": FactRow(139.13 * GIB, "bytes", [22]),
            "pool.tokens": FactRow(3922281, "tokens", [33, 54]),
            "pool.bytes": FactRow(59.84 * GIB, "bytes", [33]),
            "draft.pool.bytes": FactRow(14.96 * GIB, "bytes", [35]),
            "pool.bytes_per_token": FactRow(20480, "bytes_per_token", [], origin="derived"),
            "limit.running": FactRow(45, "requests", [31, 54]),
            "limit.bound_by": FactRow("state-slots", "name", [31]),
            "limit.context": FactRow(262144, "tokens", [54]),
            "model.arch": FactRow("Qwen3_5ForCausalLM", "name", [25]),
            "draft.arch": FactRow("Qwen3_5ForCausalLMMTP", "name", [30]),
            "args.model_path": FactRow("/models/qwen35-16l", "any", [12]),
            "args.mem_fraction_static": FactRow(0.8, "any", [12]),
            "args.speculative_algorithm": FactRow("EAGLE", "any", [12]),
        },
        ledger=[
            LedgerRow("", "weights, target", 16.14 * GIB, [25]),
            LedgerRow("", "weights, draft", 5.53 * GIB, [30], "4.74 of it freed after sizing", freed=4.74 * GIB),
            LedgerRow("", "state, 228 slots", 14.74 * GIB, [32], "8.21 slots + 6.53 for speculation"),
            LedgerRow("", "KV pool, target", 59.84 * GIB, [33]),
            LedgerRow("", "KV pool, draft", 14.96 * GIB, [35]),
            LedgerRow("", "CUDA graphs", 0.76 * GIB, [46, 50, 53]),
            LedgerRow("", "other", 0.39 * GIB, [22], "not itemised: tables, workspaces", "unknown"),
            LedgerRow("", "free, kept", 27.83 * GIB, [54], "by mem_fraction_static 0.8", "kept"),
            LedgerRow("", "free, unused", 3.68 * GIB, [54], "more than was to be kept", "unused"),
        ],
        sizing=SizingRow(
            3922769, 3922281, 0.000124, "sglang 0.5.17: (A1 - A0(1-f) - state) / cell", [], [], 0.0005,
            ["rest = 117.45 - 139.13 x 0.2 = 89.62 GiB", "state = 14.80 GiB", "tokens = 74.82 GiB / 20480"],
        ),
        findings=[
            Finding(
                "KV010", "pool-draft-overhead", "critical", "proved",
                "Draft vocabulary charged to the pool, then freed",
                "Free memory rises from 27.81 to 32.28 GiB after the pool was sized: the draft loaded its own "
                "embedding and head (4.74 GiB), which the sizing charged.",
                "Upgrade to a version that shares them before sizing, or raise --mem-fraction-static to 0.83: the "
                "freed memory covers the difference.",
                ["https://github.com/sgl-project/sglang/issues"], [proof(30), proof(36), proof(44)],
                lost_tokens=203707, lost_bytes=4.74 * GIB, pool_if_fixed=4125988,
            ),
            Finding(
                "CC001", "cap-state-slots", "warning", "proved",
                "Running requests are capped by state slots: 228 // 5 = 45",
                "Each request keeps 5 slots under extra_buffer with overlap. 10 more requests cost 50 slots (1.8 GiB, "
                "about 92,000 tokens).", "--mamba-full-memory-ratio 0.3", [], [proof(31)],
            ),
        ],
        benign=[
            BenignRow(5, "BN004", "a deprecated flag is still followed", LOG, "'--cuda-graph-max-bs' is deprecated"),
            BenignRow(77, "BN009", "printed at every orderly stop", LOG, "destroy_process_group() was not called"),
        ],
        undecided=[
            UndecidedRow("KV001", ["draft.weights.on_disk"], "give --model-dir", "draft weights against its file")
        ],
        series={
            "samples": 480,
            "running": {"min": 0, "mean": 36.5, "max": 45, "first": 0, "last": 45, "count": 480},
            "usage": {"min": 0, "mean": 0.14, "max": 0.18, "first": 0, "last": 0.18, "count": 480},
            "accept_length": {"min": 2.21, "mean": 2.8, "max": 3.39, "first": 3.39, "last": 2.21, "count": 432},
            "points": {"rank": "", "time": times, "running": running, "usage": usage, "accept_length": accept},
        },
        unknown_scary=[Evidence(LOG, 43, "ERROR something nobody has seen before")],
        unexplained_tokens=1203.0,
        notes=["Sizes are GiB; the engine calls them GB."],
    )  # fmt: skip


def failed_run() -> RunReport:
    """A vLLM run that found less free memory than it was told to take."""
    text = (
        "ValueError: Free memory on device (3.1/79.3 GiB) on startup is less than desired GPU memory utilization "
        "(0.9, 71.4 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes."
    )
    return RunReport(
        id=2,
        source=LOG,
        first_line=80,
        last_line=140,
        engine="vllm",
        version="0.11.0",
        version_basis="banner",
        outcome="crashed at startup",
        outcome_basis=[Evidence(LOG, 120, text)],
        verdict="The server did not start: it failed while it set up its processes. Another process held the device.",
        facts={"gpu.total": FactRow(79.3 * GIB, "bytes", [120]), "args.api_key": FactRow("[redacted]", "any", [82])},
        findings=[
            Finding(
                "SF003", "fail-free-below-target", "critical", "proved",
                "Less memory was free than utilization 0.9 asks for",
                "3.1 of 79.3 GiB were free, 71.4 were asked for: 76.2 GiB were already taken. The advice printed to "
                "decrease utilization does not help: nothing would be left for weights.",
                "Find the holder with nvidia-smi and stop it.", [], [Evidence(LOG, 120, text)],
            )
        ],
        failure=FailureRow(
            "fail-free-below-target", "ValueError", text.split(": ", 1)[1], [120, 100], 100, "EngineCore_DP0", ["0"],
            "init", "vllm/v1/worker/gpu_worker.py:194 in init_device", "SF003",
        ),
    )  # fmt: skip


def report() -> Report:
    """Both runs of one log."""
    summary = InputSummary(LOG, 28306, 140, 117, 23)
    return Report([summary], [draft_run(), failed_run()], {"name": "kvautopsy", "version": "0.1.0"}, seconds=0.31)
