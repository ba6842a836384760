# ruff: noqa: E501  (messages are quoted whole)
"""Texts that servers really end with, and the cause code each must get: one traceback in a start-up or serving log."""

from __future__ import annotations

from functools import cache

import pytest

from analyzer.diagnosis import RuleSet
from tests.run.helpers import only

VLLM_START = "(APIServer pid=1) INFO 11-30 01:59:00 [utils.py:1] non-default args: {'model': '/m'}\n"
VLLM_READY = VLLM_START + "(APIServer pid=1) INFO:     Application startup complete.\n"
SGLANG_START = "[2026-01-01 10:00:00] server_args={'model_path': '/m'}\n"
SGLANG_READY = SGLANG_START + "[2026-01-01 10:01:00] The server is fired up and ready to roll!\n"


@cache
def rules() -> RuleSet:
    return RuleSet.load(())


def vllm(frames: str, last: str, *, ready: bool = False) -> str:
    head = "EngineCore encountered a fatal error." if ready else "EngineCore failed to start."
    lines = [head, "Traceback (most recent call last):"]
    lines += [f'  File "/site-packages/vllm/v1/x.py", line 1, in {name}' for name in frames.split()]
    prefix = "(EngineCore pid=9) ERROR 11-30 02:00:01 [core.py:1] "
    return (VLLM_READY if ready else VLLM_START) + "".join(f"{prefix}{line}\n" for line in [*lines, *last.split("\n")])


def sglang(frames: str, last: str, *, ready: bool = False) -> str:
    text = SGLANG_READY if ready else SGLANG_START
    text += "[2026-01-01 10:02:00 TP0] Scheduler hit an exception: Traceback (most recent call last):\n"
    text += "".join(f'  File "/sglang/srt/managers/scheduler.py", line 1, in {name}\n' for name in frames.split())
    return (
        text
        + last
        + "\n\n[2026-01-01 10:02:01] Received sigquit from a child process. It usually means the child failed.\n"
    )


OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.10 GiB of which 1.10 GiB is free."
CASES = [
    # start-up: memory
    (vllm("_initialize_kv_caches", "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization`"), "fail-no-kv-memory"),
    (vllm("init_device", "ValueError: Free memory on device (10.1/23.5 GiB) on startup is less than desired GPU memory utilization (0.9, 21.2 GiB)."), "fail-free-below-target"),
    (vllm("determine_available_memory profile_run _dummy_run", OOM), "fail-oom-profile"),
    (vllm("load_model load_weights", OOM), "fail-oom-load"),
    (vllm("initialize_from_config initialize_kv_cache _allocate_kv_cache_tensors", OOM), "fail-oom-pool"),
    (vllm("compile_or_warm_up_model capture_model _dummy_run", OOM), "fail-oom-after-pool"),
    (vllm("compile_or_warm_up_model _dummy_sampler_run", "RuntimeError: CUDA out of memory occurred when warming up sampler with 256 dummy requests."), "fail-oom-after-pool"),
    (sglang("__init__ load_model", OOM), "fail-oom-load"),
    (sglang("__init__ init_memory_pool _create_buffers", OOM), "fail-oom-pool"),
    (sglang("__init__ init_memory_pool", "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static."), "fail-no-kv-memory"),
    (sglang("__init__ init_device_graphs", "Exception: Capture cuda graph failed: CUDA out of memory. Tried to allocate 1.20 GiB.\nPossible solutions:\n1. set --mem-fraction-static"), "fail-oom-after-pool"),
    (sglang("__init__ init_torch_distributed", "ValueError: The memory capacity is unbalanced. Some GPUs may be occupied by other processes."), "fail-memory-imbalance"),
    # start-up: model, weights, quantization, kernels
    (vllm("load_model", "ValueError: Model architectures ['FooForCausalLM'] are not supported for now. Supported architectures: dict_keys([])"), "fail-model-unsupported"),
    (vllm("create_engine_config", "ValueError: The checkpoint you are trying to load has model type `foo` but Transformers does not recognize this architecture."), "fail-model-unsupported"),
    (vllm("load_model load_weights", "KeyError: 'layers.0.mlp.experts.w2_weight_scale_inv'"), "fail-quantization-mismatch"),
    (vllm("load_model load_weights", "KeyError: 'lm_head.weight'"), "fail-weights-mismatch"),
    (vllm("load_model weight_loader", "RuntimeError: The size of tensor a (2048) must match the size of tensor b (4096) at non-singleton dimension 0"), "fail-weights-mismatch"),
    (vllm("load_model load_weights", "safetensors_rust.SafetensorError: Error while deserializing header: MetadataIncompleteBuffer"), "fail-weights-missing"),
    (vllm("load_model", "RuntimeError: Cannot find any model weights with `/models/x`"), "fail-weights-missing"),
    (vllm("create_model_config", "ValueError: Unknown quantization method: foo. Must be one of ['awq']"), "fail-quantization-mismatch"),
    (vllm("load_model", "ValueError: The quantization method modelopt_fp4 is not supported for the current GPU. Minimum capability: 100. Current capability: 89."), "fail-kernel-unsupported"),
    (vllm("get_attn_backend", "ValueError: Head size 80 is not supported by FlashAttention. Supported head sizes are: [32, 64]."), "fail-kernel-unsupported"),
    (vllm("_check_if_gpu_supports_dtype", "ValueError: Bfloat16 is only supported on GPUs with compute capability of at least 8.0. Your Tesla T4 GPU has compute capability 7.5."), "fail-kernel-unsupported"),
    (sglang("forward", "RuntimeError: CUDA error: no kernel image is available for execution on the device"), "fail-kernel-unsupported"),
    (vllm("_dummy_run", "torch._dynamo.exc.BackendCompilerFailed: backend='<vllm.compilation>' raised:\nCalledProcessError: Command '['/usr/bin/gcc']' returned non-zero exit status 1."), "fail-compile"),
    (vllm("_dummy_run", "RuntimeError: Failed to find C compiler. Please specify via CC environment variable or set triton.knobs.build.impl."), "fail-compile"),
    (vllm("_dummy_run", "triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 131072, Hardware limit: 101376."), "fail-device-limit"),
    # start-up: environment
    (vllm("load_model", "ModuleNotFoundError: No module named 'flash_attn'"), "fail-dependency"),
    (vllm("load_model", "ImportError: /site-packages/vllm/_C.abi3.so: undefined symbol: _ZN3c104cuda9SetDeviceEi"), "fail-dependency"),
    (vllm("init_device", "RuntimeError: The NVIDIA driver on your system is too old (found version 12020)."), "fail-dependency"),
    (vllm("__init__", "RuntimeError: Failed to infer device type, please set the environment variable `VLLM_LOGGING_LEVEL=DEBUG`"), "fail-dependency"),
    (vllm("init_device", "RuntimeError: CUDA error: invalid device ordinal"), "fail-device-count"),
    (vllm("initialize_ray_cluster", "ValueError: The number of required GPUs exceeds the total number of available GPUs in the placement group."), "fail-device-count"),
    (vllm("__init__", "OSError: [Errno 98] Address already in use"), "fail-port"),
    (vllm("init_device init_process_group", "torch.distributed.DistNetworkError: The client socket has timed out after 600000ms while trying to connect to (10.0.0.1, 29500)."), "fail-network"),
    (vllm("init_device all_reduce", "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1691, unhandled system error\nLast error:\nError while creating shared memory segment /dev/shm/nccl-v2 (size 9637888)"), "fail-shared-memory"),
    (vllm("load_model", "OSError: [Errno 28] No space left on device: '/root/.cache/vllm/x'"), "fail-disk"),
    (vllm("create_engine_config", "OSError: /models/foo is not a local folder and is not a valid model identifier listed on 'https://huggingface.co/models'"), "fail-path"),
    (vllm("create_engine_config", "OSError: You are trying to access a gated repo.\nMake sure to have access to it. 401 Client Error."), "fail-download"),
    (vllm("create_engine_config", "OSError: We couldn't connect to 'https://huggingface.co' to load the files, and couldn't find them in the cached files."), "fail-download"),
    (vllm("create_engine_config", "ValueError: User-specified max_model_len (131072) is greater than the derived max_model_len (max_position_embeddings=32768)."), "fail-argument"),
    (vllm("create_engine_config", "ValueError: Total number of attention heads (28) must be divisible by tensor parallel size (8)."), "fail-argument"),
    (vllm("create_engine_config", "ValueError: Loading /m requires you to execute the configuration file in that repo on your local machine. Please set the option `trust_remote_code=True` to remove this error."), "fail-argument"),
    (vllm("create_engine_config", "NotImplementedError: Speculative decoding is not supported with pipeline parallelism"), "fail-unsupported-combination"),
    (vllm("_dummy_run", "torch.AcceleratorError: CUDA error: an illegal memory access was encountered"), "fail-gpu-fault"),
    (vllm("collective_rpc", "TimeoutError: RPC call to init_device timed out."), "fail-hang"),
    (vllm("_dummy_run", "RuntimeError: something that nobody has seen before"), "fail-engine-bug"),
    (sglang("__init__ load_model", "AttributeError: 'FooConfig' object has no attribute 'rope_theta'"), "fail-engine-bug"),
    # while serving
    (vllm("run_busy_loop execute_model", OOM, ready=True), "crash-oom"),
    (vllm("run_busy_loop execute_model", "torch.AcceleratorError: CUDA error: an illegal memory access was encountered", ready=True), "crash-gpu-fault"),
    (vllm("run_busy_loop execute_model", "RuntimeError: CUDA error: device-side assert triggered", ready=True), "crash-gpu-fault"),
    (vllm("run_busy_loop execute_model", "TimeoutError: RPC call to execute_model timed out.", ready=True), "crash-watchdog"),
    (vllm("run_busy_loop execute_model", "ModuleNotFoundError: No module named 'cupy'", ready=True), "crash-dependency"),
    (vllm("run_busy_loop schedule", "AssertionError", ready=True), "crash-engine-bug"),
    (sglang("event_loop_overlap run_batch", "RuntimeError: [gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.2]:1234", ready=True), "crash-network"),
    (sglang("event_loop_overlap get_next_batch_to_run", "AssertionError: Not enough space for mamba cache, try to increase --max-mamba-cache-size.", ready=True), "crash-state-slots"),
    (sglang("event_loop_normal self_check_during_idle", "ValueError: token_to_kv_pool_allocator memory leak detected! available_size=1, total_size=2", ready=True), "crash-pool-leak"),
    (sglang("event_loop_normal run_batch", "RuntimeError: Decode out of memory. Try to lower your batch size.", ready=True), "crash-oom"),
    (sglang("event_loop_normal process_batch_result", "IndexError: list index out of range", ready=True), "crash-engine-bug"),
    # lines without an exception
    (VLLM_READY + "(APIServer pid=1) ERROR 11-30 02:00:01 [x.py:1] Engine core proc EngineCore_DP0 died unexpectedly, shutting down client.\n", "crash-killed"),
    (SGLANG_READY + "[2026-01-01 10:02:00] Subprocess scheduler_0 (pid=7) crashed with exit code -9. Triggering SIGQUIT for cleanup...\n", "crash-killed"),
    (SGLANG_READY + "[2026-01-01 10:02:00] Subprocess scheduler_0 (pid=7) crashed with exit code -11. Triggering SIGQUIT for cleanup...\n", "crash-native-fault"),
    (SGLANG_READY + "[2026-01-01 10:02:00 TP0] Watchdog timeout (self.watchdog_timeout=300)\n", "crash-watchdog"),
    (SGLANG_READY + "[2026-01-01 10:02:00] Received sigquit from a child process. It usually means the child failed.\n", "elsewhere"),
]  # fmt: skip


@pytest.mark.parametrize(("log", "cause"), CASES, ids=[f"{i}-{cause}" for i, (_, cause) in enumerate(CASES)])
def test_cause_of_a_failure(log: str, cause: str) -> None:
    run = only(log)
    judgement = rules().judge(run, None)
    named = [finding for finding in judgement.findings if finding.failure]
    assert [finding.cause for finding in named] == [cause], f"{run.outcome}: {run.failure}"
    assert named[0].evidence
    assert judgement.failure_rule == named[0].rule
