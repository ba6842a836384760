"""Outcome of a run from evidence: stages reached, failures, the order of a stop, other witnesses. Never from words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from analyzer.run.facts import Where
from analyzer.run.model import Failure, Run, first_cause
from analyzer.run.signals import HOST_OOM, UNANSWERED

START_UP_STAGES = ("arguments", "init", "weights", "pool", "graphs")

_RUNTIME_FUNCTIONS = re.compile(
    r"^(?:event_loop\w*|run_event_loop|dispatch_event_loop|process_batch_result\w*|get_next_batch_to_run|check_memory"
    r"|self_check_during_idle|on_idle|run_batch|run_busy_loop|_process_engine_step|process_engine_step|step_fn"
    r"|step_with_batch_queue|run_engine_loop|engine_step|run_engine_loop|step_async|handle_loop|output_handler"
    r"|exposed_step|forward_step|forward_(?:prefill|decode|extend)_batch|loop_for_forward|move_ready_grammar_requests"
    r"|normal_loop|overlap_loop|_process_last_data|_run_workers_async|recv_requests|process_input_requests|update_running_batch|_?get_new_batch_prefill\w*|get_next_disagg_\w+|add_one_req|init_load_back|retract_decode|execute_model|_run_output_handler)$"
)
_SERVING_FUNCTIONS = re.compile(
    r"^(?:run_busy_loop|_?process_engine_step|run_engine_loop|engine_step|step_async|output_handler|_run_output_handler"
    r"|(?:chat_)?completion_(?:full|stream)_generator|_process_request|wake_up|_run_engine|add_request)$"
)
"""Loops and handlers of requests that vLLM enters once it serves. SGLang's loops already run while it warms up."""
_OFFLINE_CALL = re.compile(
    r"(?:^|/)vllm/(?:entrypoints/(?:offline_utils|llm)|(?:v1/)?engine/llm_engine)\.py:(?:_?step|generate|chat|encode|embed|score|classify)$"
)
"""Methods of vLLM's offline interface that work on prompts: the engine is up by then."""
_FAILED_TO_START = re.compile(
    r"failed to start|died during initialization|scheduler is dead\. Please check|warm-up failed"
    r"|(?:initialization|start-?up) failed"
)
_FAILED_AFTER_START = re.compile(r"EngineCore encountered a fatal error")
"""vLLM's engine process says this once it had been made, and "failed to start" before."""
_RUNTIME_FILES = re.compile(
    r"/(?:mem_cache/\w*(?:radix|chunk|tree)_?cache\w*|constrained/\w+|srt/sampling/\w+|managers/schedule_(?:batch|policy))\.py$"
)
"""Files of SGLang whose functions other than constructors work on requests."""
_LOOP_SOURCE = re.compile(
    r"^\s+(?:(?:scheduler|self)\.(?:event_loop|run_event_loop)\w*|engine_core\.run_busy_loop)\(", re.M
)
_START_SOURCE = re.compile(
    r"^\s+(?:scheduler = Scheduler\(|async with build_async_engine_client\("
    r"|engine_core = (?:DP)?EngineCoreProc\()",
    re.M,
)
"""Lines of source in a traceback of which only a part was pasted."""
_ENGINE_DEAD = re.compile(r"(?:^|\.)(?:Async|MQ)?EngineDeadError$")
"""What vLLM's front end raises once the engine that it had is gone; one that never came up is told otherwise."""
_IN_FUNCTION = re.compile(r'^\s*File "[^"\n]*", line \d+,? in (\w+)$', re.M)
"""The functions of all tracebacks of a chain, also of one that was cut before its exception."""
_OF_METHOD = re.compile(r"(?:while processing|[Ee]rror executing) method [\x27\"]?(\w+)")
"""A worker names what it was told to do."""
_CONSTRUCTORS = frozenset({"__init__", "__post_init__", "<module>", "create_grammar_backend"})
_WORKING_TEXT = re.compile(r"[Cc]an ?not alloc mamba cache|Not enough space for mamba|_lock_ref on node")
"""What fails when requests are under way, also those of a warm-up."""
_SERVING_TEXT = re.compile(r"memory leak detected|pool leak detected|Mem Leak Detected|to retract|Decode out of memory")
"""What only a server that has served can print."""
STARTUP_FUNCTIONS = re.compile(
    r"^(?:load_model|get_model|determine_available_memory|determine_num_available_blocks|profile_run|_dummy_run"
    r"|_dummy_sampler_run|initialize_from_config|initialize_cache|_initialize_kv_caches|compile_or_warm_up_model"
    r"|capture_model|init_device_graphs|init_cuda_graphs|init_memory_pool|init_model_worker|init_worker|init_device"
    r"|create_server_(?:unix_)?socket|setup_server|create_engine_config|from_engine_args|init_torch_distributed|init_process_group|initialize|_wait_for_warmup|launch_server"
    r"|_launch_subprocesses|build_async_engine_client\w*|make_client|launch_core_engines|__post_init__|prepare_server_args"
    r"|init_app_state|build_app|validate_api_server_args|_?load_chat_template"
    r"|ncclCommInitRank|init_worker_distributed_environment|initialize_model_parallel|init_model_parallel_group"
    r"|execute_warmup|_execute_server_warmup|kernel_warmup|warmup_\w+)$"
)


