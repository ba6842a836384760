"""Where one run ends and the next begins, in a stream that may hold a restart loop or several pasted attempts."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Protocol

from analyzer.events import Event
from analyzer.framing.record import Record
from analyzer.run.facts import Where
from analyzer.run.model import STAGES

BANNER, GIVEN, ARGUMENTS, ENGINE, COMMAND, PREAMBLE = "banner", "given", "arguments", "engine", "command", "preamble"
"""Start marks: vLLM's version line, its arguments, SGLang's arguments, vLLM's engine, a command, an image's head."""

_COMMAND = re.compile(
    r"^(?:[\w.@~:/()\[\] -]{0,80}[$#>%] +|\+ +)?(?:(?:sudo|nohup|exec|env|time) +|[A-Z_][A-Z0-9_]*=\S* +)*"
    r"(?:vllm +serve\b|sglang +serve\b|python\S* +-m +(?:vllm\.entrypoints|sglang\.launch_server|sglang )"
    r"|docker +(?:run|start|restart)\b|torchrun )"
)
_PREAMBLE = re.compile(
    r"^(?:=+\n)?== (?:vLLM|SGLang|CUDA|PyTorch|Triton)[^=]*==|^NVIDIA Release "
    r"|^\S{0,300}sglang/launch_server\.py:\d+: UserWarning: "  # SGLang, before it prints its arguments
)
_ONE_OF_SEVERAL = re.compile(r"^ApiServer_\d+$")


@dataclass(frozen=True, slots=True)
class Node:
    """One node of a run over several: its rank, how many there are, what they serve."""

    rank: int
    count: int
    model: str

    def joins(self, other: Node) -> bool:
        """Whether ``other`` is another node of the same run."""
        return self.count == other.count >= 2 and self.model == other.model and self.rank != other.rank


class Progress(Protocol):
    """What the splitter must know of the run that is being read."""

    marks: dict[str, Mark]
    nodes: set[Node]
    order: int
    stages: dict[str, Where]

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


def node_of(event: Event | None) -> Node | None:
    """The node whose arguments ``event`` shows; None if it shows none."""
    if event is None or event.kind not in ("server_args", "non_default_args"):
        return None
    arguments = next((v for v in event.fields.values() if isinstance(v, dict)), {})
    model = str(arguments.get("model_path") or arguments.get("model") or arguments.get("model_tag") or "")
    return Node(_count(arguments.get("node_rank"), 0), _count(arguments.get("nnodes"), 1), model)


def _count(value: object, default: int) -> int:
    return value if isinstance(value, int) else default


def command_or_preamble(text: str) -> str | None:
    """Which mark a raw line is: a command that starts a server, or the head that an image prints before it."""
    if _COMMAND.match(text):
        return COMMAND
    return PREAMBLE if _PREAMBLE.match(text) else None


def begins_run(mark: str, record: Record, run: Progress, node: Node | None = None) -> bool:
    """Whether ``record``, a start mark, begins another run than ``run``. ``node``: whose arguments it shows."""
    if node is not None and node not in run.nodes and any(map(node.joins, run.nodes)):
        return False  # another node of the same run
    if not run.marks and not run.stage:
        # only a preamble so far; but a failure before it (docker's, the shell's) ended an attempt
        return run.ended and mark in (COMMAND, PREAMBLE, BANNER)
    reached = STAGES.index(run.stage) if run.stage else 0
    before = run.marks.get(mark)
    if mark == GIVEN:
        return run.ended and (before is not None or "shutdown" in run.stages)
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
