"""Lines that bear on life and death of a run: deaths, kills, watchdogs, refusals, orders to stop, closing sentences.

They are searched in the text of records whether or not a grammar knows them, because they count most where a log is
mangled: glued to another line, in a paste that lost its prefixes, printed by a shell, a kernel or a container runtime.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

DEATH, KILL, WATCHDOG, FATAL, STOP, WRAPPER = "death", "kill", "watchdog", "fatal", "stop", "wrapper"

HOST_OOM = "out of memory (host)"
"""Label of a kill that the kernel, the container runtime or ray put down to the host's memory."""


@dataclass(frozen=True, slots=True)
class Signal:
    """One such line. ``label`` stands for the exception's class in a report; ``code`` is an exit code it names."""

    kind: str
    label: str
    text: str
    code: int | None = None
    index: int = 0
    """Line of the record's text that shows it."""


@dataclass(frozen=True, slots=True)
class _Shape:
    kind: str
    label: str
    pattern: str


_SHAPES: tuple[_Shape, ...] = (
    # a process of the server is gone, without an error of its own in this line
    _Shape(DEATH, "process died", r"Subprocess \S+ \(pid=\d+\) crashed with exit code (?P<c1>-?\d+)"),
    _Shape(DEATH, "process died", r"Scheduler or DataParallelController \S+ terminated with (?P<c2>-?\w+)"),
    _Shape(DEATH, "process died", r"[Ss]cheduler(?: process)? (?:is dead|died)\b"),
    _Shape(DEATH, "engine process died", r"Engine core proc(?:ess)? \S+ died unexpectedly"),
    _Shape(DEATH, "engine process died", r"MPClient: engine core exited unexpectedly"),
    _Shape(DEATH, "worker died", r"Worker proc \S+ died unexpectedly(?: \(exit code: (?P<c3>-?\w+)\))?"),
    _Shape(DEATH, "worker died", r"Worker \S+ pid \d+ died, exit code: (?P<c4>-?\d+)"),
    _Shape(DEATH, "worker died", r"(?:A worker|The actor|The node) (?:\S+ )?(?:died|is dead|was killed) "),
    _Shape(DEATH, "health check failed", r"Health check failed\. Server couldn't get a response from detokenizer"),
    # killed, and who says so is not the server
    _Shape(KILL, HOST_OOM, r"(?:Out of memory|[Mm]emory cgroup out of memory): Kill(?:ed)? process \d+"),
    _Shape(KILL, HOST_OOM, r"oom-kill:constraint=|invoked oom-killer|\bOOMKilled\b(?!\W+false)"),
    _Shape(KILL, HOST_OOM, r"Task was killed due to the node running low on memory"),
    _Shape(KILL, "killed", r"(?:^|\n)(?:\S+: line \d+: +)?(?:\[\d+\][+-]? +)?(?:\d+ )?Killed(?:$|\n| {2,}\S)"),
    _Shape(KILL, "killed", r"(?:exited with code|terminated with exit code|exit status|Exited \() ?(?P<c5>137|143|139|134)\b"),
    _Shape(FATAL, "segmentation fault", r"!{3,} ?Segfault encountered ?!{3,}|\*\*\* SIGSEGV|Segmentation fault(?: \(core dumped\))?"),
    _Shape(FATAL, "abort", r"Aborted \(core dumped\)|\*\*\* SIGABRT received|terminate called after throwing an instance of"),
    _Shape(FATAL, "abort", r"terminate called without an active exception"),
    _Shape(FATAL, "bus error", r"Bus error(?: \(core dumped\))?"),
    _Shape(FATAL, "interpreter fault", r"Fatal Python error: (?!none_dealloc_never)"),
    # stuck
    _Shape(WATCHDOG, "watchdog", r"Watchdog timeout \(self\.watchdog_timeout="),
    _Shape(WATCHDOG, "watchdog", r"watchdog timeout \([^)\n]*self\.soft=False"),
    _Shape(WATCHDOG, "collective timeout", r"Watchdog caught collective operation timeout"),
    _Shape(WATCHDOG, "engine timeout", r"Timed out waiting for engine core processes to start"),
    _Shape(WATCHDOG, "engine timeout", r"Engine iteration timed out\. This should never happen"),
    # refused before or outside Python's own exceptions
    _Shape(FATAL, "bad arguments", r"(?:^|\n)(?:usage: .*\n)*[\w. /-]+: error: (?:unrecognized arguments|argument |the following arguments)"),
    _Shape(FATAL, "bad arguments", r"(?:^|\n)[\w. /-]+: error: (?:ambiguous option|invalid choice|one of the arguments|expected )"),
    _Shape(FATAL, "command not found", r"(?:^|\n)\S*sh: (?:line )?(?:\d+: )?\S+: (?:command )?not found"),
    _Shape(FATAL, "command not found", r"(?:^|\n)\S*(?:sh|python3?): .{1,300}: (?:\[Errno 2\] )?No such file or directory"),
    _Shape(FATAL, "container runtime", r"Error response from daemon: |nvidia-container-cli: |OCI runtime create failed|exec format error"),
    _Shape(FATAL, "no KV memory", r"is larger than the profiled value -\d"),
    # somebody asked it to stop
    _Shape(STOP, "SIGTERM", r"SIGTERM received|[Rr]eceived (?:signal )?(?:SIGTERM|SIGINT|15\b)|got SIGTERM|Signal SIGTERM"),
    _Shape(STOP, "stop", r"\[shutdown\] [^:\n]+: (?:shutdown triggered|trigger received signal)"),
    _Shape(STOP, "stop", r"Shutdown initiated \(timeout="),
    _Shape(STOP, "stop", r"Shutting down FastAPI HTTP server|Gracefully stopping http server|Gracefully exiting\.\.\."),
    _Shape(STOP, "stop", r"INFO:? +(?:\S+ )*Shutting down$|^Shutting down$|Waiting for application shutdown"),
    _Shape(STOP, "interrupt", r"(?:^|\n)\^C|(?:^|\n)KeyboardInterrupt\b|EngineCore interrupted|Keyboard interrupt received"),
    # closing sentences that point back at something else
    _Shape(WRAPPER, "child failed", r"[Rr]eceived sigquit from a child proces|SIGQUIT received\. signum="),
    _Shape(WRAPPER, "engine failed", r"Engine core initialization failed|Engine process failed to start"),
    _Shape(WRAPPER, "engine dead", r"MQLLMEngine is already dead|AsyncLLM output_handler failed|\(engine dead\)"),
    _Shape(WRAPPER, "engine dead", r"Got fatal signal from worker processes|Engine loop is not running"),
    _Shape(WRAPPER, "engine failed", r"(?:EngineCore|WorkerProc) (?:failed to start|hit an exception|failed|encountered a fatal error)\."),
    _Shape(WRAPPER, "engine failed", r"Initialization failed\. (?:Please see the error messages above|warmup error)"),
)  # fmt: skip

_HINT = re.compile(
    r"(?i)d(?:ied|ead)\b|crash|kill|terminat|watchdog|timed out|fault|abort|SIG[A-Z]{3}|shut|exit|stop|interrupt|\^C"
    r"|error|not found|No such file|profiled value -|sigquit|failed|format error|fatal|low on memory"
)


@cache
def _compiled() -> tuple[tuple[_Shape, re.Pattern[str]], ...]:
    return tuple((shape, re.compile(shape.pattern)) for shape in _SHAPES)


def signal_of(text: str) -> Signal | None:
    """The first signal in ``text``, deaths before closing sentences; None for an ordinary text."""
    if _HINT.search(text) is None:
        return None
    for shape, pattern in _compiled():
        if match := pattern.search(text):
            start = match.start() + (match.group(0)[:1] == "\n")
            index = text.count("\n", 0, start)
            line = text[text.rfind("\n", 0, start) + 1 :].split("\n", 1)[0].strip()
            return Signal(shape.kind, shape.label, line[:600], _code(match), index)
    return None


def _code(match: re.Match[str]) -> int | None:
    """The exit code that a match names, if it is a number."""
    for value in match.groupdict().values():
        if value is not None:
            try:
                return int(value)
            except ValueError:
                return None
    return None
