"""Where one run ends and the next begins, in a stream that may hold a restart loop or several pasted attempts."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Protocol

from analyzer.framing.record import Record
from analyzer.run.model import STAGES

BANNER, ARGUMENTS, ENGINE, COMMAND, PREAMBLE = "banner", "arguments", "engine", "command", "preamble"

_MARKS: tuple[tuple[str, re.Pattern[str]], ...] = (
    (BANNER, re.compile(r"vLLM (?:API )?server version |█ +version \d")),
    (ARGUMENTS, re.compile(r"server_args=(?:ServerArgs\(|\{)")),
    (ENGINE, re.compile(r"Initializing an? (?:V[01] )?LLM engine \(v")),
)
_COMMAND = re.compile(
    r"^(?:[\w.@~:/()\[\] -]{0,80}[$#>%] +|\+ +)?(?:(?:sudo|nohup|exec|env|time) +|[A-Z_][A-Z0-9_]*=\S* +)*"
    r"(?:vllm +serve\b|sglang +serve\b|python\S* +-m +(?:vllm\.entrypoints|sglang\.launch_server|sglang )"
    r"|docker +(?:run|start|restart)\b|torchrun )"
)
_PREAMBLE = re.compile(r"^(?:=+\n)?== (?:vLLM|SGLang|CUDA|PyTorch|Triton)[^=]*==|^NVIDIA Release ")
_ONE_OF_SEVERAL = re.compile(r"^ApiServer_\d+$")


class Progress(Protocol):
    """What the splitter must know of the run that is being read."""

    marks: dict[str, Mark]
    order: int

    @property
    def ended(self) -> bool: ...
    @property
    def stage(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Mark:
    """A start mark that a run has had: its place in the run, its process, its time."""

    order: int
    pid: int | None
    time: float | None


def mark_of(record: Record) -> str | None:
    """Which start mark ``record`` is, if it is one."""
    text = record.text
    if record.form == "raw":
        if _COMMAND.match(text):
            return COMMAND
        if _PREAMBLE.match(text):
            return PREAMBLE
    if record.form in ("traceback", "bar", "stack"):
        return None
    head = text if len(text) < 400 else text[:400]
    return next((name for name, pattern in _MARKS if pattern.search(head)), None)


def begins_run(mark: str, record: Record, run: Progress) -> bool:
    """Whether ``record``, a start mark, begins another run than ``run``."""
    if not run.marks and not run.stage:
        # only a preamble so far; but a failure before it (docker's, the shell's) ended an attempt
        return run.ended and mark in (COMMAND, PREAMBLE, BANNER)
    reached = STAGES.index(run.stage) if run.stage else 0
    before = run.marks.get(mark)
    if mark == BANNER:
        if before is None:
            return run.ended or reached >= STAGES.index("weights") or ENGINE in run.marks
        return not _same_start(before, record, run)
    if mark == ARGUMENTS:
        return before is not None and (run.ended or reached >= STAGES.index("weights"))
    if mark == ENGINE:
        if before is None or run.marks.get(BANNER, before).order > before.order:
            return False
        other_process = record.pid is None or record.pid != before.pid
        return run.ended or (reached >= STAGES.index("graphs") and other_process)
    return run.ended or (reached >= STAGES.index("weights") and mark == COMMAND and _attempt(run))


def _same_start(before: Mark, record: Record, run: Progress) -> bool:
    """The version line and the logo that follows it, or the same line of several API servers of one run."""
    if run.ended or (run.stage and STAGES.index(run.stage) >= STAGES.index("weights")):
        return False
    if record.pid == before.pid:
        return run.order - before.order <= 40
    near = record.time is None or before.time is None or abs(record.time - before.time) <= 30
    return near and bool(_ONE_OF_SEVERAL.match(record.process))


def _attempt(run: Progress) -> bool:
    """Whether the run has had a start of its own, so that a command after it is another attempt."""
    return any(name in run.marks for name in (BANNER, ARGUMENTS, ENGINE))
