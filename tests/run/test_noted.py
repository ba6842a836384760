"""Tracebacks that the engine caught: written down as a warning, or raised beside its loop."""

from __future__ import annotations

from tests.vllm.read import line, read

_IMPORT = """Module vllm.third_party.deep_gemm was found but failed to import
Traceback (most recent call last):
  File "/usr/lib/python3/site-packages/vllm/utils/import_utils.py", line 406, in _has_module
    importlib.import_module(module_name)
  File "/usr/lib/python3/site-packages/vllm/third_party/deep_gemm/__init__.py", line 117, in _find_cuda_home
    assert cuda_home is not None
AssertionError"""
_START = line("Available KV cache memory: 41.01 GiB") + line("GPU KV cache size: 1,343,840 tokens")
_NVCC = """EngineCore failed to start.
Traceback (most recent call last):
  File "/usr/lib/python3/site-packages/vllm/v1/engine/core.py", line 1164, in run_engine_core
    engine_core = EngineCoreProc(*args, **kwargs)
  File "/usr/lib/python3/site-packages/flashinfer/jit/cpp_ext.py", line 61, in get_cuda_path
    raise RuntimeError(
RuntimeError: Could not find nvcc and default cuda_home='/usr/local/cuda' doesn't exist"""
_HANDSHAKE = """NIXL transfer failure: handshake_setup_failed | Context: {'request_id': None}
Traceback (most recent call last):
  File "/usr/lib/python3/vllm/distributed/kv_transfer/kv_connector/v1/nixl_connector.py", line 1261, in done_callback
    self._remote_agents[eid] = f.result()
  File "/usr/lib/python3/concurrent/futures/_base.py", line 449, in result
    return self.__get_result()"""


def _logged(text: str, level: str) -> str:
    return "".join(line(part, level=level) for part in text.split("\n"))


def test_a_traceback_written_as_a_warning_is_no_request_that_failed() -> None:
    run = read(_START + _logged(_IMPORT, "WARNING") + line("Graph capturing finished in 1 secs, took 0.33 GiB"))
    assert run.failure is None
    assert not any(failure.request_level for failure in run.failures)


def test_a_traceback_written_as_a_warning_is_not_the_cause_beside_a_real_one() -> None:
    run = read(_START + _logged(_IMPORT, "WARNING") + _logged(_NVCC, "ERROR"))
    assert run.failure is not None
    assert run.failure.exception == "RuntimeError"


def test_the_level_decides() -> None:
    assert read(_logged(_IMPORT, "WARNING")).failure is None
    assert read(_logged(_IMPORT, "ERROR")).failure is not None


def test_what_fails_beside_the_loop_in_a_connector_ends_no_server() -> None:
    whole = _logged(_HANDSHAKE + "\nKeyError: 'c92321f8'", "ERROR")
    for text in (whole, _logged(_HANDSHAKE, "ERROR")):
        run = read(text)
        assert run.failure is None
        assert run.outcome == "unknown"


def test_the_same_in_the_engines_loop_ends_it() -> None:
    loop = _HANDSHAKE.replace("in done_callback", "in start_load_kv").replace("in result", "in run_busy_loop")
    run = read(_logged(loop.split("\n", 1)[1] + "\nKeyError: 'c92321f8'", "ERROR"))
    assert run.outcome == "crashed at runtime"


_ENTRY = """Traceback (most recent call last):
  File "/usr/lib/python3.12/multiprocessing/process.py", line 314, in _bootstrap
    self.run()
  File "/usr/lib/python3/site-packages/vllm/v1/engine/core.py", line 940, in run_engine_core
    raise e"""
_BACKGROUND = (
    "Exception: WorkerProc initialization failed due to an exception in a background process. "
    "See stack trace for root cause."
)


def _printed(text: str) -> str:
    return "".join(f"(EngineCore_DP0 pid=77) {part}\n" for part in text.split("\n"))


def test_a_cut_repetition_at_the_processs_edge_hides_nothing() -> None:
    told = _logged(_NVCC.partition("\nRuntimeError")[0] + "\n" + _BACKGROUND, "ERROR")
    run = read(told + _printed(_ENTRY))
    assert run.failure is not None
    assert run.failure.kind == "elsewhere"
    assert not run.failure.cut


def test_the_headline_of_the_engine_tells_start_from_service() -> None:
    told = _NVCC.replace("EngineCore failed to start.", "EngineCore encountered a fatal error.")
    assert read(_START + _logged(_NVCC, "ERROR")).outcome == "crashed at startup"
    assert read(_START + _logged(told, "ERROR")).outcome == "crashed at runtime"


_TEARDOWN = """Traceback (most recent call last):
  File "/x/site-packages/vllm/distributed/parallel_state.py", line 750, in destroy
    torch.distributed.destroy_process_group(self.device_group)
  File "/x/site-packages/torch/distributed/distributed_c10d.py", line 1845, in {}
    backend._shutdown()
torch.distributed.DistBackendError: NCCL error in: x.cpp:133, remote process exited or there was a network error"""


def test_ranks_that_are_gone_when_a_process_gives_up_are_no_cause() -> None:
    front = "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}\n"
    run = read(_START + _printed(_TEARDOWN.format("_shutdown_backend")) + front)
    assert run.failure is not None
    assert run.failure.kind == "elsewhere"
    run = read(_START + _printed(_TEARDOWN.format("all_reduce")) + front)
    assert run.failure is not None
    assert run.failure.exception == "torch.distributed.DistBackendError"


def test_alone_it_is_all_there_is() -> None:
    run = read(_printed(_ENTRY))
    assert run.failure is not None
    assert run.failure.cut


_FAULT = """step failed
Traceback (most recent call last):
  File "/usr/lib/python3/site-packages/vllm/v1/worker/gpu_model_runner.py", line 1190, in execute_model
    torch.cuda.synchronize()
RuntimeError: CUDA error: an illegal memory access was encountered"""


def test_a_fault_of_the_device_that_was_only_noted_explains_the_death_behind_it() -> None:
    died = line("Engine core proc EngineCore_DP0 died unexpectedly, shutting down client.", level="ERROR")
    run = read(_START + _logged(_FAULT, "WARNING") + died)
    assert run.failure is not None
    assert run.failure.exception == "RuntimeError"
    run = read(_START + _logged(_IMPORT, "WARNING") + died)
    assert run.failure is not None
    assert run.failure.kind == "killed"
    assert read(_START + _logged(_FAULT, "WARNING")).failure is None
