"""Tells what kind of failure one observation is: cause or wrapper, hard or of the network, a client's or not."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from analyzer.run.model import Failure, Frame
from analyzer.run.outcome import STARTUP_FUNCTIONS
from analyzer.run.signals import CHILD_FAILED, HOST_OOM, UNANSWERED
from analyzer.run.tracebacks import Traceback

_WRAPPER_CLASSES = frozenset({
    "EngineDeadError", "AsyncEngineDeadError", "MQEngineDeadError", "ChildFailedError", "RayTaskError",
    "ActorDiedError", "RayActorError", "ActorUnavailableError",
})  # fmt: skip
_WRAPPER_TEXT = re.compile(
    r"Engine core initialization failed|Engine process failed to start|WorkerProc initialization failed"
    r"|Executor failed|EngineCore encountered an issue|Background loop (?:has errored|is (?:not|stopped))"
    r"|Task finished unexpectedly|[Rr]ank \d+ scheduler (?:is dead|died)|Initialization failed\. (?:Please|warmup)"
    r"|[Ss]ee (?:the )?(?:root cause|stack trace|error messages?) (?:above|for)|Engine loop (?:is not running|has died)"
    r"|process exited with code -?\d+ before (?:reporting|it was|being) ready"
    r"|Engine core process \S+ died|MQLLMEngine is already dead|Engine is (?:dead|not running)"
)
_TEARDOWN_CLASSES = frozenset({"CancelledError", "KeyboardInterrupt", "SystemExit", "GeneratorExit"})
_TEARDOWN_TEXT = re.compile(
    r"^cancelled$|at interpreter shutdown|cannot schedule new futures after|Event loop is closed|MQLLMEngine terminated"
)
_TEARDOWN_FUNCTIONS = frozenset({
    "destroy_model_parallel", "destroy_process_group", "_shutdown_backend", "destroy_distributed_environment",
    "__del__",
})  # fmt: skip
"""They run once a process gives up: that the other ranks are gone by then follows from what went before."""
_DIED_STARTING = re.compile(r"died during initialization \(exit code: (-\d+)\)")
_CORE_ENDED = re.compile(r"Failed core proc\(s\): \{[^}]*: (-\d+)")
"""The front end's summary of a start-up names the signal that ended the engine process."""
_PROCESS_ENDED = re.compile(r"^Process \S+ \(PID: \d+\) died with exit code (-?\d+)")
"""vLLM's parent process on one of its children; why it ended stands in that child's own output."""
_RAY_HOST_OOM = re.compile(r"killed due to the node running low on memory|killed due to memory pressure")
_RAY_KILLED = re.compile(r"SYSTEM_ERROR|unexpected system error|died unexpectedly before finishing this task")
SIGQUIT = -3
"""SGLang's processes end one another so once one of them has raised: no cause of its own."""
_REMOTE = re.compile(
    r"^(?:Worker failed with error|Call to \S+ method failed:?) ['\"]?(.*?)(?:['\"],? please check|['\"]?$)", re.S
)
_ORIGINAL = re.compile(r"original error: (\w+)\(([\x27\"])(.+?)\2,?\)", re.S)
"""V0's front end quotes the exception of the engine process."""
_SOFT_CLASSES = frozenset({
    "BrokenPipeError", "EOFError", "ConnectionResetError", "ConnectionError", "ConnectionRefusedError",
    "DistNetworkError", "ZMQError", "IncompleteReadError", "ConnectionAbortedError",
})  # fmt: skip
_SOFT_TEXT = re.compile(
    r"(?i)connection (?:closed|reset|refused|aborted) by peer|broken pipe|remote process exited|ncclRemoteError"
    r"|communicator was aborted|recvValue failed|failed to recv|heartbeat|tcpstore|socket (?:timeout|closed)"
    r"|Application timeout caused pair closure|torch_elastic"
)
CLIENT_HEAD = re.compile(
    r"Exception in ASGI application|Error in preprocessing prompt inputs|Error in (?:applying )?chat template"
    r"|Error with model|Error while parsing|Error in preparing|Error handling request|Request \S+ failed \(bad"
    r"|Error in chat completion|Error in completion|Error in beam search|Exception occurred during (?:stream|request)"
    r"|NIXL transfer failure: "
)
_PROCESS_FUNCTIONS = frozenset({
    "run_scheduler_process", "run_detokenizer_process", "run_data_parallel_controller_process",
})  # fmt: skip
"""Outermost functions of SGLang's processes: what they catch ends the process, and the whole server with it."""
_WARM_UP_FUNCTIONS = frozenset({"_wait_and_warmup", "_execute_server_warmup"})
"""They run in a thread of SGLang's front end; a server whose warm-up fails never says that it is ready."""
_CLIENT_FRAMES = re.compile(
    r"/(?:starlette|fastapi|uvicorn)/|/entrypoints/openai/(?:serving_|api_server|chat_completion|completion)"
    r"|/entrypoints/(?:serve|renderer|chat_utils|http_server)|/srt/entrypoints/"
)
_TRANSFER_TEXT = re.compile(
    r"NIXL agent|[Ll]ocal block size \d+ is not divisible by remote|NIXL handshake"
    r"|[Hh]andshake (?:failed|with .{1,80} failed)|^KVTransferError"
)
"""The KV of one request did not come over; the engine computes it or answers with an error, and goes on."""
_TRANSFER_FRAME = re.compile(r"/kv_transfer/kv_connector/.*:(?:done_callback|\w*handshake\w*)$")
"""What a connector runs beside the engine's loop; it catches what goes wrong there."""
_ROUTE_HANDLER = re.compile(r"^_?handle_(?:route|http)\w*$")
"""Handlers of SGLang's small web servers (bootstrap, expert location): aiohttp answers with 500 and goes on."""
_ENTRY_FUNCTIONS = frozenset({
    "_bootstrap", "run", "_main", "spawn_main", "main", "<module>", "run_engine_core", "run_mp_engine", "worker_main",
})  # fmt: skip
"""Outermost functions of a process: a traceback of these alone repeats what was caught in them and raised again."""
DEVICE_TEXT = re.compile(r"CUDA|HIP error|NCCL|NPU |XPU |out of memory|CUBLAS|cuDNN|Triton|triton\.|memory leak")
"""What no request handler of its own can raise: the engine runs in the same process and failed."""
_CLIENT_LIBRARY = re.compile(r"/(?:openai|litellm|langchain\w*|requests|httpx|aiohttp|gradio|llama_index)/")
_SERVER_FILE = re.compile(r"/(?:vllm|sglang|huggingface_hub|transformers|modelscope|ray|torch)/")
_LIBRARY_FILE = re.compile(r"/(?:site|dist)-packages/|/lib/python3|/bin/|^<")
_ENGINE_FILE = re.compile(
    r"^(?:\.\.\.|…)|/(?:vllm|sglang)/|/(?:site|dist)-packages/|/lib/python3|^<frozen|/torch/|\.pxi$|\.pyx$"
)


