"""A failure of another program is not diagnosed as one of SGLang or vLLM; a refused command names the engine."""

from __future__ import annotations

from pathlib import Path

import pytest

from analyzer import pipeline
from analyzer.resources import data_dir
from tests.run.helpers import only

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


@pytest.mark.parametrize(
    ("line", "engine", "outcome"),
    [
        ("bash: vllm: command not found", "vllm", "crashed at startup"),
        ("/bin/sh: 1: sglang: not found", "sglang", "crashed at startup"),
        ("bash: serve.sh: command not found", None, "crashed at startup"),
        ("vllm serve: error: unrecognized arguments: --foo", "vllm", "crashed at startup"),
        ("launch_server.py: error: unrecognized arguments: --foo 4", "sglang", "crashed at startup"),
        ("mytool: error: unrecognized arguments: --foo", None, "unknown"),
        ("docker: Error response from daemon: could not select device driver", None, "crashed at startup"),
        ("Memory access fault by GPU node-3 (Agent handle: 0x13e852f0) on address 0x77d445e00000.", None, "unknown"),
    ],
)
def test_a_line_alone_says_who_did_not_start(line: str, engine: str | None, outcome: str) -> None:
    run = only(f"{line}\n")
    assert run.failure is not None
    assert (run.engine, run.outcome) == (engine, outcome)
