"""Four layers of evidence for speculative decoding; the verdict never exceeds the weakest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from analyzer.live.spec_proof import NOT_NEEDED, PROVED, REFUTED, UNKNOWN, Proof, prove
from analyzer.pipeline import read_runs
from analyzer.run.facts import Fact, Where
from analyzer.run.model import Run

SAMPLES = Path(__file__).parents[2] / "samples"


def run_with(origin: str = "log", /, **facts: Any) -> Run:
    run = Run(1, "x.log", 1, 9, engine="vllm")
    for number, (name, value) in enumerate(facts.items(), 1):
        fact = Fact(name.replace("__", "."), value, "", (Where("x.log", number, name),), origin=origin)
        run.facts.put(fact)
    return run


def layers(proof: Proof) -> list[str]:
    return [layer.state for layer in proof.layers]


EAGLE = {"spec__enabled": True, "spec__method": "eagle", "draft__weights__loaded": 1 << 30}


def test_ngram_needs_no_weights() -> None:
    proof = prove(run_with(spec__enabled=True, spec__method="ngram", metrics__drafted=54, metrics__accepted=41))
    assert layers(proof) == [NOT_NEEDED, PROVED, NOT_NEEDED, PROVED]
    assert proof.verdict == PROVED
    assert "75.9 %" in proof.layers[3].text
    assert "no measure of throughput" in proof.text


def test_nothing_drafted_refutes() -> None:
    proof = prove(run_with(spec__enabled=True, spec__method="ngram", metrics__drafted=0, metrics__accepted=0,
                           metrics__generated=2056))  # fmt: skip
    assert proof.verdict == REFUTED


def test_without_the_folder_accepted_tokens_do_not_prove_all() -> None:
    proof = prove(run_with(**EAGLE, metrics__drafted=100, metrics__accepted=60))
    assert layers(proof) == [UNKNOWN, PROVED, PROVED, PROVED]
    assert proof.verdict == UNKNOWN


def test_a_folder_without_draft_tensors_refutes() -> None:
    run = run_with(**EAGLE, metrics__drafted=100, metrics__accepted=60)
    run.facts.put(Fact("spec.layers", 0, "layers", (Where("config.json"),), origin="model-dir"))
    assert prove(run).verdict == REFUTED


def test_no_request_no_proof() -> None:
    proof = prove(run_with(**EAGLE, metrics__drafted=0, metrics__accepted=0, metrics__generated=0))
    assert proof.layers[3].state == UNKNOWN
    assert "Send a request" in proof.text


@pytest.mark.parametrize(
    ("sample", "verdict", "counted"),
    [
        ("sglang/wrapper_nextn.log", REFUTED, REFUTED),
        ("sglang/hybrid_nextn_ratio02.log", REFUTED, REFUTED),
        ("sglang/wrapper_nospec.log", REFUTED, UNKNOWN),
        ("vllm/cpu_0.32.0_ngram_spec_greedy.log", PROVED, PROVED),
        ("failures/vllm_0.24.0_normal.log", REFUTED, UNKNOWN),
    ],
)
def test_real_logs(sample: str, verdict: str, counted: str) -> None:
    proof = prove(read_runs([str(SAMPLES / sample)])[0])
    assert (proof.verdict, proof.layers[3].state) == (verdict, counted), proof


def test_a_server_without_speculation_is_said_to_be_off() -> None:
    proof = prove(read_runs([str(SAMPLES / "sglang/wrapper_nospec.log")])[0])
    assert "is off" in proof.text
    assert not proof.layers[3].how