@dataclass(slots=True)
class Entry:
    """One observed failure, before it is judged. ``order`` counts the records of the run."""

    failure: Failure
    order: float
    time: float | None
    ready: bool
    """The server had said that it serves, or had served, when this happened."""
    soft: bool = False
    client: bool = False
    user_code: bool = False
    code: int | None = None
    key: str = ""
    teardown: bool = False
    """An exception with which Python ends tasks, threads and processes: never a cause, never a death."""
    of_thread: bool = False
    """It ended a thread of Python's: the process goes on without it."""
    of_process: bool = False
    """The process itself caught it at its top level and ended: no request of its own, whatever others still answer."""
    echo: bool = False
    """It repeats another process's error in its own words."""
    noted: bool = False
    """The engine caught it and wrote it down as a warning or less: it meant to go on without."""

    @property
    def hard_exception(self) -> bool:
        """An exception with a name of its own that no network error explains."""
        return self.failure.kind == "exception" and bool(self.failure.exception) and not self.soft

    @property
    def probe(self) -> bool:
        """Only a probe that got no answer: nothing is ended by it, and no request of a client is meant."""
        return self.failure.exception == UNANSWERED


def engine_frame(frames: tuple[Frame, ...]) -> Frame | None:
    """The innermost frame inside the engine's own code."""
    return next((f for f in reversed(frames) if re.search(r"(?:^|/)(?:vllm|sglang)/", f.file)), None)


def _key(exception: str, message: str) -> str:
    """What makes two reports of one failure equal: class and message without figures and names of devices."""
    text = re.sub(r"0x[0-9a-f]+|\d+", "#", message.split("\n", 1)[0])[:120]
    return f"{exception.rsplit('.', 1)[-1]}: {text}"


def swept(entry: Entry, entries: Iterable[Entry]) -> bool:
    """Whether the server's own parent ended it, to which a child had told before that it failed."""
    told = (e for e in entries if e.order < entry.order and e.failure.exception == CHILD_FAILED)
    return entry.failure.kind == "killed" and entry.code in (-9, 137) and any(told)


