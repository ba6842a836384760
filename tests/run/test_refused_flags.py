"""The flag that an argument parser refused: its nearest relative, if there is one, and whose flag it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from analyzer.pipeline import explain
from analyzer.run.refused_flags import _PAIRS, _flags, facts_of_refusal, nearest

NEAR, RELEASE, ENGINE = "argument.near", "argument.other_release", "argument.other_engine"


@pytest.mark.parametrize(
    ("refusal", "wanted"),
    [
        ("vllm: error: unrecognized arguments: --max-model-length-tokens 5", {NEAR: "--max-model-len"}),
        ("vllm serve: error: unrecognized arguments: --tensor-paralel-size=2", {NEAR: "--tensor-parallel-size"}),
        ("api_server.py: error: unrecognized arguments: --memory-gpu-utilization", {NEAR: "--gpu-memory-utilization"}),
        ("launch_server.py: error: unrecognized arguments: x --mem_frction_static 1", {NEAR: "--mem-fraction-static"}),
        ("launch_server.py: error: unrecognized arguments: --what --tp-sizes 2", {NEAR: "--tp-size"}),
        ("vllm: error: unrecognized arguments: --swap-space 4", {RELEASE: "vLLM"}),
        ("vllm: error: unrecognized arguments: --no-enable-chunked-prefill", {RELEASE: "vLLM"}),
        ("vllm: error: unrecognized arguments: --context-length 9", {ENGINE: "SGLang", NEAR: "--max-model-len"}),
        ("launch_server.py: error: unrecognized arguments: --max_num_seqs 9",
         {ENGINE: "vLLM", NEAR: "--max-running-requests"}),
        ("vllm: error: unrecognized arguments: --disable-mla", {ENGINE: "SGLang", NEAR: None}),
        ("vllm: error: unrecognized arguments: --enable-everything", {}),
        ("launch_server.py: error: unrecognized arguments: --enable-radix-cache", {}),
        ("launch_server.py: error: unrecognized arguments: --cache 1", {}),
    ],
)  # fmt: skip
def test_what_is_known_of_it(refusal: str, wanted: dict[str, str]) -> None:
    found = facts_of_refusal(refusal, None)
    assert found.pop("argument.refused").startswith("--")
    assert found == wanted


@pytest.mark.parametrize(
    "refusal",
    [
        "vllm: error: unrecognized arguments: serve it",
        "vllm: error: argument --port: invalid int value: 'x'",
        "other.py: error: unrecognized arguments: --max-model-lenn 5",
    ],
)
def test_nothing_is_said_where_nothing_is_known(refusal: str) -> None:
    assert facts_of_refusal(refusal, None) == {}


def test_the_engine_of_the_run_decides_where_the_program_does_not() -> None:
    assert (
        facts_of_refusal("my.py: error: unrecognized arguments: --max-model-lenn 5", "vllm")[NEAR] == "--max-model-len"
    )


def test_of_two_that_are_equally_near_none_is_named() -> None:
    assert nearest("some-flags", frozenset({"some-flag1", "some-flag2"})) is None


def test_flags_that_do_the_same_are_flags() -> None:
    for sglang, vllm in _PAIRS:
        assert sglang in _flags("sglang")
        assert vllm.removeprefix("no-") in _flags("vllm")


def test_the_report_names_it(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text("usage: vllm [-h]\nvllm: error: unrecognized arguments: --max-model-length-tokens 5\n")
    (finding,) = explain([str(log)]).runs[0].findings
    assert finding.rule == "SF001" and finding.summary.endswith("take is --max-model-len.")
