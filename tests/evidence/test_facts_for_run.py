"""The folder as witness of a real log: what it adds, what it leaves to the log, and what it must not claim."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from analyzer.evidence.model_dir import facts_for_run
from analyzer.evidence.model_facts import uses_own_draft
from analyzer.pipeline import Options, explain
from analyzer.resources import data_dir
from analyzer.run.facts import Facts
from analyzer.run.model import Run
from tests.evidence.packages import hybrid, linear, shard


@pytest.fixture(scope="module")
def wrapper(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return hybrid(tmp_path_factory.mktemp("m") / "wrapper-16l", layers=16, method="")


def run_with(engine: str = "sglang", version: str = "0.5.17", **facts: Any) -> Run:
    run = Run(1, "x.log", engine=engine, version=version)
    for name, value in facts.items():
        run.facts.add(name.replace("__", "."), value, (), rank="")
    return run


def test_folder_gives_geometry_and_files(wrapper: Path) -> None:
    run = run_with(
        args__tensor_parallel_size=2, args__kv_cache_dtype="fp8_e4m3", spec__enabled=True, spec__method="EAGLE"
    )
    facts = {f.name: f for f in facts_for_run(run, wrapper)}
    assert facts["model.cell"].value == 4096
    assert facts["model.cell"].where[0].source == "config.json"
    assert facts["spec.layers"].value == 1
    assert all(f.origin == "model-dir" for f in facts.values())


def test_log_wins_and_slot_is_made_exact(wrapper: Path) -> None:
    run = run_with(model__arch="Qwen3_5ForCausalLM", state__slot_bytes=38_500_000)
    facts = {f.name: f.value for f in facts_for_run(run, wrapper)}
    assert "model.arch" not in facts and facts["model.folder_arch"] == "Qwen3_5ForConditionalGeneration"
    assert facts["model.folder_fits"] is True
    assert facts["state.slot_bytes"] == 38_486_016
    far = {f.name: f.value for f in facts_for_run(run_with(state__slot_bytes=19_000_000), wrapper)}
    assert "state.slot_bytes" not in far


def test_a_folder_of_another_model_gives_no_figures(wrapper: Path) -> None:
    facts = {f.name: f.value for f in facts_for_run(run_with(model__arch="LlamaForCausalLM"), wrapper)}
    assert facts == {"model.folder_arch": "Qwen3_5ForConditionalGeneration", "model.folder_fits": False}
    fallback = {f.name for f in facts_for_run(run_with(model__arch="TransformersForCausalLM"), wrapper)}
    assert "model.cell" in fallback


def test_another_drafts_file_is_not_made_up(wrapper: Path, tmp_path: Path) -> None:
    run = run_with(spec__method="EAGLE3", args__model_path="/m", args__speculative_draft_model_path="/eagle")
    assert not [f.name for f in facts_for_run(run, wrapper) if f.name.startswith("draft.")]
    (tmp_path / "config.json").write_text('{"architectures": ["LlamaForCausalLMEagle3"], "num_hidden_layers": 1, '
                                          '"hidden_size": 64, "num_attention_heads": 2, "head_dim": 32}')  # fmt: skip
    shard(tmp_path / "model.safetensors", linear("midlayer.self_attn.q_proj", 64, 128))
    facts = {f.name: f.value for f in facts_for_run(run, wrapper, tmp_path)}
    assert facts["draft.weights.on_disk"] == 64 * 128 * 2 and facts["draft.layers"] == 1


@pytest.mark.parametrize(
    ("facts", "own"),
    [
        ({}, True),
        ({"spec.method": "ngram"}, False),
        ({"spec.method": "EAGLE", "args.model_path": "/m", "args.speculative_draft_model_path": "/m"}, True),
        ({"spec.method": "EAGLE", "args.model_path": "/m", "args.speculative_draft_model_path": "/d"}, False),
        ({"spec.method": "EAGLE", "args.model_path": "/m", "args.speculative_draft_model_path": "/d",
          "draft.arch": "Qwen3_5ForCausalLMMTP"}, True),
        ({"spec.method": "mtp"}, True),
    ],
)  # fmt: skip
def test_whose_draft_it_is(facts: dict[str, str], own: bool) -> None:
    known = Facts()
    for name, value in facts.items():
        known.add(name, value, (), rank="")
    assert uses_own_draft(known) is own


def test_explain_with_the_folder_is_exact(wrapper: Path) -> None:
    """The real log of the misread draft depth: with the folder the sizing needs nothing from the pool itself."""
    log = str(data_dir("samples") / "sglang" / "wrapper_nextn.log")
    run = explain([log], Options(model_dir=wrapper)).runs[0]
    assert run.sizing is not None and run.sizing.error is not None
    assert abs(run.sizing.error) < 0.001
    assert run.facts["draft.weights.on_disk"].value == 849_398_784
    assert {f.cause for f in run.findings} >= {"pool-cell-inflation", "pool-draft-overhead"}
    assert not [f for f in run.findings if f.rule.startswith(("MP", "KV12"))]
