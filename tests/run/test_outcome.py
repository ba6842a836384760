# ruff: noqa: E501  (messages are quoted whole)
"""Outcome and cause from evidence, on whole real logs and on short ones made from real lines."""

from __future__ import annotations

import pytest

from analyzer.run.facts import Fact, Where
from analyzer.run.model import Run, headline
from analyzer.run.outcome import refine_outcome, weigh_witnesses
from tests.run.helpers import SAMPLES, folded, only

REAL = [
    # sample, outcome, exception or label, a line of the proof
    ("vllm_0.32.0_kill_engine_busy", "crashed at runtime", "engine process died", 106),
    ("vllm_0.32.0_kill_worker_tp2b", "crashed at runtime", "worker died", 119),
    ("vllm_0.32.0_hybrid_gdn_crash", "crashed at runtime", "RuntimeError", 186),
    ("vllm_0.32.0_eagle_bad_arch", "crashed at startup", "ValidationError", 54),
    ("vllm_0.10.2_quant_mismatch", "crashed at startup", "ValidationError", 53),
    ("vllm_0.18.1_kv_too_small_hf", "crashed at startup", "ValueError", 68),
    ("vllm_0.32.0_kv_space_oom", "crashed at startup", "ValueError", 55),
    ("sglang_0.5.23_kill_scheduler", "crashed at runtime", "process died", 80),
    ("sglang_0.5.23_bad_path", "crashed at startup", "HFValidationError", 16),
    ("sglang_0.5.23_ngram_spec", "crashed at startup", "IndexError", 157),
    ("sglang_0.5.23_tp2", "crashed at startup", "AssertionError", 46),
    ("sglang_0.5.23_ctx_over", "crashed at startup", "ValueError", 35),
    ("sglang_0.5.17_dense_too_small_mf", "crashed at startup", "ValueError", 49),
    ("sglang_0.5.17_hybrid_qwen35_nextn_missing_deep_gemm", "crashed at startup", "ModuleNotFoundError", 76),
    ("sglang_0.5.17_dense_kill_scheduler", "crashed at runtime", "process died", 46),
]
HEALTHY = ["vllm_0.24.0_normal", "vllm_0.13.0_sigterm_busy", "vllm_0.32.0_api_errors"]


@pytest.mark.parametrize(("name", "outcome", "exception", "line"), REAL)
def test_real_failures(name: str, outcome: str, exception: str, line: int) -> None:
    run = only((SAMPLES / "failures" / f"{name}.log").read_bytes())
    assert run.outcome == outcome
    assert run.failure is not None
    assert run.failure.exception.endswith(exception)
    assert any(abs(w.line - line) <= 2 for w in run.failure.where)


@pytest.mark.parametrize("name", HEALTHY)
def test_a_stop_that_looks_violent_is_a_stop(name: str) -> None:
    run = only((SAMPLES / "failures" / f"{name}.log").read_bytes())
    assert (run.outcome, run.failure) == ("stopped", None)


@pytest.mark.parametrize("name", [*(n for n, *_ in REAL), *HEALTHY])
def test_a_cut_log_never_claims_what_comes_later(name: str) -> None:
    """At every tenth line: no crash of the program, no failure before the first line that shows one."""
    lines = (SAMPLES / "failures" / f"{name}.log").read_bytes().split(b"\n")
    whole = only(b"\n".join(lines))
    first = min((f.first_line for f in whole.failures), default=len(lines) + 1)
    for cut in range(10, len(lines), 10):
        runs = folded(b"\n".join(lines[:cut]))
        for run in runs:
            assert all(w.line <= cut for f in run.failures for w in f.where)
            if cut < first:
                assert run.failure is None, f"cut at {cut}"
                assert not run.outcome.startswith("crashed")


ENGINE_DEAD = (
    "(APIServer pid=1) ERROR 11-30 02:00:05 [async_llm.py:700] AsyncLLM output_handler failed.\n"
    "(APIServer pid=1) ERROR 11-30 02:00:05 [async_llm.py:700] Traceback (most recent call last):\n"
    '(APIServer pid=1) ERROR 11-30 02:00:05 [async_llm.py:700]   File "/vllm/v1/engine/async_llm.py", line 5, in output_handler\n'
    "(APIServer pid=1) ERROR 11-30 02:00:05 [async_llm.py:700] vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered"
    " an issue. See stack trace (above) for the root cause.\n"
)
READY = (
    "(APIServer pid=1) INFO 11-30 01:59:00 [utils.py:1] non-default args: {'model': '/m'}\n"
    "(APIServer pid=1) INFO:     Application startup complete.\n"
)
STOP = "(APIServer pid=1) INFO 11-30 02:00:04 [launcher.py:1] [shutdown] API server: shutdown triggered\n"


def test_order_of_stop_and_death_decides() -> None:
    stopped = only(READY + STOP + ENGINE_DEAD)
    assert (stopped.outcome, stopped.failure) == ("stopped", None)
    died = only(READY + ENGINE_DEAD + STOP)
    assert died.outcome == "crashed at runtime"
    assert died.failure is not None and died.failure.kind == "elsewhere"


def test_the_first_exception_is_the_cause_and_its_echoes_count_once() -> None:
    def rank(number: int, line: str) -> str:
        return f"(Worker_TP{number} pid=1{number}) ERROR 11-30 02:00:01 [x.py:1] {line}\n"

    text = READY
    for number in (1, 0):
        text += rank(number, "Traceback (most recent call last):")
        text += rank(number, '  File "/vllm/worker.py", line 5, in execute_model')
        text += rank(number, "RuntimeError: Unexpected head dim size, 32")
    text += (
        "(EngineCore pid=9) ERROR 11-30 02:00:02 [core.py:1] Traceback (most recent call last):\n"
        '(EngineCore pid=9) ERROR 11-30 02:00:02 [core.py:1]   File "/vllm/core.py", line 5, in run_busy_loop\n'
        "(EngineCore pid=9) ERROR 11-30 02:00:02 [core.py:1] RuntimeError: Worker failed with error"
        " 'Unexpected head dim size, 32', please check the stack trace above for the root cause\n"
    )
    run = only(text + ENGINE_DEAD)
    assert run.failure is not None
    assert run.failure.message == "Unexpected head dim size, 32"
    assert run.failure.ranks == ("Worker_TP1", "Worker_TP0")
    assert sum(not (f.wrapper or f.consequence) for f in run.failures) == 1


