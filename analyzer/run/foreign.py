"""Whose failure it is: of SGLang or vLLM, or of another program, which is nothing to them in the same log."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from analyzer.framing.record import Record
from analyzer.run.model import Failure, Frame
from analyzer.run.plan import ENGINES

OTHER_ENGINES: dict[str, str] = {
    "tensorrt_llm": "TensorRT-LLM",
    "lmdeploy": "LMDeploy",
    "text_generation_server": "Text Generation Inference",
    "text_embeddings_server": "Text Embeddings Inference",
    "llama_cpp": "llama.cpp",
    "mlc_llm": "MLC LLM",
    "exllamav2": "ExLlamaV2",
    "ctranslate2": "CTranslate2",
    "aphrodite": "Aphrodite",
    "mlx_lm": "MLX LM",
    "lightllm": "LightLLM",
}
"""Packages of other programs that serve models, and their names."""

ENGINE_OF_PROGRAM = {"vllm": "vllm", "api_server.py": "vllm", "sglang": "sglang", "launch_server.py": "sglang"}
"""What starts a server, as a shell or an argument parser names it."""
_COMMAND = re.compile(
    rf"(?:^|[\s/])({'|'.join(map(re.escape, ENGINE_OF_PROGRAM))})(?: \w+)?: (?:error: |(?:command )?not found)", re.M
)
_VLLM_PROCESS = re.compile(
    r"(?:EngineCore|APIServer|ApiServer|VllmWorker|VllmWorkerProcess|RayWorkerWrapper|RayWorkerProc)(?:$|[_\d])"
    r"|Worker_(?:TP|PP|DP|EP|PCP|DCP)\d"
)
"""Process tags that vLLM puts before its lines, and the names of its actors, which ray puts there."""
_VLLM_TEXT = re.compile(
    r"^(?:Engine core initialization failed|EngineCore encountered an issue|WorkerProc init\w+ failed"
    r"|Paged attention: not enough Metal memory)"
)
_SGLANG_RANK = re.compile(r"(?:ATTN_)?(?:TP|PP|DP|EP|CP|DCP)\d+(?: [A-Z][A-Z_]*\d+)*$")
"""Ranks as SGLang writes them in its header; vLLM's stand in the names of its processes."""
_STACK = re.compile(r"File \"[^\"\n]*/(sglang|vllm)/|\b(sglang)::\w|\bscheduler_TP\d")
"""What shows whose process it is in a dump of the interpreter's or of native frames."""
_PLACE = re.compile(r"^.*-packages(?=/)|/(?:envs|virtualenvs|\.?venvs?)/[^/]+")
"""Where packages are kept: an environment is often called like one of them, whatever it is that runs there."""
_NOT_STARTED = frozenset({"command not found", "container runtime", "NUMA binding refused", "port taken"})
"""What keeps any program from starting; other lines of this kind end a process of which nothing else is known."""


def engine_of(failures: Sequence[Failure]) -> str | None:
    """The engine whose files a traceback passes through or whose command was refused, where no line shows it."""
    files = [_PLACE.sub("", frame.file) for failure in failures for frame in failure.frames]
    for engine in ENGINES:
        if any(re.search(rf"(?:^|/){engine}(?:_\w+)?/", file) for file in files):
            return engine
    for failure in failures:
        if failure.exception in ("bad arguments", "command not found") and (named := _COMMAND.search(failure.message)):
            return ENGINE_OF_PROGRAM[named[1]]
        package = failure.exception.partition(".")[0]
        if package in ENGINES:
            return package
        if _VLLM_PROCESS.match(failure.process) or _VLLM_TEXT.search(failure.message):
            return "vllm"
        if failure.kind != "exception" and (shown := _STACK.search(failure.text)):
            return shown[1] or "sglang"
    return None


def engine_of_process(record: Record | None) -> str | None:
    """The engine whose process tag a line bears, where no line is one that the engine is known to print."""
    if record is not None and _VLLM_PROCESS.match(record.process):
        return "vllm"
    return "sglang" if record is not None and _SGLANG_RANK.match(record.rank) else None


def of_a_library(cause: Failure) -> bool:
    """Whether the failure is no more than a line of a library or a closing word, so that a server must be shown."""
    return cause.kind in ("exit", "elsewhere") and cause.exception not in _NOT_STARTED


def other_engine(failures: Iterable[Failure]) -> str | None:
    """The other program whose files a traceback passes through, if it does."""
    return next((name for failure in failures if (name := _program(failure.frames)) is not None), None)


def is_foreign(frames: Iterable[Frame]) -> bool:
    """Whether a traceback is another program's: through its files, and not through those of SGLang or vLLM."""
    frames = list(frames)
    return _program(frames) is not None and not any("/sglang/" in f.file or "/vllm/" in f.file for f in frames)


def _program(frames: Iterable[Frame]) -> str | None:
    for frame in frames:
        for package, name in OTHER_ENGINES.items():
            if f"/{package}/" in frame.file:
                return name
    return None