def classify(entry: Entry, parsed: Traceback | None, earlier: Iterable[Entry]) -> None:
    """Fills in what ``entry`` is. ``parsed`` is its traceback, ``earlier`` what the run has shown before."""
    failure = entry.failure
    short = failure.exception.split("(", 1)[0].rsplit(".", 1)[-1]
    original = _ORIGINAL.search(failure.message)
    if remote := _REMOTE.match(failure.message):
        inner = remote.group(1).strip()
        entry.echo = True
        echoed = any(_same_message(inner, e.failure.message) for e in earlier if not e.failure.wrapper)
        failure.wrapper = echoed or not inner
        failure.message = inner or failure.message
    elif original is not None:
        inner, entry.echo = original.group(3), True
        failure.wrapper = any(_same_message(inner, e.failure.message) for e in earlier if not e.failure.wrapper)
        if not failure.wrapper:
            failure.exception, failure.message = original.group(1), inner
    elif (died := _DIED_STARTING.search(failure.message)) and int(died.group(1)) != SIGQUIT:
        failure.kind, entry.code = "killed", int(died.group(1))
    elif ended_process := _PROCESS_ENDED.match(failure.message):
        failure.wrapper, entry.code = True, int(ended_process[1])
    elif _RAY_HOST_OOM.search(failure.message):
        failure.kind, failure.exception = "killed", HOST_OOM
    elif _RAY_KILLED.search(failure.message):
        failure.kind = "killed"
    elif short in _TEARDOWN_CLASSES or _TEARDOWN_TEXT.search(failure.message):
        failure.wrapper = entry.teardown = True
    elif (
        short in _WRAPPER_CLASSES or _WRAPPER_TEXT.search(failure.message) or (short == "EOFError" and not entry.ready)
    ):
        failure.wrapper = True
        ended = _CORE_ENDED.search(failure.message)
        entry.code = int(ended.group(1)) if ended else None
    own = "Address already in use" in failure.message  # no peer has a part in this
    entry.soft = (short in _SOFT_CLASSES and not own) or _SOFT_TEXT.search(failure.message) is not None
    died_starting = failure.kind == "killed" and entry.code is not None
    if entry.soft and any(f.function in _TEARDOWN_FUNCTIONS for f in failure.frames):
        failure.wrapper = entry.teardown = True
    of_the_engine = original is not None or died_starting or (failure.wrapper and not entry.teardown)
    entry.client = not of_the_engine and _of_a_request(entry, parsed.head if parsed else "")
    entry.of_thread = any(f.function == "_bootstrap_inner" for f in failure.frames) and not any(
        f.function in _WARM_UP_FUNCTIONS or STARTUP_FUNCTIONS.match(f.function) for f in failure.frames
    )
    entry.of_process = not entry.client and any(f.function in _PROCESS_FUNCTIONS for f in failure.frames)
    if failure.cut and failure.frames and all(f.function in _ENTRY_FUNCTIONS for f in failure.frames):
        failure.wrapper = any(e.failure.process == failure.process and not e.client for e in earlier)
    files = [f.file for f in failure.frames]
    entry.user_code = bool(files) and (
        not any(map(_ENGINE_FILE.search, files)) or (_of_own_script(failure.frames) and not entry.soft)
    )
    entry.key = _key(failure.exception, failure.message) if failure.exception else ""


def _of_a_request(entry: Entry, head: str) -> bool:
    """Whether the exception was raised while one request was handled, outside the engine."""
    failure = entry.failure
    if DEVICE_TEXT.search(f"{failure.exception}: {failure.message}"):
        return False
    if any(f.function == "lifespan" or "/uvicorn/lifespan/" in f.file for f in failure.frames):
        return False  # the web application as a whole begins or ends there
    starting = any(f.function == "<module>" or STARTUP_FUNCTIONS.match(f.function) for f in failure.frames)
    looping = any(f.function in ("run_engine_core", "run_busy_loop") for f in failure.frames)
    transfer = (
        _TRANSFER_TEXT.search(failure.message)
        or any(_TRANSFER_FRAME.search(f"{f.file}:{f.function}") for f in failure.frames)
        or (bool(failure.frames) and _caught_in_transfer(failure.frames[0]))
    )
    if CLIENT_HEAD.search(head) or (transfer and not (starting or looping)):
        return True
    if _of_a_client_program(failure.frames) or any(_ROUTE_HANDLER.match(f.function) for f in failure.frames):
        return True
    # what runs at a module's top level is the program itself, not a handler of requests
    return (entry.ready or not starting) and any(_CLIENT_FRAMES.search(f.file) for f in failure.frames)


def _caught_in_transfer(outermost: Frame) -> bool:
    """Whether SGLang's thread that sends KV caught it itself: it marks the request as failed and takes the next."""
    return outermost.function == "transfer_worker" and "/disaggregation/" in outermost.file


def _of_a_client_program(frames: tuple[Frame, ...]) -> bool:
    """Whether the traceback is that of a program that called the server, pasted beside the server's log."""
    files = [frame.file for frame in frames]
    if any(_SERVER_FILE.search(file) for file in files):
        return False
    return any(_CLIENT_LIBRARY.search(file) for file in files)


def _of_own_script(frames: tuple[Frame, ...]) -> bool:
    """Whether a program's own file called other libraries than those that an engine is made of, and one raised."""
    own = frames[0].function == "<module>" and not _LIBRARY_FILE.search(frames[0].file)
    return own and not any(_SERVER_FILE.search(frame.file) for frame in frames)


def _same_message(a: str, b: str) -> bool:
    a, b = a.split("\n", 1)[0][:60], b.split("\n", 1)[0][:60]
    return bool(a) and (a.startswith(b) or b.startswith(a))
