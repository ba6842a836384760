# ruff: noqa: E501  (messages are quoted whole)
"""What a server outlives, what only hinders it, and failures of its warm-up."""

from __future__ import annotations

import pytest

from tests.run.helpers import only

THREAD = """\
[2025-08-17 19:34:27 TP0] Prefill batch. #new-seq: 1, #new-token: 2048, #cached-token: 0, token usage: 0.02, #running-req: 0, #queue-req: 0,
Exception in thread Thread-13 (backup_thread_func):
Traceback (most recent call last):
  File "/usr/lib/python3.10/threading.py", line 1016, in _bootstrap_inner
    self.run()
  File "/s/sglang/srt/managers/cache_controller.py", line 912, in backup_thread_func
    self.page_backup(operation)
AssertionError
"""
UNHEALTHY = """\
[2025-09-25 05:42:53 TP0] Decode batch. #running-req: 3, #token: 90211, token usage: 0.22, cuda graph: True, gen throughput (token/s): 66.29, #queue-req: 0,
[2025-09-25 05:49:34] Health check failed. Server couldn't get a response from detokenizer for last 20 seconds. tic start time: 05:49:14. last_heartbeat time: 05:42:53
"""
WARMING = """\
[2025-08-29 20:35:49] INFO:     Application startup complete.
[2025-08-29 20:35:49] INFO:     Uvicorn running on http://127.0.0.1:8000 (Press CTRL+C to quit)
[2025-08-29 20:35:50 DP0 TP0 EP0 PP0] Prefill batch. #new-seq: 1, #new-token: 6, #cached-token: 0, token usage: 0.00, #running-req: 0, #queue-req: 0,
[2025-08-29 20:35:50 DP1 TP1 EP1 PP0] Prefill batch. #new-seq: 1, #new-token: 6, #cached-token: 0, token usage: 0.00, #running-req: 0, #queue-req: 0,
[2025-08-29 20:35:50 DP2 TP2 EP2 PP0] Prefill batch. #new-seq: 1, #new-token: 6, #cached-token: 0, token usage: 0.00, #running-req: 0, #queue-req: 0,
{ready}[2025-08-29 20:35:50 DP2 TP2 EP2 PP0] Scheduler hit an exception: Traceback (most recent call last):
  File "/s/sglang/srt/managers/scheduler.py", line 2582, in run_scheduler_process
    scheduler.event_loop_pp()
RuntimeError: The size of tensor a (4) must match the size of tensor b (8) at non-singleton dimension 0
"""


def test_a_thread_that_ends_does_not_end_the_server() -> None:
    run = only(THREAD)
    assert (run.outcome, run.failure) == ("serving", None)
    assert [f.request_level for f in run.failures] == [True]


def test_a_thread_that_ends_is_the_cause_of_a_death_after_it() -> None:
    run = only(THREAD + "[2025-08-17 19:40:27] Watchdog timeout (self.watchdog_timeout=300)\n")
    assert run.failure is not None
    assert (run.outcome, run.failure.exception) == ("crashed at runtime", "AssertionError")


def test_a_failed_health_check_ends_nothing() -> None:
    run = only(UNHEALTHY)
    assert run.failure is not None
    assert (run.outcome, run.failure.exception) == ("degraded", "health check failed")
    stopped = only(
        UNHEALTHY
        + "[2025-09-25 05:50:01] SIGTERM received. signum=None frame=None. Draining requests and shutting down...\n"
    )
    assert stopped.outcome == "crashed at runtime"


def test_a_batch_of_each_rank_before_it_is_ready_is_the_warm_up() -> None:
    assert only(WARMING.format(ready="")).outcome == "crashed at startup"
    ready = "[2025-08-29 20:35:50] The server is fired up and ready to roll!\n"
    assert only(WARMING.format(ready=ready)).outcome == "crashed at runtime"


def test_a_lone_line_of_a_library_ends_no_server_that_the_log_shows() -> None:
    run = only("CUDA error (/build/csrc/x.cu:97): an illegal memory access was encountered\n")
    assert run.failure is not None
    assert (run.engine, run.outcome) == (None, "unknown")


def test_a_failed_capture_that_quotes_its_error_is_no_error_elsewhere() -> None:
    text = "[2026-05-28 02:12:03 TP0] Piecewise CUDA Graph failed with error: CUDA error: an illegal memory access was encountered\n"
    run = only(text)
    assert run.failure is not None
    assert (run.outcome, run.failure.kind) == ("crashed at startup", "exit")


def test_a_warm_up_thread_that_fails_is_a_failed_start() -> None:
    text = (
        "server_args=ServerArgs(model_path='m', port=30000, mem_fraction_static=0.88)\n"
        "Traceback (most recent call last):\n"
        '  File "/usr/lib/python3.11/threading.py", line 1045, in _bootstrap_inner\n    self.run()\n'
        '  File "/p/sglang/srt/server.py", line 410, in _wait_and_warmup\n    model_info = res.json()\n'
        "requests.exceptions.JSONDecodeError: Expecting value: line 1 column 1 (char 0)\n"
    )
    assert only(text).outcome == "crashed at startup"