class Evidence(Protocol):
    """What the folding of a run gives to decide its outcome: places, and whether the log shows the server's start."""

    stages: dict[str, Where]

    @property
    def stop(self) -> Where | None: ...
    @property
    def ready(self) -> Where | None: ...
    @property
    def served(self) -> Where | None: ...
    @property
    def answered(self) -> Where | None: ...
    @property
    def end(self) -> Where | None: ...
    @property
    def seen_start(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class Verdict:
    """Outcome in contract.md's words and the lines that decide it."""

    outcome: str
    basis: tuple[Where, ...]
    assumed: bool = False
    """The log does not tell whether the server had served when it failed: most that fail in a fragment did not."""


def startup_failure(failure: Failure, failures: Sequence[Failure], ready: bool, seen_start: bool) -> bool | None:
    """Whether ``failure`` kept the server from serving (else it ended one that served); None if nothing tells.

    ``ready``: the server had served or said that it serves; ``seen_start``: the log shows how it started. Where the
    log shows neither, the functions that were running tell; a death has none, so what followed from it is asked too.
    """
    if ready:
        return False
    if any(STARTUP_FUNCTIONS.match(frame.function) for frame in failure.frames):
        return True
    frames = [frame for one in (failure, *failures) for frame in one.frames]
    if any(_SERVING_FUNCTIONS.match(frame.function) for frame in frames):
        return False
    if any(_OFFLINE_CALL.search(f"{frame.file}:{frame.function}") for frame in frames):
        return False
    if _SERVING_TEXT.search(failure.message):
        return False
    for one in failures:
        if _FAILED_TO_START.search(f"{one.exception}: {one.message}"):
            return True
        if (method := _OF_METHOD.search(one.message)) and STARTUP_FUNCTIONS.match(method[1]):
            return True
    if any(_FAILED_AFTER_START.search(one.message) for one in failures):
        return False
    if seen_start:
        return True
    if _WORKING_TEXT.search(failure.message):
        return False
    if any(one.exception in ("engine dead", "step failed") or _ENGINE_DEAD.search(one.exception) for one in failures):
        return False
    for one in (failure, *failures):
        names = [frame.function for frame in one.frames] + _IN_FUNCTION.findall(one.text)
        if any(map(STARTUP_FUNCTIONS.match, names)):
            return True
        if any(map(_RUNTIME_FUNCTIONS.match, names)) or _LOOP_SOURCE.search(one.text):
            return False
        if _START_SOURCE.search(one.text):
            return True
        if any(f.function not in _CONSTRUCTORS and _RUNTIME_FILES.search(f.file) for f in one.frames):
            return False
    if any(one.exception == "watchdog" for one in failures):
        return False  # SGLang watches the steps over requests, and no other
    return False if failure.kind in ("watchdog", "killed") or failure.stage in ("ready", "serving") else None


def decide(evidence: Evidence, failures: Sequence[Failure], ready: bool) -> Verdict:
    """The outcome as the log alone shows it. ``ready``: the server had served when the cause happened."""
    cause = first_cause(failures)
    if cause is not None and cause.exception == UNANSWERED and evidence.stop is None:
        return Verdict("degraded", cause.where[:2])
    if cause is not None:
        startup = startup_failure(cause, failures, ready, evidence.seen_start)
        outcome = "crashed at runtime" if startup is False else "crashed at startup"
        return Verdict(outcome, cause.where[:2], assumed=startup is None)
    if evidence.stop is not None:
        return Verdict("stopped", _known(evidence.served or evidence.ready, evidence.stop))
    if places := _known(evidence.ready, evidence.served, evidence.answered):
        return Verdict("serving", places)
    if any(stage in evidence.stages for stage in START_UP_STAGES):
        return Verdict("starting", _known(*list(evidence.stages.values())[-1:], evidence.end))
    return Verdict("unknown", _known(evidence.end))


def _known(*places: Where | None) -> tuple[Where, ...]:
    return tuple(dict.fromkeys(place for place in places if place is not None))


def weigh_witnesses(run: Run) -> None:
    """Lets what is known from outside (exit code, OOM-killed flag) take part; call it once they are among the facts.

    An exit code of 0 proves no health and 137 does not name the kernel's OOM killer; only the container's own
    ``oom_killed`` does. Without a failure in the log, a code other than 0 or 143 says that the run did not end well.
    """
    _weigh_probes(run)
    code, killed = run.facts.value("container.exit_code"), run.facts.value("container.oom_killed")
    if run.failure is not None or (code is None and not killed):
        return
    places = run.facts.where("container.oom_killed" if killed else "container.exit_code")
    if killed or (code not in (0, 143, 130) and run.outcome != "stopped"):
        text = f"the container ended with exit code {code}"
        label, kind = ("process died", "killed") if code in (137, -9) else ("exit", "exit")
        if killed:
            text, label, kind = "the container was killed for its memory limit", HOST_OOM, "killed"
        run.failures.append(Failure(label, text, places or (Where("container", 0, text),), stage=run.stage, kind=kind))
        served = "ready" in run.stages or "serving" in run.stages
        run.outcome = "crashed at runtime" if served else "crashed at startup"
        run.outcome_basis = (*places, *run.outcome_basis)
    elif run.outcome in ("serving", "starting") and code is not None:
        run.outcome, run.outcome_basis = "stopped", (*places, *run.outcome_basis)


def _weigh_probes(run: Run) -> None:
    """A server that serves by its log and does not answer, or does not generate, is a degraded one."""
    if run.outcome != "serving":
        return
    health, generates = run.facts.value("http.health"), run.facts.value("http.generates")
    dead = health is not None and (health == 0 or health >= 500)
    if dead or generates is False:
        places = run.facts.where("http.health" if dead else "http.generates")
        run.outcome, run.outcome_basis = "degraded", (*places, *run.outcome_basis)


_DEGRADING = {
    "spec-never-accepts": ("critical", "warning"),
    "context-exceeds-pool": ("critical",),
    "request-refused": ("critical",),
    "request-transfer-failed": ("critical", "warning"),
    "slow-decode": ("critical",),
    "crash-engine-bug": ("critical",),
    "service-dead": ("critical", "warning"),
    "cap-kv-full": ("critical",),
}
"""Causes that make a serving run a degraded one, and from which severity."""


_OF_A_SERVICE = frozenset(
    {"request-transfer-failed", "request-refused", "cap-kv-full", "queueing-at-cap", "spec-never-accepts"}
)


def refine_outcome(run: Run, findings: Iterable[object]) -> str:
    """``degraded`` in place of ``serving`` where a finding shows a real defect of the service; else the outcome.

    ``findings`` have ``cause`` and ``severity``. Call it after the rules; it also sets ``run.outcome``.
    """
    findings = list(findings)
    if run.outcome == "unknown" and run.failure is None:  # only a server that serves can show these
        shown = next((f for f in findings if getattr(f, "cause", "") in _OF_A_SERVICE), None)
        if shown is not None:
            run.outcome, run.outcome_basis = "serving", tuple(getattr(shown, "evidence", ()))[:2]
    if run.outcome == "serving" and any(
        getattr(f, "severity", "") in _DEGRADING.get(getattr(f, "cause", ""), ()) for f in findings
    ):
        run.outcome = "degraded"
    return run.outcome
