"""Reads log text the way the program does, up to the run and its sizing model."""

from __future__ import annotations

from pathlib import Path

from analyzer.framing import frame
from analyzer.parsing import default_catalog
from analyzer.run.fold import RunFolder
from analyzer.run.model import Run

SAMPLES = Path(__file__).resolve().parents[2] / "samples" / "sglang"


def read(text: str | bytes) -> Run:
    """The only run of ``text``."""
    data = text.encode() if isinstance(text, str) else text
    catalog, folder = default_catalog(), RunFolder()
    for record in frame([data], "server.log"):
        folder.feed(record, catalog.match(record))
    runs = folder.runs()
    assert len(runs) == 1, [run.first_line for run in runs]
    return runs[0]


def sample(name: str) -> Run:
    """The run of a file of samples/sglang."""
    return read((SAMPLES / name).read_bytes())


def stamped(*messages: str, rank: str = "") -> str:
    """``messages`` as SGLang prints them, one second apart."""
    tag = f" {rank}" if rank else ""
    return "".join(f"[2026-09-01 10:00:{second:02d}{tag}] {text}\n" for second, text in enumerate(messages))
