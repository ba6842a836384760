"""The vocabulary of facts: one engine-neutral name for one thing, with its unit and how ranks reduce to one value.

Rules, sizing and reports use these names only. A name that is not listed is an error when a rule is loaded, except
under the open prefixes (``args.``), whose values are whatever the engine printed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Spec:
    """Unit, meaning and reduction (``min``, ``max``, ``last``, ``first``, ``sum``) of one fact."""

    unit: str
    meaning: str
    reduce: str = "last"

    def reduced(self, values: list[Any]) -> Any:
        """The run's value from its ranks' values."""
        numbers = [v for v in values if isinstance(v, int | float) and not isinstance(v, bool)]
        if self.reduce in ("min", "max", "sum") and len(numbers) == len(values):
            reducers: dict[str, Callable[[list[Any]], Any]] = {"min": min, "max": max, "sum": sum}
            return reducers[self.reduce](numbers)
        return values[0] if self.reduce == "first" else values[-1]


OPEN_PREFIXES: dict[str, Spec] = {"args.": Spec("any", "a launch argument, as resolved and printed by the engine")}

VOCABULARY: dict[str, Spec] = {
    # identity
    "engine.name": Spec("name", "sglang or vllm"),
    "engine.version": Spec("version", "the version printed"),
    "engine.platform": Spec("name", "the kind of device the engine runs on: cuda, rocm, xpu, tpu, cpu"),
    "model.path": Spec("name", "the model path or name served"),
    "model.arch": Spec("name", "the architecture class of the target", "first"),
    "draft.arch": Spec("name", "the architecture class of the draft"),
    "gpu.name": Spec("name", "the device's name"),
    "outcome": Spec("name", "outcome of the run, in contract.md's words"),
    "stage": Spec("name", "the last stage reached: arguments, init, weights, pool, graphs, ready, serving, shutdown"),
    # model geometry (from the model folder, or derived)
    "model.layers": Spec("layers", "hidden layers of the target"),
    "model.attention_layers": Spec("layers", "layers of the target that store KV"),
    "model.kv_heads": Spec("count", "KV heads of the whole model"),
    "model.context": Spec("tokens", "the context length that the model's config declares"),
    "model.cell": Spec("bytes_per_token", "KV bytes per token and rank by the model config, target only"),
    "model.folder_arch": Spec("name", "the architecture class that the model folder's config names"),
    "model.folder_fits": Spec("bool", "the folder is of the architecture that the log names"),
    "model.quantization": Spec("name", "the package's quantisation: method, format, bits, group"),
    "model.window_layers": Spec("layers", "layers of the target whose attention is windowed or chunked"),
    "model.window": Spec("tokens", "reach of the windowed layers, if it is one for all"),
    "model.state_layers": Spec("layers", "layers of the target that keep a recurrent state"),
    "model.state_slot_bytes": Spec("bytes_per_slot", "bytes of one state slot by the model config, per rank"),
    "model.vocab_bytes": Spec("bytes", "embedding and head (one table if tied) on one rank, in the model's own type"),
    "model.tied": Spec("bool", "embedding and head are one tensor"),
    "draft.cell": Spec("bytes_per_token", "KV bytes per token and rank by a separate draft's config"),
    "draft.layers": Spec("layers", "layers of the draft that store KV"),
    "draft.layers_counted": Spec("layers", "draft layers that the sizing counted"),
    "sizing.attention_layers": Spec("layers", "layers of the target that store KV, as the sizing counted them"),
    "draft.charged_depth": Spec("ratio", "draft layers that the sizing charged over KV layers of the target"),
    "sparse.prefill_backend": Spec("name", "prefill kernel of sparse attention"),
    "sparse.decode_backend": Spec("name", "decode kernel of sparse attention"),
    # device memory
    "gpu.total": Spec("bytes", "device memory in all", "min"),
    "gpu.free_before_load": Spec("bytes", "device memory free before weights are loaded", "min"),
    "gpu.free_after_load": Spec("bytes", "device memory free after the last model was loaded, before the pool", "min"),
    "gpu.foreign": Spec("bytes", "device memory that others held before the server started", "max"),
    "gpu.free_least": Spec("bytes", "free memory of the rank that had least, as an error message prints it", "min"),
    "gpu.integrated": Spec("bool", "the device shares the host's memory"),
    # weights
    "weights.loaded": Spec("bytes", "device memory taken by loading the target, per rank", "max"),
    "weights.quantization": Spec("name", "the quantisation with which the weights were loaded"),
    "weights.on_disk": Spec("bytes", "bytes of the target's tensors in the files, per rank"),
    "draft.weights.loaded": Spec("bytes", "device memory taken by loading the draft, per rank", "max"),
    "draft.loads": Spec("count", "draft models that were loaded, per rank", "max"),
    "draft.weights.on_disk": Spec("bytes", "bytes of the draft's own tensors in the files, per rank"),
    "draft.duplicate_vocab": Spec("bytes", "the draft's own embedding and head, charged to the pool, then freed"),
    # budget
    "sizing.fraction": Spec("fraction", "mem_fraction_static or gpu_memory_utilization"),
    "sizing.fraction_default": Spec("bool", "the fraction was the engine's default, not given"),
    "sizing.fraction_multimodal": Spec("bool", "the fraction was reduced because the model is multimodal"),
    "sizing.fraction_least": Spec("fraction", "the least fraction that would leave any pool, as printed"),
    "sizing.fraction_formula": Spec("fraction", "the default fraction that the engine's formula gives for this set-up"),
    "sizing.reserved": Spec("bytes", "memory taken out of the budget before the pool, as printed", "max"),
    "sizing.other_reserved": Spec("bytes", "memory reserved outside the budget, as printed", "max"),
    "sizing.unified_bytes": Spec("bytes", "one byte pool for KV and state together, as printed", "min"),
    "sizing.fixed": Spec("bytes", "part of the budget that does not grow with the pool", "max"),
    "sizing.post_capture": Spec("bool", "the pool was sized after graph capture"),
    "sizing.charged_ratio": Spec("ratio", "bytes per token that the sizing charged over those stored, drafts included"),
    "sizing.budget": Spec("bytes", "what the sizing had for state and KV (SGLang rest; vLLM available)", "min"),
    "sizing.reserve": Spec("bytes", "memory kept free on purpose", "min"),
    "sizing.cell": Spec("bytes_per_token", "bytes per token that the sizing charged"),
    "sizing.stored_cell": Spec("bytes_per_token", "bytes per token in the stores of target and drafts"),
    "sizing.cell_factor": Spec("ratio", "factor on the bytes per token, for counterfactuals"),
    "sizing.unspent": Spec("bytes", "memory left after the pools beyond what was kept on purpose", "min"),
    "sizing.requested": Spec("bytes", "vLLM: device total x utilization", "min"),
    "activation.bytes": Spec("bytes", "activation peak measured while profiling", "max"),
    "non_torch.bytes": Spec("bytes", "memory outside the allocator (communication, context)", "max"),
    # recurrent state
    "state.bytes": Spec("bytes", "recurrent (mamba, GDN) state in all", "max"),
    "state.slots_bytes": Spec("bytes", "recurrent state of the slots, without what speculation adds", "max"),
    "state.ratio": Spec("ratio", "share of the budget for state over that for KV (mamba_full_memory_ratio)"),
    "state.slots": Spec("slots", "state slots", "min"),
    "state.slot_bytes": Spec("bytes_per_slot", "bytes of one state slot"),
    "state.slots_per_request": Spec("slots", "state slots that one request takes"),
    "state.intermediate_bytes": Spec("bytes", "states kept for speculative verification", "max"),
    "state.dtype": Spec("name", "element type of the recurrent state"),
    # pool
    "pool.tokens": Spec("tokens", "KV pool in tokens", "min"),
    "pool.bytes": Spec("bytes", "KV pool of the target in bytes, per rank", "max"),
    "pool.rounding": Spec("bytes", "how far the printed figures behind pool.bytes may be off", "max"),
    "pool.bytes_per_token": Spec("bytes_per_token", "stored bytes per token, target"),
    "pool.blocks": Spec("blocks", "KV blocks", "min"),
    "pool.block_tokens": Spec("tokens_per_block", "tokens in one block or page"),
    "pool.block_bytes": Spec("bytes_per_block", "bytes of one block over all layers, per rank"),
    "pool.available_bytes": Spec("bytes", "vLLM 'Available KV cache memory'", "min"),
    "pool.needed_bytes": Spec("bytes", "what one request of the context length needs, as printed"),
    "pool.user_cap": Spec("tokens", "a token limit given by the user"),
    "pool.dtype": Spec("name", "element type of the KV cache as allocated"),
    "pool.swa_tokens": Spec("tokens", "sliding-window pool in tokens", "min"),
    "pool.profiled_tokens": Spec("tokens", "the capacity the engine would have had without a cap"),
    "draft.pool.tokens": Spec(
        "tokens", "KV pool of the draft in tokens, where it takes over the target's figure", "min"
    ),
    "draft.pool.bytes": Spec("bytes", "KV pool of the draft in bytes, per rank", "max"),
    "draft.pool.rounding": Spec("bytes", "how far the printed figures behind draft.pool.bytes may be off", "max"),
    "pool.scales_unprinted": Spec("bool", "pool.bytes lacks the scales of a 4-bit store"),
    "pool.bound_by": Spec("name", "what bounds the pool: memory, user-cap"),
    # after the pool
    "free.after_pool": Spec("bytes", "device memory free after the last pool", "min"),
    "free.after_target_pool": Spec("bytes", "device memory free after the target's pool, before a draft's", "min"),
    "free.after_graphs": Spec("bytes", "device memory free at the end of the start-up", "min"),
    "free.before_graphs": Spec("bytes", "device memory free when the first graph capture begins", "min"),
    "graphs.bytes": Spec("bytes", "memory taken by CUDA graphs", "max"),
    "graphs.estimated": Spec("bytes", "vLLM's estimate of graph memory", "max"),
    "graphs.applied": Spec("bytes", "graph memory subtracted from the pool's budget", "max"),
    # limits
    "limit.running": Spec("requests", "requests that can run at once", "min"),
    "limit.running_requested": Spec("requests", "max_running_requests or max_num_seqs as asked"),
    "limit.running_default": Spec("bool", "the requested number was the engine's default, not the user's"),
    "limit.running_by_state": Spec("requests", "the cap that the state slots set, as printed", "min"),
    "limit.running_by_tokens": Spec("requests", "the cap that the pool's tokens set, as printed", "min"),
    "limit.context": Spec("tokens", "the context length that is served"),
    "limit.context_estimated": Spec("tokens", "the longest context that fits, as the engine estimates"),
    "limit.concurrency": Spec("ratio", "requests of the context length that fit at once, as printed", "min"),
    "limit.input": Spec("tokens", "the longest prompt that is accepted"),
    "limit.bound_by": Spec("name", "what bounds the running requests: state-slots, tokens, request, default, seqs"),
    "request.refused_tokens": Spec("tokens", "length of the longest request that was refused"),
    "requests.failed_unexplained": Spec("requests", "answered with 5xx, while no line of the log tells of an error"),
    # speculation
    "spec.enabled": Spec("bool", "speculative decoding is configured"),
    "spec.method": Spec("name", "the speculative method, as resolved"),
    "spec.draft_tokens": Spec("count", "draft tokens per step"),
    "spec.steps": Spec("count", "speculative steps"),
    "spec.layers": Spec("layers", "MTP layers that the checkpoint brings"),
    "spec.acceptance": Spec("fraction", "accepted over drafted tokens"),
    "spec.accept_length": Spec("ratio", "mean tokens emitted per verify step, bonus token included"),
    "spec.drafted": Spec("tokens", "draft tokens in all"),
    "spec.accepted": Spec("tokens", "accepted draft tokens in all"),
    # vLLM only
    "sizing.consumed": Spec("bytes", "weights and memory outside the allocator together (vLLM 0.27 and later)", "max"),
    "sizing.peak_torch": Spec("bytes", "the allocator's peak while profiling, weights included (vLLM 0.6.4)", "max"),
    "sizing.suggested": Spec("bytes", "--kv-cache-memory that the engine suggests for its budget", "min"),
    "sizing.suggested_full": Spec("bytes", "--kv-cache-memory that the engine suggests for the whole device", "min"),
    "sizing.multimodal_reserve": Spec("bytes", "memory kept for the multimodal front end", "max"),
    "weights.checkpoint": Spec("bytes", "the whole checkpoint on disk, all ranks together"),
    "pool.user_bytes": Spec("bytes", "KV bytes given by the user (kv_cache_memory_bytes, VLLM_CPU_KVCACHE_SPACE)"),
    "pool.user_blocks": Spec("blocks", "KV blocks given by the user (num_gpu_blocks_override)"),
    "pool.profiled_blocks": Spec("blocks", "KV blocks that the profile would have given", "min"),
    "pool.swap_blocks": Spec("blocks", "blocks of the swap space in host memory (V0)", "min"),
    "pool.groups": Spec("count", "groups of layers that share the blocks"),
    "pool.padding_layers": Spec("layers", "layers added so that groups are equal"),
    "pool.padding_waste": Spec("fraction", "share of the pool that padding layers may waste, as printed", "max"),
    "pool.refused": Spec("bool", "no memory was left for any block"),
    "state.mode": Spec("name", "how recurrent states are cached for prefix reuse (none, align, all)"),
    "state.padding": Spec("fraction", "share by which a state is padded to an attention page"),
    "host.total": Spec("bytes", "memory of the host (NUMA node) that the CPU back end works in", "min"),
    "host.free": Spec("bytes", "memory of the host that was free when the CPU back end wanted its pool", "min"),
    "launch.differs": Spec("name", "arguments that processes (nodes) of one run were given differently"),
    "load.generated_rate": Spec("rate", "sum of the printed generation rates: above 0 if tokens were generated"),
    # failure (see analyzer/run: what the outcome rests on)
    "failure.exception": Spec("name", "class of the first cause"),
    "failure.message": Spec("name", "message of the first cause"),
    "failure.frames": Spec("name", "file:function of each frame of its traceback, innermost last"),
    "failure.headline": Spec("name", "the line of the message that says most, without its full stop"),
    "failure.kind": Spec("name", "exception, killed, watchdog, exit, elsewhere, program (not the engine's)"),
    "failure.text": Spec("name", "the whole record that shows it: head, frames, all exceptions of the chain"),
    "failure.cut": Spec("bool", "its traceback has no end in the log"),
    "failure.startup": Spec("bool", "it kept the server from serving"),
    "failure.assumed": Spec("bool", "no line tells whether the server had served before: that it had not is likelier"),
    "failure.engine_frame": Spec("name", "file:function of the innermost frame inside the engine"),
    "failure.raised_in": Spec("name", "file:function of the frame that raised"),
    "argument.refused": Spec("name", "the flag that the argument parser did not know"),
    "argument.near": Spec("name", "the engine's flag that was probably meant"),
    "argument.other_release": Spec("name", "the engine that takes the refused flag in some of its releases"),
    "argument.other_engine": Spec("name", "the engine whose flag the refused one is, where it is not this one's"),
    "leak.text": Spec("name", "the recount of a leak check: which pool balances, which does not"),
    "hang.where": Spec("name", "where the main thread of a process stood when its stacks were dumped"),
    "engine.init_seconds": Spec("seconds", "how long the engine took to size its pool, warm up and capture", "max"),
    "end.unfinished": Spec("name", "what was under way when the log ended without an end"),
    "end.waited": Spec("seconds", "how long that had been under way"),
    "failure.origin": Spec("name", "the process that raised it"),
    "failure.stage": Spec("name", "the stage in which it was raised"),
    "failure.exit_code": Spec("count", "the exit code of the process or container"),
    "container.health": Spec("name", "State.Health.Status: healthy, unhealthy or starting"),
    "container.exit_code": Spec("count", "State.ExitCode"),
    "container.oom_killed": Spec("bool", "State.OOMKilled"),
    "container.memory_limit": Spec("bytes", "HostConfig.Memory: host memory that its processes may use in all"),
    # other witnesses: Prometheus metrics, HTTP probes
    "metrics.running": Spec("requests", "requests running, by /metrics"),
    "metrics.waiting": Spec("requests", "requests waiting, by /metrics"),
    "metrics.max_running": Spec("requests", "most requests running in the range asked"),
    "metrics.max_waiting": Spec("requests", "most requests waiting in the range asked"),
    "metrics.kv_usage": Spec("fraction", "usage of the KV pool, by /metrics (the maximum of a range)"),
    "metrics.state_usage": Spec("fraction", "usage of the state slots, by /metrics"),
    "metrics.preemptions": Spec("count", "preemptions or retractions, by /metrics"),
    "metrics.pool_tokens": Spec("tokens", "KV pool in tokens, by /metrics or /server_info"),
    "metrics.blocks": Spec("blocks", "KV blocks, by /metrics"),
    "metrics.block_tokens": Spec("tokens_per_block", "tokens in one block, by /metrics"),
    "metrics.context": Spec("tokens", "context length served, by /metrics or /v1/models"),
    "metrics.generated": Spec("tokens", "tokens generated, by /metrics (the rise between two snapshots, if two)"),
    "metrics.drafts": Spec("count", "verify steps or drafts, by /metrics"),
    "metrics.drafted": Spec("tokens", "draft tokens, by /metrics"),
    "metrics.accepted": Spec("tokens", "accepted draft tokens, by /metrics"),
    "metrics.acceptance": Spec("fraction", "accepted over drafted tokens, by /metrics"),
    "metrics.accept_length": Spec("ratio", "mean tokens per verify step, bonus included, by /metrics"),
    "metrics.prefix_hit": Spec("fraction", "prefix cache hit rate, by /metrics"),
    "metrics.moved": Spec("bool", "counters of generated tokens rose between two snapshots"),
    "http.health": Spec("count", "status of /health; 0 when nothing answered"),
    "http.health_generate": Spec("count", "status of SGLang's /health_generate"),
    "http.lists_model": Spec("bool", "/v1/models names a model"),
    "http.model": Spec("name", "the model that /v1/models names"),
    "http.context": Spec("tokens", "max_model_len that /v1/models claims"),
    "http.generates": Spec("bool", "one short real generation succeeded"),
    "http.refused": Spec("count", "status with which a probe was refused: 401 and 403 want a token"),
    "http.error": Spec("name", "why a probe failed"),
    "profile.free_before": Spec("bytes", "free device memory before the profiling run, where it refused the figures"),
    "profile.free_after": Spec("bytes", "free device memory after it"),
    # an allocation that the device refused
    "oom.total": Spec("bytes", "the device's memory, as the message of an allocation that failed says"),
    "oom.free": Spec("bytes", "what was free on the device when an allocation failed"),
    "oom.own": Spec("bytes", "what the process itself held when its allocation failed"),
    "oom.foreign": Spec("bytes", "what other processes held then; a lower bound"),
    # runtime, summarised from the series
    "load.max_running": Spec("requests", "most requests seen running", "max"),
    "load.max_queue": Spec("requests", "most requests seen waiting", "max"),
    "load.max_usage": Spec("fraction", "highest usage of the KV pool seen", "max"),
    "load.retractions": Spec("count", "requests retracted or preempted", "sum"),
    "load.prefix_hit": Spec("fraction", "prefix cache hit rate, last"),
    "load.max_state_usage": Spec("fraction", "highest usage of the state slots seen", "max"),
    "load.max_swa_usage": Spec("fraction", "highest usage of the sliding-window pool seen", "max"),
    "load.retraction_events": Spec("count", "how often the scheduler retracted or preempted", "sum"),
    "load.samples": Spec("count", "runtime lines read", "sum"),
    "load.waiting_samples": Spec("count", "runtime lines with requests waiting", "sum"),
    "load.waiting_pool_low": Spec("count", "of these, lines with the pool less than half used", "sum"),
    "load.waiting_pool_full": Spec("count", "of these, lines with a pool at 90 % or more", "sum"),
    "load.running_when_waiting": Spec("requests", "most requests that ran while others waited on a half-empty pool"),
    "load.stalled_lines": Spec("count", "last runtime lines with the same requests running and no token at all"),
    "load.stalled_running": Spec("requests", "requests that ran then"),
    "load.broadcast_waits": Spec("count", "times a process waited a minute for a worker once the server had served"),
    "load.lookups_repeated": Spec("count", "times the KV store was asked for one and the same request"),
    "load.stuck_lines": Spec("count", "last runtime lines with requests waiting, none running and no token at all"),
    "load.stuck_queue": Spec("requests", "requests that waited then"),
    "load.engines": Spec("count", "data-parallel engines that printed runtime lines of their own"),
    "load.pressed_engine": Spec("name", "of several engines, the one that most often has requests waiting"),
    "load.pressed_lines": Spec("count", "its lines with requests waiting"),
    "load.pressed_waiting": Spec("fraction", "share of its lines under load with requests waiting"),
    "load.pressed_usage": Spec("fraction", "mean usage of its KV pool"),
    "load.pressed_running": Spec("requests", "mean number of requests that it runs"),
    "load.spare_engine": Spec("name", "of the others, the one whose KV pool is used least"),
    "load.spare_waiting": Spec("fraction", "share of its lines under load with requests waiting"),
    "load.spare_usage": Spec("fraction", "mean usage of its KV pool; at times without a line it is idle"),
    "load.spare_running": Spec("requests", "mean number of requests that it runs"),
    "load.max_swapped": Spec("requests", "most requests whose KV was moved to the host (V0)", "max"),
    "load.full_samples": Spec("count", "runtime lines with a KV pool at 95 % or more", "sum"),
    "load.decode_lines": Spec("count", "decode lines with requests running", "sum"),
    "load.decode_samples": Spec("count", "decode lines of the commonest batch size, without those after a pause"),
    "load.decode_rate_best": Spec("rate", "best decode rate of one request at the commonest batch size"),
    "load.decode_rate_mean": Spec("rate", "mean decode rate of one request at the commonest batch size"),
    "load.decode_rate_last": Spec("rate", "last decode rate of one request at the commonest batch size"),
    "spec.accept_length_mean": Spec("ratio", "mean of the printed accept lengths"),
    "spec.accept_samples": Spec("count", "runtime lines that print an accept length"),
    "spec.accept_length_short": Spec("ratio", "mean accept length at the shortest contexts seen"),
    "spec.accept_length_long": Spec("ratio", "mean accept length at the longest contexts seen"),
    "spec.accept_long_context": Spec("tokens", "tokens per request from which spec.accept_length_long was taken"),
    "spec.collapsed_lines": Spec("count", "last decode lines that accept no draft token, after sound ones"),
    "spec.accept_length_before": Spec("ratio", "mean accept length before those lines"),
    "spec.accept_length_early": Spec("ratio", "mean accept length in the first third of the lines that print one"),
    "spec.accept_length_middle": Spec("ratio", "mean accept length in the second third"),
    "spec.accept_length_late": Spec("ratio", "mean accept length in the last third"),
}

PACKAGE_CHECKS = {
    "unreadable": "weight files whose header is refused or that cannot be read",
    "truncated": "weight files that are shorter than their header says",
    "missing_shards": "members of a numbered series of files that are not there",
    "index_missing_files": "files that the index names and the folder lacks",
    "unindexed_files": "weight files that the index does not name",
    "index_missing_tensors": "tensors that the index places in a file which lacks them",
    "unindexed_tensors": "tensors of the files that the index does not name",
    "mtp_unindexed": "1 if MTP tensors exist and the index hides them",
    "mtp_missing": "1 if MTP layers are declared or indexed and no file holds them",
    "mtp_undeclared": "1 if MTP tensors exist and no config field counts them",
    "mtp_count": "1 if the config counts other MTP layers than the files hold",
    "shapes": "tensors whose shape contradicts config.json",
    "missing_layers": "hidden layers without any tensor",
    "missing_tensors": "modules that a layer lacks and most layers of its kind have",
    "twins": "modules that hold both a plain and a packed weight",
    "undeclared": "packed modules though no quantisation is declared",
    "declared_but_plain": "plain modules though quantisation is declared and nothing is packed",
    "ignore_prefix": "entries of the ignore list whose names carry another prefix than the tensors",
    "ignore_unmatched": "entries of the ignore list that match no module under any prefix",
    "ignored_but_packed": "modules that the ignore list declares plain and the files hold packed",
    "packed_expected": "plain modules that nothing declares plain in a package that is otherwise packed",
    "kernel_dims": "packed modules with a dimension that is no multiple of 64",
}
"""What analyzer/evidence/consistency.py counts in a model folder."""
for _name, _meaning in PACKAGE_CHECKS.items():
    VOCABULARY[f"package.{_name}"] = Spec("count", _meaning)
    VOCABULARY[f"package.{_name}_examples"] = Spec("name", f"some of the {_meaning}")


def spec_of(name: str) -> Spec:
    """The spec of fact ``name``; ``KeyError`` if the vocabulary does not have it."""
    if (spec := VOCABULARY.get(name)) is not None:
        return spec
    for prefix, spec in OPEN_PREFIXES.items():
        if name.startswith(prefix):
            return spec
    raise KeyError(f"{name!r} is not in the fact vocabulary (analyzer/run/vocabulary.py)")
