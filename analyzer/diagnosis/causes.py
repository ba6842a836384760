"""The cause codes that a rule may name, with their meaning. The list is the project's contract with other tools.

A code names the kind of cause, a rule's id the exact test; several rules may share a code. Codes are only ever added.
"""

from __future__ import annotations

POOL: dict[str, str] = {
    "pool-weights-dominate": "weights fill the device; nothing is wrong with the sizing",
    "pool-low-fraction": "the memory fraction is low, or its default, for what the device had",
    "pool-foreign-memory": "memory was taken by others before loading",
    "pool-user-cap": "a token, block or byte limit given by the user decides",
    "pool-draft-overhead": "the draft's memory exceeds its weight file (own embedding and head, freed after sizing)",
    "pool-draft-share": "the draft's weights and KV layers take a legitimate share",
    "pool-cell-inflation": "more bytes per token in the sizing than in the store",
    "pool-state-share": "recurrent state takes its share before KV",
    "pool-graph-reserve": "memory reserved for, or taken by, CUDA graphs",
    "pool-activation": "activation or profiling peak",
    "pool-group-padding": "padding of hybrid cache groups or pages",
    "pool-window-accounting": "sliding-window layers over- or under-counted, hybrid manager off",
    "pool-smallest-rank": "one rank or stage decides for all",
    "pool-kv-replicated": "KV heads or the MLA latent replicated over ranks",
    "pool-kv-dtype": "KV kept in a wide type",
    "pool-weights-oversized": "weights larger than their files say",
    "pool-left-unused": "memory left after sizing that the pool could have had, cause not proved",
    "pool-overcommit": "the store is larger than the budget it was sized with",
}

CONCURRENCY: dict[str, str] = {
    "cap-state-slots": "running requests capped by state slots",
    "cap-requests": "running requests capped by another limit",
    "cap-kv-full": "pool full: retraction, preemption, long queue",
    "context-exceeds-pool": "the pool is smaller than one request of the context length",
    "queueing-at-cap": "requests wait while the pool is far from full",
    "load-imbalance": "one data-parallel engine has requests waiting while another is nearly idle",
    "request-refused": "a request longer than the pool or the context was refused while the server goes on",
    "request-transfer-failed": "a disaggregated KV transfer failed, the server goes on",
    "argument-ignored": "a flag that the engine took and did not follow",
    "slow-start": "loading or compiling dominates the time to serve",
    "slow-decode": "decode far slower than the set-up explains",
    "service-dead": "the server runs, by its log or its probe, and does not serve",
    "metrics-disagree": "metrics and log do not speak of the same server",
}

SPECULATION: dict[str, str] = {
    "spec-inactive": "speculation was asked for and does not run",
    "spec-never-accepts": "drafted tokens are (almost) never accepted",
    "spec-layer-reused": "more draft tokens than the model has draft layers: a layer is reused",
    "spec-acceptance-decays": "acceptance falls with context or load",
    "spec-parameter-ignored": "a sampling or speculative parameter is not followed",
    "spec-costs-memory": "what speculation takes from the pool outweighs its use",
}

STARTUP: dict[str, str] = {
    "fail-no-kv-memory": "no memory for any KV",
    "fail-kv-below-context": "KV fits less than one request",
    "fail-free-below-target": "free memory below what was asked",
    "fail-oom-load": "out of memory while loading weights",
    "fail-oom-profile": "out of memory while profiling",
    "fail-oom-pool": "out of memory while allocating the pool itself",
    "fail-oom-after-pool": "out of memory after the pool, for example while capturing graphs",
    "fail-quantization-mismatch": "checkpoint format and quantization argument do not fit",
    "fail-kernel-unsupported": "a kernel does not support the device, type or shape",
    "fail-weights-missing": "tensors or files of the checkpoint are missing",
    "fail-model-unsupported": "the engine does not know the model",
    "fail-argument": "a launch argument is wrong",
    "fail-dependency": "a package, module or library is missing or does not match",
    "fail-compile": "compilation failed",
    "fail-cache-stale": "a stale compilation or kernel cache",
    "fail-download": "the model could not be fetched",
    "fail-path": "a path does not exist or is not readable",
    "fail-port": "a port is in use",
    "fail-network": "processes or nodes could not reach each other",
    "fail-shared-memory": "shared memory is too small or not permitted",
    "fail-disk": "no disk space, or a disk error",
    "fail-device-count": "fewer devices than asked for, or none",
    "fail-memory-imbalance": "devices differ too much in free memory",
    "fail-engine-bug": "a defect of the engine",
    "fail-hang": "start-up stalls without an error",
    "fail-gpu-fault": "illegal memory access or other device fault",
    "fail-draft-mismatch": "draft and target do not fit",
    "fail-unsupported-combination": "features that cannot be used together",
    "fail-false-refusal": "the engine's own check is wrong",
    "fail-affinity": "NUMA or CPU set",
    "fail-weights-mismatch": "tensor shapes do not fit the config",
    "fail-device-limit": "an on-chip limit of the device",
    "fail-host-limit": "a limit of the process or host is reached: open files, threads",
}

RUNTIME: dict[str, str] = {
    "crash-state-slots": "no state slot could be given out",
    "crash-pool-leak": "the pool's own accounting does not add up",
    "crash-oom": "out of device memory while serving",
    "crash-engine-bug": "a defect of the engine",
    "crash-dependency": "a package or library failed",
    "crash-network": "processes or nodes lost each other",
    "crash-gpu-fault": "illegal memory access or other device fault",
    "crash-native-fault": "segmentation fault or abort on the host",
    "crash-kernel-unsupported": "a kernel does not support what it was called with",
    "crash-watchdog": "the watchdog ended a stalled server",
    "crash-host-limit": "a limit of the process or host was reached: open files, threads",
    "crash-killed": "ended from outside; no error of its own",
}

BENIGN: dict[str, str] = {
    "benign-library-notice": "a notice of a library",
    "benign-shutdown": "noise of an orderly shutdown",
    "benign-fallback": "a fallback that works",
    "benign-retraction": "requests put back and run later",
    "benign-advice": "advice, not an error",
    "benign-metrics-artefact": "an artefact of the metrics",
    "benign-watchdog": "a false alarm of a watchdog",
    "benign-other": "another harmless line",
}

PACKAGE: dict[str, str] = {
    "package-quantization-mismatch": "what the package declares plain or packed is not what its files hold",
    "package-incomplete": "files, tensors or index entries of the package are missing",
    "package-damaged": "weight files that are cut off or whose header cannot be believed",
    "package-config-mismatch": "tensors or limits that do not fit config.json",
    "package-kernel-dims": "packed layers with dimensions that the usual kernels refuse",
    "package-draft-missing": "MTP weights that are missing, unreachable or not counted",
    "context-beyond-model": "a context length beyond what the model's config declares",
}

NO_CAUSE: dict[str, str] = {
    "no-finding": "healthy",
    "elsewhere": "the cause is in another process, node or stream",
    "cut-short": "the log ends without an end",
}

CAUSES: dict[str, str] = {**POOL, **CONCURRENCY, **SPECULATION, **STARTUP, **RUNTIME, **BENIGN, **PACKAGE, **NO_CAUSE}
"""Every cause code -> its meaning."""

TOPICS: dict[str, str] = {
    "KV": "the pool",
    "CC": "concurrency and service",
    "SD": "speculative decoding",
    "SF": "failures at start-up",
    "RF": "failures at runtime",
    "BN": "lines that look like errors and are not",
    "MP": "the model package",
    "TM": "telemetry",
}
"""The letters that a rule id may begin with -> their topic."""