def test_a_collapse_of_acceptance_counts_only_at_the_end() -> None:
    line = (
        "[2026-08-28 10:00:{second:02d} TP0] Decode batch, #running-req: 1, #token: 900, token usage: 0.02, "
        "accept len: {length:.2f}, accept rate: 0.50, cuda graph: True, gen throughput (token/s): 50.00, #queue-req: 0\n"
    )

    def lines(*lengths: float) -> str:
        return "".join(line.format(second=at, length=length) for at, length in enumerate(lengths))

    run = only(lines(3.1, 3.2, 3.0, 1.0, 1.0, 1.0, 1.0))
    assert run.facts.value("spec.collapsed_lines") == 4
    assert run.facts.value("spec.accept_length_before") == pytest.approx(3.1)
    assert only(lines(3.1, 3.2, 3.0, 1.0, 1.0, 3.0)).facts.value("spec.collapsed_lines") is None
    assert only(lines(1.0, 1.0, 1.0, 1.0)).facts.value("spec.collapsed_lines") is None


def test_a_long_prompt_before_the_ready_line_is_no_warm_up() -> None:
    text = (
        "[2026-02-09 02:30:50] Load weight begin. avail mem=78.58 GB\n"
        "[2026-02-09 02:30:56] Prefill batch, #new-seq: 1, #new-token: {tokens}, #cached-token: 0, token usage: 0.00, #running-req: 0, #queue-req: 0,\n"
        "[2026-02-09 02:30:57] Scheduler hit an exception: Traceback (most recent call last):\n"
        '  File "/s/sglang/srt/managers/scheduler.py", line 2890, in run_scheduler_process\n    scheduler.event_loop_overlap()\n'
        "RuntimeError: x\n"
    )
    assert only(text.format(tokens=384)).outcome == "crashed at runtime"
    assert only(text.format(tokens=6)).outcome == "crashed at startup"


COMPILED_STACK = """\
  File "<unknown>", line 0, in Py_RunMain
  File "<unknown>", line 0, in _start
  File "<unknown>", line 0, in 0xffffffffffffffff
Traceback (most recent call last):
  File "/s/sglang/srt/entrypoints/engine.py", line 1340, in _wait_for_scheduler_ready
    data = scheduler_pipe_readers[i].recv()
EOFError
During handling of the above exception, another exception occurred:
Traceback (most recent call last):
  File "/s/sglang/srt/entrypoints/engine.py", line 1350, in _wait_for_scheduler_ready
    raise RuntimeError(
RuntimeError: Rank 0 scheduler died during initialization (exit code: -6). If exit code is -9 (SIGKILL), a common cause is the OS OOM killer.
"""


def test_a_stack_of_compiled_code_is_no_cut_traceback() -> None:
    run = only(COMPILED_STACK)
    assert run.outcome == "crashed at startup"
    assert run.failure is not None
    assert (run.failure.cut, run.failure.exception) == (False, "RuntimeError")


CAUGHT_IN_TRANSFER = """\
[2026-09-03 10:00:01] The server is fired up and ready to roll!
Unexpected transfer worker error for room 1788380104266545413
Traceback (most recent call last):
  File "/s/sglang/srt/disaggregation/nixl/conn.py", line 1153, in transfer_worker
    state_xfer_handles = self.maybe_send_extra(
  File "/s/sglang/srt/disaggregation/nixl/conn.py", line 2062, in maybe_send_extra
    raise RuntimeError(
RuntimeError: PD Disaggregation does NOT support PD different TP sizes for non-MLA SWA models yet.
"""


def test_what_the_sending_thread_catches_is_a_request_s() -> None:
    run = only(CAUGHT_IN_TRANSFER)
    assert (run.outcome, run.failure) == ("serving", None)
    assert [f.request_level for f in run.failures] == [True]


def test_an_unnamed_process_is_of_no_engine() -> None:
    run = only(
        'Process Process-1:\nTraceback (most recent call last):\n  File "/x/sglang/srt/server.py", line 1, in f\nValueError: x\n'
    )
    assert run.engine == "sglang"


def test_only_a_line_that_begins_with_it_tells_of_a_handshake_of_the_connector() -> None:
    stats = "INFO 08-01 03:00:07 [loggers.py:236] Engine 000: Avg prompt throughput: 1.0 tokens/s, Avg generation throughput: 9.0 tokens/s, Running: 1 reqs, Waiting: 0 reqs, GPU KV cache usage: 1.0%, Prefix cache hit rate: 0.0%\n"
    said = "Handshake with c00824be-282f-4719-9aeb-120dcb516863 failed\n"
    assert only(f"{stats}ERROR 08-01 03:00:08 [nixl_connector.py:1192] {said}").kinds["kv_transfer_failed"] == 1
    assert "kv_transfer_failed" not in only(f"{stats}proxy: upstream says: {said}").kinds


_SERVING = "INFO 08-01 03:00:07 [loggers.py:236] Engine 000: Avg prompt throughput: 1.0 tokens/s, Avg generation throughput: 9.0 tokens/s, Running: 1 reqs, Waiting: 0 reqs, GPU KV cache usage: 1.0%, Prefix cache hit rate: 0.0%\n"
_RAY = "(raylet) A worker died or was killed while executing a task by an unexpected system error. To troubleshoot the problem, check the logs for the dead worker.\n"


@pytest.mark.parametrize(
    "said",
    [
        "CUDA error (csrc/x.cu:97): an illegal memory access was encountered",
        "nvshmem initialization failed, exiting",
        "Abort was called at 84 line in file:",
    ],
)
def test_what_another_program_quotes_ends_no_server(said: str) -> None:
    run = only(f"{_SERVING}client says: {said}\n")
    assert (run.outcome, run.failure) == ("serving", None)


def test_a_task_of_ray_that_died_beside_a_server_that_goes_on() -> None:
    assert only(_SERVING + _RAY + _SERVING).failure is None
    run = only(_SERVING + _RAY)
    assert run.failure is not None
    assert run.failure.kind == "elsewhere"
