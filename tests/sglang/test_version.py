"""The version bracket from the shapes of lines."""

from __future__ import annotations

import pytest

from analyzer.run.sglang_version import version_key
from tests.sglang.read import read, sample, stamped


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["Init torch distributed ends. mem usage=0.09 GB"], (">=0.4.5", "<=0.5.8")),
        (["Init torch distributed ends. elapsed=0.06 s, mem usage=0.09 GB"], (">=0.5.9", "<=0.5.20")),
        (["Memory baseline taken. mem usage=0.10 GB"], (">=0.5.21", "")),
        (
            [
                "Using KV cache dtype: torch.bfloat16",
                "Prefill batch, #new-seq: 1, #new-token: 6, #cached-token: 0, token usage: 0.00, #running-req: 0,"
                " #queue-req: 0, #pending-token: 0, cuda graph: True, input throughput (token/s): 3.00",
            ],
            (">=0.5.11", "<=0.5.12"),
        ),
        (
            ["Capture target decode CUDA graph begin. backend=full, num_tokens_per_bs=1, bs=[1, 2], avail mem=9.00 GB"],
            (">=0.5.14", "<=0.5.15"),
        ),
        (["server_args={'model_path': '/m', 'tp_size': 1}"], (">=0.5.19", "")),
        (["server_args=ServerArgs(model_path='/m', mamba_scheduler_strategy='auto')"], (">=0.5.7", "<=0.5.13")),
        (
            [
                "Decode batch. #running-req: 1, #token: 60, token usage: 0.00, gen throughput (token/s): 5.91,"
                " #queue-req: 0"
            ],
            ("", "<=0.5.3"),
        ),
    ],
)
def test_bracket(lines: list[str], expected: tuple[str, str]) -> None:
    run = read(stamped(*lines))
    assert run.version is None and run.version_range == expected and run.version_basis == "shapes"


def test_banner_beats_shapes() -> None:
    run = read("SGLang Version 0.5.11+05fb6a52\n" + stamped("Using KV cache dtype: torch.bfloat16"))
    assert (run.version, run.version_basis, run.version_range) == ("0.5.11+05fb6a52", "banner", None)


def test_lines_that_contradict_claim_no_range() -> None:
    run = read(stamped("Using KV cache dtype: torch.bfloat16", "Memory baseline taken. mem usage=0.10 GB"))
    assert run.version_range is None and any("do not overlap" in note for note in run.notes)


def test_real_start() -> None:
    assert sample("hybrid_nextn_ratio02.log").version_range == (">=0.5.17", "<=0.5.18")


def test_order_of_versions() -> None:
    versions = ["0.4.6rc1", "0.4.6", "0.4.6.post5", "0.4.9", "0.5.1", "0.5.10", "0.5.10.post1", "0.5.11+05fb6a52"]
    keys = [version_key(version) for version in versions]
    assert keys == sorted(keys) and len(set(keys)) == len(keys)
