"""One server run as the later steps see it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from analyzer.events import Event
from analyzer.framing.record import Record
from analyzer.run.facts import Facts, Where

STAGES = ("arguments", "init", "weights", "pool", "graphs", "ready", "serving", "shutdown")
"""Stages of a run in order. ``ready``: the server says that it serves; ``serving``: a request was answered."""


@dataclass(slots=True)
class Frame:
    """One frame of a Python traceback."""

    file: str
    line: int
    function: str


@dataclass(slots=True)
class Failure:
    """One exception, assert, kill or watchdog that a log shows.

    ``where`` are the lines that show it: the exception's own last line first, then its traceback's first line.
    ``wrapper`` marks what only reports another failure (EngineDeadError, "See root cause above", sigquit).
    ``consequence`` marks what follows from an earlier failure or an orderly stop. ``cut``: the traceback has no end.
    """

    exception: str
    message: str
    where: tuple[Where, ...]
    first_line: int = 0
    frames: tuple[Frame, ...] = ()
    process: str = ""
    rank: str = ""
    ranks: tuple[str, ...] = ()
    stage: str = ""
    kind: str = "exception"
    """exception, killed, watchdog, exit (a line without an exception), elsewhere (only wrappers are in the log),
    program (what uses the engine failed, not the engine)"""
    wrapper: bool = False
    consequence: bool = False
    cut: bool = False
    request_level: bool = False
    """Only one request failed; the server went on."""
    text: str = ""
    """The whole traceback as text (bounded)."""
    spans: tuple[tuple[int, int], ...] = ()
    """First and last line of each record that shows it, its repetitions by other ranks included; bounded."""

    @property
    def headline(self) -> str:
        """The line of the message that says most; without a message, where it was raised."""
        said = headline(self.message)
        return said or (f"no message, raised in {self.frames[-1].function}" if self.frames else "no message")


_LOGGED = re.compile(r"(?:\[rank\d+\]:? ?)?\[[EWF]\d{3,4} [^\]\n]{1,90}\] ?(?:\[[^\]\n]{1,90}\] ?)?")


_PLACE = re.compile(r"\[[^\]\s]+\.\w+:\d+\]")
"""A place in the source of C++ that stands alone before what it says."""


def unprefixed(message: str) -> str:
    """``message`` without the header that PyTorch's C++ logger puts before it (``[E520 22:23:46.5 file.cpp:18] ``)."""
    match = _LOGGED.match(message)
    return message if match is None else message[match.end() :]


def headline(message: str) -> str:
    """The line of a failure's message that says most, without its full stop.

    Mostly the first one; pydantic, NCCL, triton and C++ put what matters on a later line.
    """
    lines = [line.strip() for line in unprefixed(message).split("\n") if line.strip()] or [""]
    best = lines[0]
    for before, line in pairwise(lines):
        if "validation error" in before or before == "Last error:" or re.match(r"at \d+:\d+:$", before):
            best = line
            break
        if line.startswith("what():") and before.startswith("terminate called"):
            best = line.removeprefix("what():").strip()
            break
    if best is lines[0] and len(lines) > 1 and (best.endswith((":", ",", " at")) or _PLACE.fullmatch(best)):
        best = f"{best} {lines[1]}"
    if best.startswith("!!"):
        best = best.strip("! ")
    return best.partition(" [type=")[0].removeprefix("Value error, ").rstrip(".: ")


def first_cause(failures: Sequence[Failure]) -> Failure | None:
    """The first failure that is neither wrapper nor consequence nor one request's own."""
    return next((f for f in failures if not (f.wrapper or f.consequence or f.request_level)), None)


@dataclass(slots=True)
class Run:
    """One server run: its facts, what happened, and how it ended."""

    id: int
    source: str
    first_line: int = 0
    last_line: int = 0
    engine: str | None = None
    version: str | None = None
    version_range: tuple[str, str] | None = None
    """Like ``(">=0.5.14", "<=0.5.17")``; either may be ``""``."""
    version_basis: str | None = None
    facts: Facts = field(default_factory=Facts)
    events: list[Event] = field(default_factory=list)
    """Recognised events but for the dense runtime ones, in order; bounded."""
    stages: dict[str, Where] = field(default_factory=dict)
    """Stage -> where it was first reached."""
    failures: list[Failure] = field(default_factory=list)
    """In order of time; the first that is neither wrapper nor consequence is the cause."""
    outcome: str = "unknown"
    """serving, degraded, crashed at startup, crashed at runtime, stopped, starting or unknown."""
    outcome_basis: tuple[Where, ...] = ()
    series: dict[str, Any] = field(default_factory=dict)
    """Summaries of runtime lines, JSON-ready."""
    notes: list[str] = field(default_factory=list)
    scary: list[Record] = field(default_factory=list)
    """Records that look frightening and that no grammar recognised; bounded."""
    kinds: dict[str, int] = field(default_factory=dict)
    """How often each kind of event occurred, dense ones included: what ``count(kind)`` in a rule gives. The folder
    counts while it feeds; where it is empty, ``events`` are counted."""

    @property
    def failure(self) -> Failure | None:
        """The first cause, or None."""
        return first_cause(self.failures)

    @property
    def stage(self) -> str:
        """The furthest stage reached, ``""`` for none."""
        return next((s for s in reversed(STAGES) if s in self.stages), "")