def test_a_refused_request_is_no_failure_of_the_server() -> None:
    text = READY + (
        "(APIServer pid=1) ERROR:    Exception in ASGI application\n"
        "Traceback (most recent call last):\n"
        '  File "/site-packages/starlette/routing.py", line 5, in app\n'
        '  File "/site-packages/vllm/entrypoints/openai/serving_chat.py", line 5, in create_chat_completion\n'
        "ValueError: This model's maximum context length is 2048 tokens. However, you requested 3000 tokens\n"
        'INFO:     127.0.0.1:4 - "POST /v1/chat/completions HTTP/1.1" 400 Bad Request\n'
    )
    run = only(text)
    assert run.outcome == "serving"
    assert run.failure is None
    assert any(f.request_level for f in run.failures)


def test_a_soft_error_of_the_network_yields_to_a_hard_one_beside_it() -> None:
    head = "[2026-01-01 10:00:0{} TP{}] Scheduler hit an exception: Traceback (most recent call last):\n"
    text = (
        "[2026-01-01 09:59:00] server_args={'model_path': '/m'}\n"
        + head.format(1, 0)
        + '  File "/sglang/srt/managers/scheduler.py", line 5, in event_loop_normal\n'
        + "RuntimeError: [../gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.1]:9\n"
        + head.format(2, 1)
        + '  File "/sglang/srt/managers/scheduler.py", line 5, in event_loop_normal\n'
        + "ValueError: token_to_kv_pool_allocator memory leak detected! available_size=1\n"
    )
    run = only(text)
    assert run.failure is not None
    assert run.failure.exception == "ValueError"


def test_cut_traceback_and_log_that_only_closes_the_story() -> None:
    cut = only(
        '[2026-01-01 10:00:01 PP0] Scheduler hit an exception: Traceback (most recent call last):\n  File "/s/a.py", line 5, in f\n'
    )
    assert cut.failure is not None and cut.failure.cut
    closing = only("[2026-01-01 10:00:01] Received sigquit from a child process. It usually means the child failed.\n")
    assert closing.failure is not None and closing.failure.kind == "elsewhere"


def test_what_the_server_outlived_was_not_fatal() -> None:
    text = (
        READY
        + "(EngineCore pid=9) ERROR 11-30 02:00:02 [core.py:1] ValueError: something odd in a plugin\n"
        + 'INFO:     127.0.0.1:4 - "POST /v1/completions HTTP/1.1" 200 OK\n'
    )
    assert only(text).outcome == "serving"


def test_a_tool_that_a_running_server_lacks_ends_nothing() -> None:
    line = "[2025-06-26 07:25:31 TP4] Watchdog timeout (self.watchdog_timeout=300)\n"
    run = only("[2025-06-26 07:25:30 TP4] Cache flushed successfully!\n/bin/sh: 1: lsof: not found\n" + line)
    assert run.failure is not None
    assert run.failure.exception == "watchdog"


def test_last_lines_of_a_traceback_without_any_frame() -> None:
    text = "(E pid=2)     raise Exception(\n(E pid=2) Exception: Capture cuda graph failed: Ninja build failed.\n"
    run = only("(E pid=2)          ^^^^^^^^^^^^^^^^^^^^^^\n" + text)
    assert run.failure is not None
    assert not run.failure.cut
    assert run.failure.message.startswith("Capture cuda graph failed: Ninja")


@pytest.mark.parametrize(
    ("line", "exception"),
    [
        ("vllm: error: unrecognized arguments: --max-model-length-tokens 5", "bad arguments"),
        ("bash: line 1: vllm: command not found", "command not found"),
        (
            'docker: Error response from daemon: could not select device driver "" with capabilities: [[gpu]].',
            "container runtime",
        ),
        ("Killed", "killed"),
        ("Memory cgroup out of memory: Killed process 77 (VLLM::EngineCore) total-vm:1kB", "out of memory (host)"),
        ("!!!!!!! Segfault encountered !!!!!!!", "segmentation fault"),
        ("terminate called after throwing an instance of 'c10::Error'", "abort"),
    ],
)
def test_ends_without_an_exception(line: str, exception: str) -> None:
    run = only(READY.replace("INFO:     Application startup complete.", "INFO 11-30 01:59:01 [x.py:1] x") + line + "\n")
    assert run.failure is not None
    assert run.failure.exception == exception


@pytest.mark.parametrize(
    ("facts", "outcome", "label"),
    [
        ({"container.exit_code": 0}, "stopped", None),
        ({"container.exit_code": 137}, "crashed at runtime", "process died"),
        ({"container.exit_code": 137, "container.oom_killed": True}, "crashed at runtime", "out of memory (host)"),
        ({"container.exit_code": 143}, "stopped", None),
        ({}, "serving", None),
    ],
)
def test_witnesses_take_part(facts: dict[str, object], outcome: str, label: str | None) -> None:
    run = only(READY)
    for name, value in facts.items():
        run.facts.put(Fact(name, value, "count", origin="container"))
    weigh_witnesses(run)
    assert run.outcome == outcome
    assert (run.failure.exception if run.failure else None) == label


