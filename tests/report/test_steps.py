"""The step at which a start failed: what its functions tell comes before the last line printed."""

from __future__ import annotations

from pathlib import Path

import pytest

from analyzer import pipeline

_AT = "[2026-08-10 09:47:14 TP0] "
START = "".join(
    _AT + line + "\n"
    for line in (
        "Load weight begin. avail mem=60.49 GB",
        "Load weight end. elapsed=93.30 s, type=LlamaForCausalLM, avail mem=13.43 GB, mem usage=47.06 GB.",
        "KV Cache is allocated. #tokens: 32768, K size: 0.10 GB, V size: 0.10 GB",
        "Memory pool end. avail mem=13.23 GB",
    )
)
FAILED = _AT + (
    "Scheduler hit an exception: Traceback (most recent call last):\n"
    '  File "/sgl/python/sglang/srt/managers/scheduler.py", line 4762, in run_scheduler_process\n'
    "    x()\n"
    '  File "/sgl/python/sglang/srt/managers/scheduler.py", line 1602, in {function}\n'
    "    y()\n"
    '  File "/sgl/python/sglang/srt/models/deepseek_v2.py", line 1445, in forward_deepep\n'
    "    z()\n"
    "RuntimeError: something that no rule knows:\n"
    "the figures of it\n\n"
)


@pytest.mark.parametrize(
    ("function", "stage", "said"),
    [
        ("event_loop_normal", "warm-up", "it failed in its warm-up."),
        ("init_device_graphs", "graphs", "it failed while it captured CUDA graphs."),
        ("some_function", "pool", "it failed after its pool was sized."),
    ],
)
def test_the_functions_of_a_failure_tell_its_step(function: str, stage: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    path.write_text(START + FAILED.format(function=function))
    (run,) = pipeline.explain([str(path)]).runs
    assert run.failure is not None
    assert run.failure.stage == stage
    assert said in run.verdict
    assert "something that no rule knows: the figures of it" in run.verdict


def test_a_failure_after_the_engine_came_up_was_no_capture(tmp_path: Path) -> None:
    prefix = "(EngineCore pid=310) INFO 06-01 21:42:59 "
    up = (
        f"{prefix}[gpu_model_runner.py:5131] Model loading took 21.93 GiB memory and 281.243837 seconds\n"
        f"{prefix}[gpu_model_runner.py:6460] Graph capturing finished in 5 secs, took 0.32 GiB\n"
        f"{prefix}[core.py:302] init engine (profile, create kv cache, warmup model) took 128.32 s\n"
    )
    failed = 'Traceback (most recent call last):\n  File "/c/vllm/v1/utils.py", line 537, in x\n    y\nKeyError: 1\n'
    path = tmp_path / "x.log"
    path.write_text(up + failed)
    (run,) = pipeline.explain([str(path)]).runs
    assert run.failure is not None and run.failure.stage == "engine-up"
    assert "it failed after its engine was up." in run.verdict
