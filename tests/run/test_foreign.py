"""A traceback of another program is not diagnosed as a failure of SGLang or vLLM."""

from __future__ import annotations

from pathlib import Path

import pytest

from analyzer import pipeline
from analyzer.resources import data_dir

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


@pytest.mark.parametrize(
    ("name", "package", "same"),
    [
        ("failures/sglang_0.5.17_dense_too_small_mf", "text_generation_server", True),
        ("failures/sglang_0.5.17_dense_too_small_mf", "x", False),
        ("sglang/wrapper_nextn", "lmdeploy", True),
        ("sglang/wrapper_nextn", "x", False),
    ],
)
def test_another_program_s_traceback_among_a_server_s_lines(
    name: str, package: str, same: bool, tmp_path: Path
) -> None:
    sample = data_dir("samples") / f"{name}.log"
    lines = sample.read_text().splitlines(keepends=True)
    at = next(n for n, line in enumerate(lines) if "Load weight begin" in line)
    path = tmp_path / "x.log"
    path.write_text("".join([*lines[:at], FOREIGN.format(package=package), *lines[at:]]))
    (alone,), (both,) = (pipeline.explain([str(log)]).runs for log in (sample, path))
    assert (both.outcome == alone.outcome) and bool(both.failure) is bool(alone.failure)
    assert ([f.rule for f in both.findings] == [f.rule for f in alone.findings]) is same
