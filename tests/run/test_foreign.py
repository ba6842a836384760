"""A traceback of another program is not diagnosed as a failure of SGLang or vLLM."""

from __future__ import annotations

from pathlib import Path

import pytest

from analyzer import pipeline

FOREIGN = """[07/01/2026-10:00:00] [TRT-LLM] [E] Failed to initialize executor on rank 0
Traceback (most recent call last):
  File "/usr/lib/python3.12/dist-packages/{package}/executor/worker.py", line 10, in worker_main
    raise RuntimeError("CUDA out of memory")
RuntimeError: CUDA out of memory
"""


@pytest.mark.parametrize(
    ("package", "foreign"), [("tensorrt_llm", True), ("lmdeploy", True), ("vllm", False), ("x", False)]
)
def test_whose_traceback(package: str, foreign: bool, tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    path.write_text(FOREIGN.format(package=package))
    (run,) = pipeline.explain([str(path)]).runs
    assert (run.failure is None) is foreign
    assert (run.outcome == "unknown") is foreign
    assert any("another" in note or "not the log" in note for note in run.notes) is foreign
