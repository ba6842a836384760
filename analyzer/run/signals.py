"""Which recognised lines bear on life and death of a run, and what each of them means for it.

The texts are in the grammars (``failures.lark`` and ``shutdown.lark`` of each engine, ``common/system.lark``,
``common/http.lark``, ``common/libraries.lark``); here each kind is given its part in the story.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from analyzer.events import Event

DEATH = "death"
"""A process of the server is gone, without an error of its own in this line."""
KILL = "kill"
"""The kernel, the shell or the container runtime says that a process was ended."""
WATCHDOG = "watchdog"
"""Something that must answer did not."""
FATAL = "fatal"
"""The line itself is the error that ends the process."""
STOP = "stop"
"""Somebody asked the server to stop."""
REFUSAL = "refusal"
"""The sentence of an exception that ends a start-up, without its name; it counts where nothing else does."""
ENDED = "ended"
"""The engine ended its own workers: told to stop, or because it failed."""
WRAPPER = "wrapper"
"""A closing or heading sentence that points at another failure."""

HOST_OOM = "out of memory (host)"
"""Label of a kill that the kernel, the container runtime or ray put down to the host's memory."""

RAY_WORKER = "ray worker died"
"""Label of ray's note that a worker of its own is gone: the server's, or that of another task beside it."""
CHILD_FAILED = "child failed"
UNANSWERED = "health check failed"
"""Label of SGLang's note that no answer came out of the engine for a time: /health says 503, nothing is ended by it."""

_SIGNAL_CODES = {137: -9, 139: -11, 134: -6, 143: -15, 130: -2, 132: -4, 135: -7, 136: -8}
"""Exit codes of a shell or container for a process that a signal ended."""


@dataclass(frozen=True, slots=True)
class Signal:
    """One such line. ``label`` stands in a report where an exception's class would; ``code`` is the exit code named."""

    kind: str
    label: str
    text: str
    code: int | None = None
    index: int = 0
    """Line of the record's text that shows it."""


_KINDS: dict[str, dict[str, tuple[str, str]]] = {
    "sglang": {
        "subprocess_crashed": (DEATH, "process died"),
        "scheduler_terminated": (DEATH, "process died"),
        "scheduler_exit_code": (DEATH, "process died"),
        "watchdog_timeout": (WATCHDOG, "watchdog"),
        "watchdog_timeout_named": (WATCHDOG, "watchdog"),
        "health_failed": (WATCHDOG, UNANSWERED),
        "token_cap_ignored": (FATAL, "no KV memory"),
        "weights_not_ready": (FATAL, "weights not ready"),
        "sigterm": (STOP, "SIGTERM"),
        "sigterm_forced": (STOP, "SIGTERM"),
        "graceful_exit": (STOP, "stop"),
        "scheduler_dead": (WRAPPER, "scheduler died"),
        "child_sigquit": (WRAPPER, CHILD_FAILED),
        "sigquit": (WRAPPER, CHILD_FAILED),
        "warmup_failed": (WRAPPER, "warm-up failed"),
        "crash_dump": (WRAPPER, "crash dump"),
        "scheduler_exception": (WRAPPER, "scheduler failed"),
        "detokenizer_exception": (WRAPPER, "detokenizer failed"),
        "tokenizer_exception": (WRAPPER, "tokenizer manager failed"),
        "controller_exception": (WRAPPER, "controller failed"),
        "worker_exception": (WRAPPER, "worker failed"),
        "graph_capture_failed": (WRAPPER, "graph capture failed"),
    },
    "vllm": {
        "core_died": (DEATH, "engine process died"),
        "core_exited": (DEATH, "engine process died"),
        "worker_died": (DEATH, "worker died"),
        "no_kv_memory": (REFUSAL, "ValueError"),
        "metal_no_kv": (REFUSAL, "ValueError"),
        "kv_below_context": (REFUSAL, "ValueError"),
        "kv_below_context_v0": (REFUSAL, "ValueError"),
        "free_below_target": (REFUSAL, "ValueError"),
        "state_blocks_below_seqs": (REFUSAL, "ValueError"),
        "engine_process_died_v0": (DEATH, "engine process died"),
        "core_start_timeout": (WATCHDOG, "engine did not start in time"),
        "core_failed_to_start": (WRAPPER, "engine failed to start"),
        "core_fatal": (WRAPPER, "engine failed"),
        "core_exception": (WRAPPER, "engine failed"),
        "core_init_failed": (WRAPPER, "engine failed to start"),
        "core_signalled": (WRAPPER, "engine failed"),
        "output_handler_failed": (WRAPPER, "engine dead"),
        "engine_failed_v0": (WRAPPER, "engine dead"),
        "engine_already_dead_v0": (WRAPPER, "engine dead"),
        "engine_task_failed_v0": (WRAPPER, "engine failed"),
        "engine_process_failed_v0": (WRAPPER, "engine failed to start"),
        "engine_dead": (WRAPPER, "engine dead"),
        "engine_dead_v0": (WRAPPER, "engine dead"),
        "engine_dump": (WRAPPER, "step failed"),
        "engine_dump_header": (WRAPPER, "step failed"),
        "scheduler_dump": (WRAPPER, "step failed"),
        "worker_failed_to_start": (WRAPPER, "worker failed to start"),
        "worker_exception": (WRAPPER, "worker failed"),
        "worker_exception_v0": (WRAPPER, "worker failed"),
        "worker_failed": (WRAPPER, "worker failed"),
        "executor_failed": (WRAPPER, "worker failed"),
        "shutdown_signal": (STOP, "stop"),
        "shutdown_triggered": (STOP, "stop"),
        "shutdown_initiated": (STOP, "stop"),
        "http_shutting_down": (STOP, "stop"),
        "core_loop_ended": (STOP, "stop"),
    },
    "common": {
        "host_oom_kill": (KILL, HOST_OOM),
        "host_oom": (KILL, HOST_OOM),
        "container_oom": (KILL, HOST_OOM),
        "ray_oom": (KILL, HOST_OOM),
        "slurm_oom": (KILL, HOST_OOM),
        "slurm_cancelled": (STOP, "cancelled"),
        "rank_killed": (KILL, "killed"),
        "shell_killed": (KILL, "killed"),
        "container_exit": (KILL, "process died"),
        "service_exit": (KILL, "process died"),
        "service_killed": (KILL, "killed"),
        "service_oom": (KILL, HOST_OOM),
        "segfault": (FATAL, "segmentation fault"),
        "native_abort": (FATAL, "abort"),
        "heap_damaged": (FATAL, "abort"),
        "bus_error": (FATAL, "bus error"),
        "interpreter_fault": (FATAL, "interpreter fault"),
        "device_xid": (FATAL, "device fault"),
        "device_memory_fault": (FATAL, "device fault"),
        "mlx_error": (FATAL, "MLX error"),
        "metal_oom": (FATAL, "device out of memory"),
        "tpu_buffer_refused": (FATAL, "device out of memory"),
        "out_of_memory_bare": (FATAL, "OutOfMemoryError"),
        "native_assertion": (FATAL, "abort"),
        "ray_worker_died": (WRAPPER, RAY_WORKER),
        "kernel_launch_failed": (FATAL, "kernel launch failed"),
        "hip_call_failed": (FATAL, "HIP call failed"),
        "collective_timeout": (WATCHDOG, "collective timeout"),
        "watchdog_thread_ended": (FATAL, "process group watchdog"),
        "arguments_refused": (FATAL, "bad arguments"),
        "command_missing": (FATAL, "command not found"),
        "script_missing": (FATAL, "command not found"),
        "container_refused": (FATAL, "container runtime"),
        "memory_policy_refused": (FATAL, "NUMA binding refused"),
        "port_taken": (FATAL, "port taken"),
        "nvshmem_failed": (FATAL, "NVSHMEM"),
        "ccl_error": (FATAL, "oneCCL"),
        "elastic_failed": (WRAPPER, "rank failed"),
        "http_app_failed": (WRAPPER, "application failed to start"),
        "shell_terminated": (STOP, "SIGTERM"),
        "interrupted": (STOP, "interrupt"),
        "http_stopping": (STOP, "stop"),
        "http_app_stopping": (STOP, "stop"),
    },
}


