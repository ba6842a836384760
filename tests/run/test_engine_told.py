"""Whose log it is, where no line is one that an engine is known to print."""

from __future__ import annotations

from pathlib import Path

import pytest

from analyzer import pipeline
from analyzer.report.model import RunReport
from tests.run.helpers import only


def explained(text: str, folder: Path) -> RunReport:
    path = folder / "x.log"
    path.write_text(text)
    (run,) = pipeline.explain([str(path)]).runs
    return run


def test_ranks_in_the_header_are_sglangs() -> None:
    text = "[2026-02-17 23:52:12 TP7] a line of some kernel\nMemory access fault by GPU node-7 on address (nil).\n"
    assert only(text).engine == "sglang"
    assert only(text.replace(" TP7", "")).engine is None


STACK = """Fatal Python error: Segmentation fault

Current thread 0x0000716 (most recent call first):
  File "/s/{0}/srt/managers/scheduler.py", line 1894 in run_event_loop
"""


def test_a_dump_of_the_interpreter_shows_whose_process_it_was_and_what_it_did() -> None:
    run = only(STACK.format("sglang"))
    assert (run.engine, run.outcome) == ("sglang", "crashed at runtime")
    assert only(STACK.format("other")).engine is None


def test_the_line_that_names_the_fault_is_quoted_not_the_first_of_the_stack() -> None:
    text = "frame #15: sglang::scheduler_TP0() [0x59e4a6]\nframe #16: a() [0x1]\nFatal Python error: Aborted\n"
    failure = only(text).failure
    assert failure is not None and failure.headline == "Fatal Python error: Aborted"


@pytest.mark.parametrize(
    ("text", "engine", "rule", "outcome"),
    [
        (
            "RuntimeError: Hybrid (mamba/linear-attention) state cache is too small to serve any requests.\n",
            "sglang", "SF032", "crashed at startup",
        ),
        ("AssertionError: Can not alloc mamba cache\n", "sglang", "RF002", "crashed at runtime"),
        ("RuntimeError: something that neither says\n", None, "SF095", "crashed at startup"),
    ],
)  # fmt: skip
def test_what_one_engine_says_when_it_fails_tells_which_it_is(
    text: str, engine: str | None, rule: str, outcome: str, tmp_path: Path
) -> None:
    run = explained(text, tmp_path)
    assert run.failure is not None
    assert (run.engine, run.failure.rule, run.outcome) == (engine, rule, outcome)


def test_a_server_that_loses_transfers_serves(tmp_path: Path) -> None:
    text = (
        "[2026-02-26 12:53:08 TP4] Prefill transfer failed for request rank=4 req.rid='a' req.bootstrap_room=6 with "
        "exception KVTransferError(bootstrap_room=6): Decode instance could be dead\n"
    )
    assert explained(text, tmp_path).outcome == "degraded"


def test_a_scheduler_that_the_launcher_misses_did_not_start(tmp_path: Path) -> None:
    text = (
        "[12-11 17:52:52] Rank 0 scheduler is dead. Please check if there are relevant logs.\n"
        "[12-11 17:52:54] Exit code: -9\n"
    )
    run = explained(text, tmp_path)
    assert run.failure is not None
    assert (run.outcome, run.failure.cause) == ("crashed at startup", "crash-killed")


def test_what_pytorch_says_and_what_both_engines_say_tells_neither() -> None:
    oom = (
        "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 768.00 MiB. GPU 0 has a total capacity of"
        " 15.87 GiB of which 860.50 MiB is free.\n"
    )
    unknown = (
        "ValueError: Model architectures ['X'] are not supported for now. Supported architectures: dict_keys([])\n"
    )
    assert only(oom).engine is None
    assert only(unknown).engine is None


def test_the_allocators_sentence_alone_is_a_failure() -> None:
    text = (
        "Load weight begin. avail mem=17.81 GB\n"
        "NPU out of memory. Tried to allocate 296.00 MiB\n"
        "  (NPU 10; 61.27 GiB total; 17.36 GiB allocated; 183 MiB free)\n"
    )
    run = only(text)
    assert (run.engine, run.outcome) == ("sglang", "crashed at startup")
    named = "Process freetoken-TP0-scheduler:\nTraceback (most recent call last):\nRuntimeError: x\n"
    assert only(named).engine is None