def test_degraded_needs_a_real_defect() -> None:
    class Found:
        def __init__(self, cause: str, severity: str) -> None:
            self.cause, self.severity = cause, severity

    def judged(*found: Found) -> str:
        run = Run(1, "x", outcome="serving", outcome_basis=(Where("x", 1),))
        return refine_outcome(run, found)

    assert judged(Found("spec-never-accepts", "warning")) == "degraded"
    assert judged(Found("context-exceeds-pool", "critical")) == "degraded"
    assert judged(Found("context-exceeds-pool", "warning"), Found("pool-low-fraction", "critical")) == "serving"


def test_unfinished_steps_are_named() -> None:
    text = (
        "[2026-01-01 10:00:00] server_args={'model_path': '/m'}\n"
        "[2026-01-01 10:00:01 TP0] Load weight begin. avail mem=78.00 GB\n"
        "[2026-01-01 10:00:01 TP1] Load weight begin. avail mem=78.00 GB\n"
        "[2026-01-01 10:05:01 TP0] Load weight end. type=LlamaForCausalLM, dtype=torch.bfloat16, avail mem=40.00 GB, mem usage=38.00 GB.\n"
    )
    run = only(text)
    assert run.outcome == "starting"
    assert run.facts.value("end.unfinished") == "loading weights (rank TP1)"
    assert run.facts.value("end.waited") == 300.0


def test_where_a_log_ends_is_noted_unless_a_step_was_under_way() -> None:
    lines = ("[2026-11-30 02:55:49] Load weight begin. avail mem=139.13 GB\n",
             "[2026-11-30 02:55:50] Load weight end. type=X, dtype=torch.bfloat16, avail mem=9.00 GB, mem usage=130.13 GB.\n")  # fmt: skip
    assert only(lines[0]).notes == []
    assert only("".join(lines)).notes == [
        "The log ends at line 2 after the weights were loaded, without an error and without an end."
    ]


@pytest.mark.parametrize(
    ("facts", "outcome"),
    [
        ({"http.health": 200, "http.generates": False}, "degraded"),
        ({"http.health": 0}, "degraded"),
        ({"http.health": 503}, "degraded"),
        ({"http.health": 200, "http.generates": True}, "serving"),
    ],
)
def test_probes_take_part(facts: dict[str, object], outcome: str) -> None:
    run = only(READY)
    for name, value in facts.items():
        run.facts.put(Fact(name, value, "count", origin="http"))
    weigh_witnesses(run)
    assert run.outcome == outcome


@pytest.mark.parametrize(
    ("message", "line"),
    [
        ("CUDA error: x.\nFor debugging", "CUDA error: x"),
        ("1 validation error for ModelConfig\n  Value error, not supported [type=value_error, input]", "not supported"),
        ("NCCL error\nLast error:\n\nno segment", "no segment"),
        ("[E520 22:23:46.546600506 a.cpp:18] [PG ID 2 Rank 1] The watchdog ended: x.", "The watchdog ended: x"),
        ("[rank1]:[E520 22:23:46.5 a.cpp:18] [Rank 1] The watchdog ended", "The watchdog ended"),
        ("[Errno 2] No such file: 'x'", "[Errno 2] No such file: 'x'"),
        ("terminate called after throwing an instance of 'c10::Error'\n  what():  CUDA error: y", "CUDA error: y"),
        ("", ""),
    ],
)
def test_headline(message: str, line: str) -> None:
    assert headline(message) == line


CANCELLED = (
    "(APIServer pid=1) ERROR:    Exception in ASGI application\n"
    "Traceback (most recent call last):\n"
    '  File "/site-packages/starlette/routing.py", line 5, in app\n'
    "asyncio.exceptions.CancelledError: Task cancelled\n"
)
RESET = (
    "Traceback (most recent call last):\n"
    '  File "/site-packages/uvicorn/protocols/http/h11_impl.py", line 5, in send\n'
    "ConnectionResetError: [Errno 104] Connection reset by peer\n"
)
TEMPLATE = (
    "(APIServer pid=1) ERROR 11-30 02:00:01 [serving_chat.py:1] Error in preprocessing prompt inputs\n"
    "(APIServer pid=1) ERROR 11-30 02:00:01 [serving_chat.py:1] Traceback (most recent call last):\n"
    '(APIServer pid=1) ERROR 11-30 02:00:01 [serving_chat.py:1]   File "/vllm/entrypoints/chat_utils.py", line 5, in f\n'
    "(APIServer pid=1) ERROR 11-30 02:00:01 [serving_chat.py:1] AssertionError: roles must alternate\n"
)


@pytest.mark.parametrize("text", [CANCELLED, RESET, TEMPLATE])
def test_what_clients_bring_about_is_no_crash_even_at_the_end_of_the_log(text: str) -> None:
    run = only(READY + text)
    assert (run.outcome, run.failure) == ("serving", None)


def test_an_import_that_fails_at_the_top_of_the_program_is_a_failed_start() -> None:
    run = only(
        "Traceback (most recent call last):\n"
        '  File "/opt/bin/vllm", line 5, in <module>\n'
        '  File "/site-packages/vllm/entrypoints/cli/main.py", line 5, in <module>\n'
        "ModuleNotFoundError: No module named 'vllm._C'\n"
    )
    assert run.outcome == "crashed at startup"
    assert run.engine == "vllm"


SGLANG_START = "[2026-01-01 10:00:00] server_args={'model_path': '/m'}\n"


def test_a_traceback_that_the_start_up_outlived() -> None:
    odd = (
        "[2026-01-01 10:00:05 TP0] Could not tune a kernel\nTraceback (most recent call last):\n"
        '  File "/sglang/srt/tune.py", line 5, in tune\nRuntimeError: no tuning table\n'
    )
    pool = "[2026-01-01 10:00:30 TP0] KV Cache is allocated. #tokens: 1024, K size: 0.22 GB, V size: 0.22 GB\n"
    assert only(SGLANG_START + odd + pool).outcome == "starting"
    assert only(SGLANG_START + odd).outcome == "crashed at startup"


