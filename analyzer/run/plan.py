"""What each kind of event means for the folding of a run, looked up once for each kind."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from functools import cache
from typing import Protocol

from analyzer.events import Event
from analyzer.run import split
from analyzer.run.model import Run
from analyzer.run.unfinished import STEP_KINDS

ENGINES = ("sglang", "vllm")
_FOLDERS = {"sglang": "SglangFolder", "vllm": "VllmFolder"}
COMMON_STAGE_OF = {
    "http_app_started": "ready",
    "http_running": "ready",
    "http_access": "serving",
    "processed_prompts": "serving",
}
"""Stages of shapes that both engines print. SGLang is ready only when it says so itself: its warm-up comes later."""

_MARK_OF = {
    ("vllm", "api_server_version"): split.BANNER,
    ("vllm", "banner"): split.BANNER,
    ("vllm", "engine_init"): split.ENGINE,
    ("vllm", "non_default_args"): split.GIVEN,
    ("sglang", "server_args"): split.ARGUMENTS,
}


class EngineFolder(Protocol):
    """What each engine's own folder gives."""

    def feed(self, event: Event) -> None:
        """Takes one event of this engine."""

    def fill(self, run: Run) -> None:
        """Writes what was learnt into ``run``."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How an event of one kind is folded. ``dense``: one of the many lines of a serving run, not kept one by one."""

    engine: bool
    stage: str
    dense: bool
    mark: str | None
    step: bool


@cache
def plan_of(engine: str, kind: str) -> Plan:
    """The plan for ``kind`` of grammar folder ``engine``."""
    stage = _stages_of(engine).get(kind, "")
    return Plan(engine in ENGINES, stage, stage == "serving", _MARK_OF.get((engine, kind)), kind in STEP_KINDS)


@cache
def _stages_of(engine: str) -> dict[str, str]:
    if engine not in ENGINES:
        return COMMON_STAGE_OF
    table: dict[str, str] = importlib.import_module(f"analyzer.run.{engine}").STAGE_OF
    return table


def engine_folder(engine: str) -> EngineFolder:
    """A fresh folder of ``engine``."""
    folder: EngineFolder = getattr(importlib.import_module(f"analyzer.run.{engine}"), _FOLDERS[engine])()
    return folder
