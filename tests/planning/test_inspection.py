"""The inspection of a package as it is published, as document and as page."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from analyzer.cli.inspect import command
from analyzer.evidence.model_dir import inspect_model
from analyzer.evidence.model_facts import model_facts
from analyzer.planning.inspection import Serving, document, inspect
from analyzer.planning.inspection_page import write
from analyzer.report.sheet import Sheet, cells
from tests.evidence.packages import edit_json, hybrid

GIB = 1 << 30


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return hybrid(tmp_path_factory.mktemp("models") / "hybrid-27b-int4")


def test_components_and_caches(package: Path) -> None:
    about = document(inspect(package, Serving("sglang", "0.5.17")))
    parts = {name: part["bytes"] for name, part in about["components"].items()}
    assert parts["embedding"] == parts["head"] == 248320 * 5120 * 2
    assert parts["MTP"] == 849_398_784
    assert sum(parts.values()) == about["files"]["tensor_bytes"]
    cache = about["cache"]
    assert (cache["kv_layers"], cache["state_layers"], cache["bytes_per_token"]) == (16, 48, 65536)
    assert cache["bytes_per_token_by_type"]["fp8"] == 32768  # the field story's 32.0 KiB per token
    assert about["mtp"] == {"declared": 1, "field": "mtp_num_hidden_layers", "in_text_config": True,
                            "layers_in_files": 1}  # fmt: skip
    assert [f["rule"] for f in about["findings"]] == ["MP003"]
    json.dumps(about)


def test_facts_of_a_rank(package: Path) -> None:
    folder = inspect_model(package)
    one = {f.name: f.value for f in model_facts(folder, kv_dtype="fp8_e4m3")}
    two = {f.name: f.value for f in model_facts(folder, kv_dtype="fp8_e4m3", tp=2)}
    assert one["model.cell"] == 32768 and two["model.cell"] == 16384
    assert one["draft.weights.on_disk"] == 849_398_784
    assert one["model.vocab_bytes"] == 2 * 248320 * 5120 * 2
    assert one["spec.layers"] == 1 and one["model.context"] == 262144
    assert 0.5 <= two["weights.on_disk"] / one["weights.on_disk"] < 0.51
    assert one["weights.on_disk"] + one["draft.weights.on_disk"] == sum(t.bytes for t in folder.tensors)


def test_experts_and_stages(package: Path) -> None:
    folder = inspect_model(package)
    stages = {f.name: f.value for f in model_facts(folder, pp=2)}
    assert stages["weights.on_disk"] < 0.6 * sum(t.bytes for t in folder.tensors)


@pytest.mark.parametrize("width", [80, 60])
def test_page_fits_the_width(package: Path, width: int) -> None:
    sheet = Sheet(width, blocks=False)
    write(inspect(package, Serving()), sheet)
    lines = ["".join(p if isinstance(p, str) else p[0] for p in line) for line in sheet.lines]
    assert all(cells(line) <= width for line in lines)
    text = "\n".join(lines)
    for word in ("Qwen3_5ForConditionalGeneration", "linear attention", "65,536 bytes", "MTP", "PACKAGE"):
        assert word in text


def test_command_prints_json_and_returns_the_contract_status(package: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command(package, json=True) == 0
    assert json.loads(capsys.readouterr().out)["schema"] == "kvautopsy.model/1"
    assert command(package, fail_on="info") == 1


def test_rules_on_the_package_with_the_other_prefix(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ignore = [f"model.language_model.layers.{n}.linear_attn" for n in range(8) if (n + 1) % 4]
    folder = hybrid(tmp_path / "m", layers=8, method="awq", prefix="model.", ignore=ignore, plain_ab=False)
    found = {f.rule: f for f in inspect(folder, Serving()).findings}
    assert found["MP001"].severity == "critical" and found["MP001"].confidence == "proved"
    assert found["MP002"].explained_by == "MP001"
    assert "model.layers.0.linear_attn.in_proj_qkv" in found["MP001"].summary
    assert "MP006" in found  # in_proj_a and in_proj_b have 48 outputs and are packed
    assert command(folder) == 1
    page = capsys.readouterr().out
    assert "MP001" in page and "\x1b" not in page


def test_hostile_names_do_not_reach_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = hybrid(tmp_path / "m", layers=4, method="", extra=[("a\x1b[31m\u202e.weight", "BF16", (2, 2))])
    edit_json(folder / "config.json", lambda c: c.update(architectures=["X\x1b]0;title\x07"]))
    command(folder)
    command(folder, tensors=True)
    out = capsys.readouterr().out
    assert "\x1b" not in out and "\u202e" not in out and "\x07" not in out