@pytest.mark.parametrize(
    ("last", "kind", "exception"),
    [
        (
            "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.",
            "killed",
            "out of memory (host)",
        ),
        (
            "ray.exceptions.RayActorError: The actor died unexpectedly before finishing this task.",
            "killed",
            "ray.exceptions.RayActorError",
        ),
        (
            "RuntimeError: Rank 0 scheduler died during initialization (exit code: -9). If exit code is -9 (SIGKILL)",
            "killed",
            "RuntimeError",
        ),
        ("RuntimeError: Rank 0 scheduler died during initialization (exit code: -3).", "elsewhere", "RuntimeError"),
        ("EOFError", "elsewhere", "EOFError"),
    ],
)
def test_a_parent_that_tells_of_a_child(last: str, kind: str, exception: str) -> None:
    text = SGLANG_START + "Traceback (most recent call last):\n"
    text += '  File "/sglang/srt/entrypoints/engine.py", line 5, in _launch_subprocesses\n' + last + "\n"
    run = only(text)
    assert run.failure is not None
    assert (run.failure.kind, run.failure.exception) == (kind, exception)


def test_the_traceback_of_a_client_beside_the_log() -> None:
    text = READY + (
        "Traceback (most recent call last):\n"
        '  File "/home/me/ask.py", line 5, in <module>\n'
        '  File "/usr/lib/python3/site-packages/openai/_base_client.py", line 9, in _request\n'
        "openai.InternalServerError: Error code: 500\n"
    )
    assert (only(text).outcome, only(text).failure) == ("serving", None)


def test_the_front_end_of_v0_quotes_the_engines_exception() -> None:
    run = only(
        'ERROR 04-10 08:57:05 [serving_chat.py:677]   File "/v/vllm/entrypoints/openai/serving_chat.py", line 698, in chat_completion_full_generator\n'
        "ERROR 04-10 08:57:05 [serving_chat.py:677]     async for res in result_generator:\n"
        "ERROR 04-10 08:57:05 [serving_chat.py:677] vllm.engine.multiprocessing.MQEngineDeadError: Engine loop is not running. Inspect the stacktrace to find the original error: ValueError('Attempted to assign 5 tokens').\n"
    )
    assert run.outcome == "crashed at runtime"
    assert run.failure is not None
    assert (run.failure.exception, run.failure.message) == ("ValueError", "Attempted to assign 5 tokens")


def test_a_statistics_line_pasted_below_the_death_shows_that_it_had_served() -> None:
    death = "CRITICAL 04-08 04:00:01 [core_client.py:361] Got fatal signal from worker processes, shutting down. See stack trace above for root cause issue.\n"
    stats = "INFO 04-08 03:59:20 [loggers.py:80] Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: 30.0 tokens/s, Running: 1 reqs, Waiting: 0 reqs, GPU KV cache usage: 16.7%, Prefix cache hit rate: 85.8%\n"
    assert only(death + stats).outcome == "crashed at runtime"
    assert only(death).outcome == "crashed at startup"


def test_a_handshake_for_one_request_ends_no_server() -> None:
    run = only(
        "(Worker_TP0 pid=2) ERROR 10-16 17:22:56 [nixl_connector.py:815] RuntimeError: Remote NIXL agent engine ID mismatch. Expected a_dp0,received b_dp0.\n"
        "(Worker_TP0 pid=2) ERROR 10-16 17:22:56 [nixl_connector.py:827] Handshake failed for request chatcmpl-1\n"
    )
    assert run.failure is None
    assert run.failures[0].request_level


def test_the_signal_in_the_front_ends_summary_names_a_killed_engine() -> None:
    text = "(APIServer pid=9) RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {'EngineCore_DP0': %s}\n"
    killed, ended = only(text % "-9"), only(text % "1")
    assert killed.failure is not None and ended.failure is not None
    assert (killed.outcome, killed.failure.kind, killed.facts.value("failure.exit_code")) == (
        "crashed at startup",
        "killed",
        -9,
    )
    assert ended.failure.kind == "elsewhere"


def test_a_dumped_step_shows_that_the_engine_had_served() -> None:
    run = only(
        "ERROR 06-14 14:17:31 [dump_input.py:69] Dumping input data\n"
        "ERROR 06-14 14:17:31 [dump_input.py:71] V1 LLM engine (v0.9.1) with config: model='/m', max_seq_len=32768\n"
    )
    assert run.outcome == "crashed at runtime"


@pytest.mark.parametrize(
    ("frames", "outcome"),
    [
        ('  File "/a/sglang/srt/managers/scheduler.py", line 1, in run_scheduler_process\n    scheduler.event_loop_overlap()\n', "crashed at runtime"),
        ('  File "/a/sglang/srt/managers/scheduler.py", line 1, in run_scheduler_process\n    scheduler = Scheduler(\n', "crashed at startup"),
        ('  File "/a/sglang/srt/mem_cache/mamba_radix_cache.py", line 1, in sanity_check\n    x == y\n', "crashed at runtime"),
        ('  File "/a/sglang/srt/mem_cache/mamba_radix_cache.py", line 1, in __init__\n    x == y\n', "crashed at startup"),
    ],
)  # fmt: skip
def test_part_of_a_traceback_tells_start_from_service(frames: str, outcome: str) -> None:
    assert only(f"Traceback (most recent call last):\n{frames}AssertionError: odd\n").outcome == outcome


def test_a_process_that_ended_by_itself_was_not_killed() -> None:
    run = only(
        "set_mempolicy: Invalid argument\n[2026-06-05 08:01:03] Rank 0 scheduler is dead.\n[2026-06-05 08:01:03] Exit code: 1\n"
    )
    assert run.failure is not None
    assert (run.outcome, run.failure.exception) == ("crashed at startup", "NUMA binding refused")
    alone = only(
        "[2026-06-05 08:01:03] Subprocess scheduler_0 (pid=7) crashed with exit code 1. Triggering SIGQUIT for cleanup...\n"
    )
    assert alone.failure is not None and alone.failure.kind == "elsewhere"


