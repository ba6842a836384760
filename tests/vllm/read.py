"""Reads vLLM log text the way the program does, up to the run and its sizing model."""

from __future__ import annotations

from pathlib import Path

from analyzer.framing import frame
from analyzer.parsing import default_catalog
from analyzer.run.fold import RunFolder
from analyzer.run.model import Run

SAMPLES = Path(__file__).resolve().parents[2] / "samples" / "vllm"


def runs(text: str | bytes) -> list[Run]:
    """All runs of ``text``."""
    data = text.encode() if isinstance(text, str) else text
    catalog, folder = default_catalog(), RunFolder()
    for record in frame([data], "server.log"):
        folder.feed(record, catalog.match(record))
    return folder.runs()


def read(text: str | bytes) -> Run:
    """The only run of ``text``."""
    found = runs(text)
    assert len(found) == 1, [run.first_line for run in found]
    return found[0]


def sample(name: str) -> Run:
    """The run of a file of samples/vllm."""
    return read((SAMPLES / name).read_bytes())


def line(message: str, process: str = "EngineCore_DP0", level: str = "INFO") -> str:
    """One log line of ``process``."""
    return f"({process} pid=77) {level} 09-12 10:00:00 [module.py:123] {message}\n"