def bears(engine: str, kind: str) -> bool:
    """Whether an event of this kind may be a signal."""
    return kind in _KINDS.get(engine, {})


def signal_of(event: Event) -> Signal | None:
    """What ``event`` says about the end of the run; None for an ordinary line."""
    found = _KINDS.get(event.engine, {}).get(event.kind)
    if found is None:
        return None
    kind, label = found
    code = _code(event.get("exit_code"))
    if event.kind == "watchdog_timeout_named" and event.get("soft"):
        return None  # a soft watchdog dumps the stacks and lets the server go on
    if event.kind == "token_cap_ignored" and not event.get("profiled", 0) < 0:
        return None  # an ordinary clip; a negative profile means that there is no memory at all
    if event.kind == "service_killed":
        code = -int(event.get("signal_number"))
    if event.kind in ("container_exit", "service_exit") and (code is None or code >= 0):
        return None  # an ordinary status: what failed said so itself
    if code == -15:
        kind = ENDED if event.kind == "worker_died" else STOP
    elif kind == DEATH and code is not None and code >= 0:
        kind = WRAPPER  # it ended by itself: its own error says why, where the log holds it
    lines = event.record.text.split("\n")
    index = _line_of(event, lines)
    return Signal(kind, label, lines[index].strip()[:600], code, index)


def _line_of(event: Event, lines: list[str]) -> int:
    """Which of the record's lines says it: the one that holds a text of the event, else the first that is not empty."""
    texts = [value.split("\n", 1)[0] for value in event.fields.values() if isinstance(value, str)]
    texts = [text for text in texts if len(text) >= 4]
    said = (i for i, line in enumerate(lines) if any(text in line for text in texts))
    return next(said, next((i for i, line in enumerate(lines) if line.strip()), 0))


_LAUNCHERS = re.compile(r"(?:^|[\s/])(?:vllm|sglang|python[\d.]*|torchrun|ray|uv|numactl)$")


def lacks_a_tool(event: Event) -> bool:
    """Whether a shell misses a command that starts no server: beside a server that runs, that ends nothing (py-spy)."""
    return event.kind == "command_missing" and _LAUNCHERS.search(str(event.get("missing"))) is None


def _code(value: object) -> int | None:
    """An exit code as a number, a signal as its negative number; None if the line names none."""
    try:
        code = int(str(value))
    except ValueError:
        return None
    return _SIGNAL_CODES.get(code, code)