def test_what_a_scheduler_caught_at_its_top_ended_it_whatever_is_still_answered() -> None:
    text = (
        '[2025-01-09 10:41:54] INFO:     10.2.0.1:4 - "POST /v1/chat/completions HTTP/1.1" 200 OK\n'
        "[2025-01-09 10:41:54 DP4 TP0] Scheduler hit an exception: Traceback (most recent call last):\n"
        '  File "/a/sglang/srt/managers/scheduler.py", line 1640, in run_scheduler_process\n'
        "    scheduler.event_loop_overlap()\n"
        '  File "/a/sglang/srt/mem_cache/radix_cache.py", line 230, in _split_node\n'
        "    del node.parent.children[key]\nKeyError: 12041\n\n"
        '[2025-01-09 10:41:55] INFO:     10.2.0.1:5 - "POST /v1/chat/completions HTTP/1.1" 200 OK\nKilled\n'
    )
    run = only(text)
    assert run.failure is not None
    assert (run.outcome, run.failure.exception) == ("crashed at runtime", "KeyError")


def test_a_pasted_traceback_without_head_and_indentation() -> None:
    text = (
        'File "/a/sglang/srt/model_loader/loader.py", line 437, in load_model\n    model.load_weights(weights)\n'
        'File "/a/sglang/srt/models/qwen3.py", line 493, in load_weights\n    param = params_dict[name]\n'
        "            ~~~~~~~~~~~^^^^^^\nKeyError: 'midlayer.self_attn.qkv_proj.weight'\n"
    )
    run = only(text)
    assert run.failure is not None
    assert [frame.function for frame in run.failure.frames] == ["load_model", "load_weights"]


def test_a_chat_template_that_is_missing_at_the_start_is_no_request() -> None:
    text = (
        "INFO 06-20 19:17:46 [api_server.py:1839] vLLM API server version 0.11.0\n"
        "Traceback (most recent call last):\n"
        '  File "/v/vllm/entrypoints/chat_utils.py", line 1200, in _load_chat_template\n'
        "    with open(chat_template) as f:\n"
        "FileNotFoundError: [Errno 2] No such file or directory: 'fixed.jinja'\n"
    )
    assert only(text).outcome == "crashed at startup"


def test_a_call_of_the_offline_interface_comes_after_the_start() -> None:
    text = (
        "Traceback (most recent call last):\n"
        '  File "/data/grpo.py", line 243, in <module>\n'
        "    output = model.generate(prompts)\n"
        '  File "/v/vllm/entrypoints/llm.py", line 469, in %s\n'
        "    outputs = self.run()\n"
        '  File "/v/vllm/lora/peft_helper.py", line 110, in validate_legal\n'
        "    raise ValueError()\n"
        "ValueError: LoRA rank 32 is greater than max_lora_rank 16.\n"
    )
    assert only(text % "generate").outcome == "crashed at runtime"
    assert only(text % "__init__").outcome == "crashed at startup"


def test_what_both_engines_print_is_no_vote_for_one() -> None:
    registered = "".join(f"[2025-10-06 20:05:27 TP{n}] Registering 0 cuda graph addresses\n" for n in range(6))
    begin = "Capture cuda graph begin. This can take up to several minutes. avail mem=3.66 GB\n"
    assert only("[2025-10-06 20:05:22 TP0] " + begin + registered).engine == "sglang"


@pytest.mark.parametrize(
    ("line", "exception"),
    [
        (
            "Failed: Cuda error /sgl-kernel/csrc/allreduce/custom_all_reduce.cuh:342 'invalid argument'",
            "kernel launch failed",
        ),
        ("/x/nvshmem/src/host/init/init.cu:nvshmemi_check:1105: nvshmem initialization failed, exiting", "NVSHMEM"),
    ],
)
def test_a_library_ends_the_process_in_one_line(line: str, exception: str) -> None:
    run = only(
        "[2026-05-14 10:00:01 TP0] Capture cuda graph begin. This can take up to several minutes. avail mem=12.25 GB\n"
        f"{line}\n"
    )
    assert run.outcome == "crashed at startup"
    assert run.failure is not None and run.failure.exception == exception


def test_what_a_cpp_exception_says_is_the_headline() -> None:
    run = only(
        "[2025-11-10 09:50:20 TP0] Decode batch, #running-req: 4, #token: 187, token usage: 0.31, cuda graph: True,"
        " gen throughput (token/s): 2911.10, #queue-req: 0,\n"
        "terminate called after throwing an instance of 'c10::AcceleratorError'\n"
        "  what():  CUDA error: an illegal memory access was encountered\n"
        "frame #15: sglang::scheduler_TP0() [0x59e4a6]\nFatal Python error: Aborted\n"
    )
    assert run.failure is not None
    assert run.failure.headline == "CUDA error: an illegal memory access was encountered"


IN_LOOP = (
    '(EngineCore_DP0 pid=1) ERROR 10-24 16:30:27 [core.py:710]   File "/w/vllm/distributed/device_communicators/shm_broadcast.py", line 460, in acquire_read\n'
    "(EngineCore_DP0 pid=1) ERROR 10-24 16:30:27 [core.py:710]     raise TimeoutError\n"
    "(EngineCore_DP0 pid=1) ERROR 10-24 16:30:27 [core.py:710] TimeoutError\n"
    "(EngineCore_DP0 pid=1) ERROR 10-24 16:30:27 [core.py:710] The above exception was the direct cause of the following exception:\n"
    "(EngineCore_DP0 pid=1) ERROR 10-24 16:30:27 [core.py:710] \n"
    "(EngineCore_DP0 pid=1) ERROR 10-24 16:30:27 [core.py:710] Traceback (most recent call last):\n"
    '(EngineCore_DP0 pid=1) ERROR 10-24 16:30:27 [core.py:710]   File "/w/vllm/v1/engine/core.py", line 701, in run_engine_core\n'
)


