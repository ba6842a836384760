"""On what kind of device a run is, and what is said of its share of it when the log ends before that is known."""

from __future__ import annotations

from pathlib import Path

import pytest

from analyzer.pipeline import explain
from tests.vllm.read import line, read

ARGS = line("vLLM API server version 0.10.1.1", "APIServer") + line(
    "non-default args: {'model': 'm', 'gpu_memory_utilization': 0.5}", "APIServer"
)
FOUND = line("Automatically detected platform {}.", "APIServer")
ENGINE = line("Initializing a V1 LLM engine (v0.10.1.1) with config: model='m', device_config={}, seed=0")
THREADS = line("OpenMP thread binding info: ")


@pytest.mark.parametrize(
    ("log", "platform"),
    [
        (ARGS, None),
        (FOUND.format("cuda") + ARGS, "cuda"),
        (FOUND.format("cpu") + ARGS + ENGINE.format("cpu"), "cpu"),
        (ARGS + ENGINE.format("cpu"), "cpu"),
        (ARGS + ENGINE.format("auto"), None),
        (ARGS + THREADS, "cpu"),
        (ARGS + line("Explicitly set (1/23.54) GiB for KV cache on node 0."), "cpu"),
    ],
)
def test_the_platform(log: str, platform: str | None) -> None:
    assert read(log).facts.value("engine.platform") == platform


@pytest.mark.parametrize(
    ("log", "confidence"),
    [
        (FOUND.format("cuda") + ARGS, "likely"),
        (ARGS, "possible"),
        (FOUND.format("cpu") + ARGS, None),
        (ARGS + THREADS, None),
    ],
)
def test_a_low_share_of_a_device_that_may_be_a_cpu(log: str, confidence: str | None, tmp_path: Path) -> None:
    file = tmp_path / "server.log"
    file.write_text(log)
    (run,) = explain([str(file)]).runs
    found = {finding.rule: finding for finding in run.findings}.get("KV052")
    assert (found.confidence if found else None) == confidence
    if confidence == "possible":
        assert found is not None and "on a CPU" in found.summary