@pytest.mark.parametrize(
    ("text", "outcome", "assumed"),
    [
        (IN_LOOP + "(EngineCore_DP0 pid=1) ERROR 10-24 16:30:27 [core.py:710]     engine_core.run_busy_loop()\n", "crashed at runtime", None),
        (IN_LOOP, "crashed at startup", True),
        ("(EngineCore pid=9) RuntimeError: CUDA error: misaligned address\n\n(APIServer pid=7) vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered\n", "crashed at runtime", None),
        ("(EngineCore pid=9) RuntimeError: CUDA error: misaligned address\n", "crashed at startup", True),
    ],
)  # fmt: skip
def test_a_fragment_that_shows_no_stage_is_only_assumed_to_be_of_a_start(
    text: str, outcome: str, assumed: object
) -> None:
    run = only(text)
    assert (run.engine, run.outcome, run.facts.value("failure.assumed")) == ("vllm", outcome, assumed)


@pytest.mark.parametrize(
    ("text", "engine"),
    [
        ("(EngineCore pid=9) something new\n", "vllm"),
        ("(RayWorkerWrapper pid=9, ip=10.0.0.1) something new\n", "vllm"),
        ("(ServeReplica pid=9) something new\n", None),
        ("RuntimeError: Engine core initialization failed. See root cause above.\n", "vllm"),
        ("sglang.srt.x.OddError: odd\n", "sglang"),
    ],
)
def test_process_tags_and_qualified_exceptions_name_the_engine(text: str, engine: str | None) -> None:
    assert only(text).engine == engine


def test_a_service_manager_that_tells_of_a_signal() -> None:
    run = only("Jan 28 10:40:08 host systemd[1]: vllm.service: Main process exited, code=killed, status=9/KILL\n")
    assert run.failure is not None and (run.failure.kind, run.facts.value("failure.exit_code")) == ("killed", -9)
    run = only("Jan 28 10:40:08 host systemd[1]: vllm.service: Main process exited, code=exited, status=1/FAILURE\n")
    assert run.failure is None


def test_where_a_log_ends_claims_no_pool_that_is_not_there() -> None:
    sized = "INFO 10-20 00:02:33 [gpu_worker.py:276] Available KV cache memory: 9.62 GiB\n"
    assert "while the pool was being sized" in only(sized).notes[-1]
    made = sized + "INFO 10-20 00:02:34 [kv_cache_utils.py:864] GPU KV cache size: 78,800 tokens\n"
    assert "after the pool was made" in only(made).notes[-1]


NCCL = (
    "Traceback (most recent call last):\n"
    '  File "{place}/vllm/distributed/device_communicators/pynccl_wrapper.py", line 223, in NCCL_CHECK\n'
    '    raise RuntimeError(f"NCCL error: {{error_str}}")\n'
    "RuntimeError: NCCL error: unhandled system error\n"
)


@pytest.mark.parametrize(
    ("place", "engine"),
    [
        ("/opt/conda/envs/sglang/lib/python3.11/site-packages", "vllm"),
        ("/home/me/.venvs/sglang/src", "vllm"),
        ("/home/me/sglang/python/sglang", "sglang"),
    ],
)
def test_an_environment_called_like_an_engine_names_none(place: str, engine: str) -> None:
    assert only(NCCL.format(place=place)).engine == engine


@pytest.mark.parametrize(
    ("before", "assumed"),
    [
        ("", True),
        ("ERROR 08-04 16:54:59 [multiproc_worker_utils.py:238] Exception in worker VllmWorkerProcess while processing method determine_num_available_blocks.\n", None),
        ("ERROR 08-04 16:54:59 [multiproc_worker_utils.py:238] Exception in worker VllmWorkerProcess while processing method start_profile.\n", True),
        ("INFO 05-14 11:29:18 [backends.py:430] Dynamo bytecode transform time: 12.01 s\n", None),
    ],
)  # fmt: skip
def test_what_a_worker_was_told_to_do_shows_the_stage(before: str, assumed: object) -> None:
    run = only(before + "ValueError: odd\n")
    assert (run.outcome, run.facts.value("failure.assumed")) == ("crashed at startup", assumed)


def test_a_flat_traceback_that_was_cut_takes_no_source_for_its_exception() -> None:
    """Pasted without indentation, with the marks that Python puts under a call."""
    tag = "(EngineCore_DP0 pid=24995) ERROR 10-02 11:36:03 [core.py:718] "
    lines = [
        'File "/c/site-packages/vllm/v1/engine/core.py", line 215, in _initialize_kv_caches',
        "self.model_executor.initialize_from_config(kv_cache_configs)",
        "~~~~~~~~~~~~~~~~~~~^^^^^^^^^^^^^^^^^^",
        'File "/c/site-packages/vllm/v1/executor/abstract.py", line 74, in initialize_from_config',
        "raise",
    ]
    run = only("".join(f"{tag}{line}\n" for line in lines))
    assert run.failure is not None
    assert (run.failure.exception, run.failure.cut, len(run.failure.frames)) == ("", True, 2)
    whole = only("".join(f"{tag}{line}\n" for line in [*lines, "OddThing: it was odd"]))
    assert whole.failure is not None and whole.failure.exception == "OddThing"


UP = "INFO 11-03 15:47:45 [llm_engine.py:428] init engine (profile, create kv cache, warmup model) took 28.44 seconds\n"


def test_a_script_that_fails_beside_the_engine_is_not_the_engine() -> None:
    failed = (
        "[rank0]: Traceback (most recent call last):\n"
        '[rank0]:   File "/root/run.py", line 47, in <module>\n'
        "[rank0]:     audios = process(messages)\n"
        '[rank0]:   File "/c/lib/python3.10/site-packages/{library}/ffdec.py", line 152, in __init__\n'
        "[rank0]:     raise NotInstalledError()\n"
        "[rank0]: audioread.ffdec.NotInstalledError\n"
    )
    run = only(UP + failed.format(library="audioread"))
    assert run.outcome == "starting" and [one.kind for one in run.failures] == ["program"]
    assert not any("without an error" in note for note in run.notes)
    assert only(UP + failed.format(library="torch")).outcome == "crashed at startup"
    assert only(failed.format(library="audioread")).outcome == "crashed at startup"


def test_a_refusal_above_a_cut_traceback_is_its_exception() -> None:
    said = "The model's max seq len (131072) is larger than the maximum number of tokens that can be stored in KV cache"
    log = (
        f"ERROR 03-25 21:32:48 engine.py:387] {said} (37696). Try increasing `gpu_memory_utilization`.\n"
        "ERROR 03-25 21:32:48 engine.py:387] Traceback (most recent call last):\n"
        'ERROR 03-25 21:32:48 engine.py:387]   File "/c/vllm/engine/multiprocessing/engine.py", line 121, in start\n'
    )
    failure = only(log).failure
    assert failure is not None and not failure.cut and failure.message.startswith(said)
    assert [frame.function for frame in failure.frames] == ["start"]


@pytest.mark.parametrize(("code", "kind"), [(2, "elsewhere"), (-9, "killed")])
def test_a_parent_that_lost_a_child_tells_of_it_and_not_why(code: int, kind: str) -> None:
    log = (
        "Traceback (most recent call last):\n"
        '  File "/c/vllm/v1/utils.py", line 537, in wait_for_completion_or_failure\n'
        "    raise RuntimeError(\n"
        f"RuntimeError: Process ApiServer_0 (PID: 353) died with exit code {code}\n"
    )
    failure = only(log).failure
    assert failure is not None and failure.kind == kind


@pytest.mark.parametrize(
    ("line", "outcome"),
    [("INFO 10-28 13:27:51 [llm.py:337]", "serving"), ("(APIServer pid=4) INFO 10-28 13:27:51 [api_server.py:577]", "starting")],
)  # fmt: skip
def test_the_offline_interface_is_ready_with_its_last_line(line: str, outcome: str) -> None:
    assert only(UP + line + " Supported tasks: ['generate']\n").outcome == outcome


def test_a_front_end_that_waits_for_its_engine_shows_a_start_under_way() -> None:
    wait = "(APIServer pid=1) DEBUG 08-09 20:55:{:02} [v1/engine/utils.py:1262] Waiting for 1 local, 0 remote core engine proc(s) to start.\n"
    run = only("".join(wait.format(second) for second in (10, 20, 30)))
    assert run.outcome == "starting"
    assert run.facts.value("end.unfinished") == "waiting for the engine's process"
    assert run.facts.value("end.waited") == pytest.approx(20.0)
    load = "(EngineCore pid=6) INFO 08-09 20:55:12 [gpu_model_runner.py:4820] Starting to load model /m...\n"
    assert only(wait.format(10) + load + wait.format(20)).facts.value("end.unfinished") is None


def test_a_bar_of_the_capture_shows_that_it_is_under_way() -> None:
    bar = "Capturing CUDA graphs (mixed prefill-decode, PIECEWISE):  73%|███████▎  | 37/51 [00:04<00:01,  8.41it/s]\n"
    sized = "INFO 10-20 00:02:34 [kv_cache_utils.py:864] GPU KV cache size: 78,800 tokens\n"
    run = only(sized + bar)
    assert run.facts.value("end.unfinished") == "capturing graphs"
    done = "INFO 10-20 00:02:39 [gpu_model_runner.py:6046] Graph capturing finished in 3 secs, took 0.17 GiB\n"
    assert run.outcome == "starting" and only(sized + bar + done).facts.value("end.unfinished") is None


def test_arguments_after_an_orderly_stop_begin_another_run() -> None:
    stop = "(EngineCore pid=121171) INFO 09-07 00:19:33 [core.py:1350] [shutdown] EngineCore: trigger received signal=SIGTERM\n"
    given = "INFO 09-07 00:19:44 [api_utils.py:286] non-default args: {'max_model_len': 4096, 'model': '/m'}\n"
    assert [run.outcome for run in folded(stop + given)] == ["stopped", "starting"]


def test_what_a_worker_says_before_a_cut_traceback_is_the_message() -> None:
    tag = "(VllmWorkerProcess pid=2) ERROR 01-12 08:36:38 multiproc_worker_utils.py:233] "
    said = "The model's max seq len (131072) is larger than the maximum number of tokens that can be stored in KV cache (86432)"
    log = (
        f"{tag}Exception in worker VllmWorkerProcess while processing method initialize_cache: {said}, Traceback (most recent call last):\n"
        f'{tag}  File "/c/vllm/executor/multiproc_worker_utils.py", line 226, in _run_worker_process\n'
    )  # fmt: skip
    run = only(log)
    assert run.failure is not None
    assert (run.failure.message, run.failure.cut, run.outcome) == (said, False, "crashed at startup")


def test_a_paste_one_blank_further_in_and_the_line_above_it() -> None:
    log = (
        "Error in chat completion stream generator.\n"
        "Traceback (most recent call last):\n"
        'File "/c/site-packages/vllm/entrypoints/openai/serving_chat.py", line 642, in chat_completion_stream_generator\n'
        "     harmony_parser.process(token_id)\n"
        '   File "/c/site-packages/openai_harmony/__init__.py", line 627, in process\n'
        "     self._inner.process(token)\n"
        " openai_harmony.HarmonyError: Unexpected token 200012 while expecting start token 200006\n"
    )
    (failure,) = only(log).failures
    assert (failure.exception, failure.request_level) == ("openai_harmony.HarmonyError", True)
    assert failure.first_line == 1


def test_blocks_that_two_servers_cannot_map_end_one_request() -> None:
    log = "AssertionError: Local block size 16 is not divisible by remote block size 32 or vice versa.\n"
    tag = "(Worker_TP1_EP1 pid=2749) INFO 05-17 20:14:00 [worker.py:555] NIXL compatibility check passed\n"
    run = only(tag + log)
    assert run.failure is None and run.failures[0].request_level


def test_a_kernel_that_asks_for_too_much_is_an_exception_without_a_traceback() -> None:
    log = (
        "triton.runtime.errors.OutOfResources: shared memory, Required: 66560, Hardware limit: 65536\n"
        "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue.\n"
    )
    run = only(log)
    assert run.failure is not None and run.failure.exception.endswith("OutOfResources")
    assert run.outcome == "crashed at runtime"


def test_an_ai_cpu_kernel_that_fails_is_a_devices_fault() -> None:
    run = only("Aicpu kernel execute failed, device_id=0, stream_id=2, kernelName=IndexPut, errorCode=0x2a\n")
    assert run.failure is not None and run.failure.exception == "device fault"


def test_the_batch_alone_shows_that_a_step_failed() -> None:
    dump = "Dumping scheduler output for model execution: SchedulerOutput(scheduled_new_reqs=[], num_scheduled_tokens={a: 16384})\n"
    run = only(f"(EngineCore_DP0 pid=1880) ERROR 11-11 23:20:26 [dump_input.py:79] {dump}")
    assert run.outcome == "crashed at runtime"
    assert run.failure is not None and (run.failure.exception, run.failure.kind) == ("step failed", "elsewhere")


def test_a_proxy_beside_the_server_in_one_file_does_not_hide_it() -> None:
    pod = "ms-pd-decode-6c8f9c4df6-vh88z"
    log = (
        f'{pod} routing-proxy E1027 22:25:32.427556       1 proxy.go:268] "waiting for vLLM to be ready"\n'
        f"{pod} vllm (APIServer pid=1) INFO:     Waiting for application shutdown.\n"
        f"{pod} vllm (APIServer pid=1) INFO:     Application shutdown complete.\n"
        f'{pod} routing-proxy E1027 22:25:32.477379       1 proxy.go:268] "waiting for vLLM to be ready"\n'
    )
    run = only(log)
    assert (run.engine, run.outcome) == ("vllm", "stopped")


def test_a_start_killed_after_the_formats_of_the_weights() -> None:
    log = "INFO 04-23 23:45:35 [weight_utils.py:243] Using model weights format ['*.safetensors']\nKilled\n"
    assert only(log).outcome == "crashed at startup"


def test_a_frame_whose_path_was_shortened_is_not_the_users_own_program() -> None:
    run = only(
        "08:13:38  Application startup complete\n08:13:38  Uvicorn running on http://127.0.0.1:20066\n"
        "08:14:25  [DP0~DP15 TP0~TP15] Scheduler hit an exception (x16)\n"
        '          File ".../speculative/eagle_worker_v2.py", line 1158, in forward_batch_generation\n'
        "            if pool.ratio != 128:\n          AttributeError: 'Pool' object has no attribute 'ratio'\n"
        "08:14:26  Subprocess scheduler_0 (pid=1225) crashed with exit code -3\n"
    )
    assert (run.outcome, run.failure and run.failure.exception) == ("crashed at runtime", "AttributeError")


def test_the_end_of_the_web_application_is_no_request() -> None:
    log = (
        "Traceback (most recent call last):\n"
        '  File "/c/site-packages/starlette/routing.py", line 699, in lifespan\n'
        "    await receive()\n"
        '  File "/c/site-packages/uvicorn/lifespan/on.py", line 137, in receive\n'
        "    return await self.receive_queue.get()\n"
        '  File "/usr/lib/python3.12/asyncio/queues.py", line 158, in get\n'
        "    await getter\n"
        "asyncio.exceptions.CancelledError\n\n"
        "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}\n"
    )
    run = only(log)
    assert run.outcome == "crashed at startup"
    assert not any(failure.request_level for failure in run.failures)


def test_loops_of_mini_sglang_serve() -> None:
    run = only(
        "Process TP0-scheduler:\nTraceback (most recent call last):\n"
        '  File "python/minisgl/scheduler/scheduler.py", line 591, in normal_loop\n    self._process_last_data(data)\n'
        '  File "python/minisgl/kvcache/pool.py", line 104, in alloc\n    raise RuntimeError("pool exhausted")\n'
        "RuntimeError: pool exhausted\n"
    )
    assert run.outcome == "crashed at runtime"


@pytest.mark.parametrize(
    ("line", "exception"),
    [
        (
            "[AITER] /a/asm_fmoe.cpp:96 fail to call hipModuleLaunchKernel(f) ---> [HIP error](invalid argument)",
            "HIP call failed",
        ),
        ("aborting due to error in nvshmemi_init_thread", "NVSHMEM"),
    ],
)
def test_native_code_that_ends_the_process_without_a_traceback(line: str, exception: str) -> None:
    run = only(f"[2025-06-10 10:00:00 TP3] Load weight begin. avail mem=78.20 GB\n{line}\n")
    assert (run.outcome, run.failure and run.failure.exception) == ("crashed at startup", exception)


def test_a_handler_of_the_bootstrap_server_fails_one_request() -> None:
    run = only(
        'Traceback (most recent call last):\n  File "/x/sglang/srt/disaggregation/common/conn.py", line 675, in _handle_route_get\n'
        '    info = PrefillServerInfo(\n  File "/x/sglang/srt/disaggregation/common/conn.py", line 56, in __post_init__\n'
        "    self.attn_tp_size = int(self.attn_tp_size)\nTypeError: int() argument must be a string\n"
    )
    assert not run.outcome.startswith("crashed")
    assert [failure.request_level for failure in run.failures] == [True]


def test_launched_processes_are_a_start() -> None:
    run = only("[2025-12-18 07:58:51] Launch DP0 starting at GPU #0.\n")
    assert (run.engine, run.outcome) == ("sglang", "starting")
