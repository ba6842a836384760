"""Broken copies of a package, and the two packages of the field: each defect is found, the clean one is left alone."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from analyzer.evidence.consistency import check_package
from analyzer.evidence.model_dir import ModelFolder, inspect_model
from analyzer.evidence.modules import modules_of
from tests.evidence.packages import IGNORE, edit_json, hybrid, hybrid_layer, linear, shard

SMALL = {"hidden_size": 256, "intermediate_size": 512, "vocab_size": 1024, "num_attention_heads": 4,
         "num_key_value_heads": 2, "head_dim": 64, "linear_num_key_heads": 2, "linear_num_value_heads": 4,
         "linear_key_head_dim": 64, "linear_value_head_dim": 64}  # fmt: skip


def small(folder: Path, **changes: Any) -> Path:
    return hybrid(folder, **{"layers": 8, **SMALL, **changes})


def found(folder: Path) -> dict[str, int]:
    return {i.name: i.count for i in check_package(inspect_model(folder)) if i.count}


def plain_and_packed(folder: ModelFolder, ending: str) -> tuple[int, int]:
    """How many modules whose name ends in ``ending`` are plain, and how many are packed."""
    found = [m for m in modules_of(folder.all_tensors).values() if m.name.endswith(ending)]
    return sum(m.is_plain for m in found), sum(m.is_packed for m in found)


def test_clean_package_of_the_field_story(tmp_path: Path) -> None:
    """64 layers, 48 of them with a plain in_proj_a, none packed; MTP plain by ``re:^mtp.*``."""
    folder = inspect_model(hybrid(tmp_path / "m"))
    assert plain_and_packed(folder, "linear_attn.in_proj_a") == (48, 0)
    assert plain_and_packed(folder, "linear_attn.in_proj_qkv") == (0, 48)
    assert {i.name: i.count for i in check_package(folder) if i.count} == {"ignore_unmatched": 1}  # no vision tower
    assert folder.mtp_layers == 1 and folder.components["MTP"].bytes == 849_398_784


def test_package_whose_ignore_list_carries_another_prefix(tmp_path: Path) -> None:
    """The list says ``model.language_model.`` and plain, the files say ``model.`` and are packed."""
    ignore = [f"model.language_model.layers.{n}.linear_attn" for n in range(64) if (n + 1) % 4]
    folder = hybrid(tmp_path / "m", method="awq", prefix="model.", ignore=ignore, plain_ab=False)
    issues = found(folder)
    assert issues["ignore_prefix"] == 48
    assert issues["ignored_but_packed"] == 48 * 5
    assert issues["kernel_dims"] == 96  # in_proj_a and in_proj_b have 48 outputs


def test_wrong_prefix_in_a_pattern(tmp_path: Path) -> None:
    ignore = ["lm_head", "re:^model\\.language_model\\.layers\\..*linear_attn.*", "re:^mtp.*"]
    issues = found(small(tmp_path / "m", prefix="model.", ignore=ignore))
    assert issues["ignore_prefix"] == 1 and issues["ignored_but_packed"] == 6 * 3


def test_plain_layers_that_nothing_declares(tmp_path: Path) -> None:
    assert found(small(tmp_path / "m", ignore=["lm_head", "re:^mtp.*"])) == {"packed_expected": 12}
    undeclared_mtp = found(small(tmp_path / "n", ignore=IGNORE[:2]))
    assert undeclared_mtp == {"packed_expected": 7}


def test_packed_and_plain_twin(tmp_path: Path) -> None:
    name = "model.language_model.layers.0.mlp.gate_proj"
    assert found(small(tmp_path / "m", extra=linear(name, 512, 256), ignore=IGNORE[:3])) == {"twins": 1}


def test_declaration_against_content(tmp_path: Path) -> None:
    folder = small(tmp_path / "m")
    edit_json(folder / "config.json", lambda c: c.pop("quantization_config"))
    assert found(folder)["undeclared"] == 6 * 6 + 2 * 7
    plain = small(tmp_path / "n", method="")
    assert found(plain) == {}
    edit_json(plain / "config.json", lambda c: c.update(quantization_config={"quant_method": "awq", "bits": 4}))
    assert "declared_but_plain" in found(plain)


def _cut(folder: Path) -> None:
    path = folder / "model-00002-of-00004.safetensors"
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size - 1000)


def _lie(folder: Path) -> None:
    path = folder / "model-00001-of-00004.safetensors"
    with path.open("r+b") as file:
        file.write((1 << 40).to_bytes(8, "little"))


def _unindex_mtp(folder: Path) -> None:
    def change(index: dict[str, Any]) -> None:
        index["weight_map"] = {k: v for k, v in index["weight_map"].items() if not k.startswith("mtp")}

    edit_json(folder / "model.safetensors.index.json", change)


def _move_entry(folder: Path) -> None:
    def change(index: dict[str, Any]) -> None:
        index["weight_map"]["lm_head.weight"] = "model-00001-of-00004.safetensors"
        index["weight_map"].pop("model.language_model.norm.weight")

    edit_json(folder / "model.safetensors.index.json", change)


@pytest.mark.parametrize(
    ("harm", "expected"),
    [
        (lambda f: (f / "model-00003-of-00004.safetensors").unlink(), {"index_missing_files", "missing_shards"}),
        (lambda f: (f / "model_mtp.safetensors").unlink(), {"index_missing_files", "mtp_missing"}),
        (lambda f: shard(f / "left-over.safetensors", [("x.weight", "BF16", (2, 2))]), {"unindexed_files"}),
        (_unindex_mtp, {"mtp_unindexed", "unindexed_files"}),
        (_move_entry, {"index_missing_tensors", "unindexed_tensors"}),
        (_cut, {"truncated"}),
        (_lie, {"unreadable"}),
        (lambda f: edit_json(f / "config.json", lambda c: c["text_config"].update(vocab_size=2048)), {"shapes"}),
        (lambda f: edit_json(f / "config.json", lambda c: c["text_config"].update(num_key_value_heads=4)), {"shapes"}),
        (lambda f: edit_json(f / "config.json", lambda c: c["text_config"].update(num_hidden_layers=12)),
         {"missing_layers"}),
        (lambda f: edit_json(f / "config.json", lambda c: c["text_config"].update(mtp_num_hidden_layers=2)),
         {"mtp_count"}),
        (lambda f: edit_json(f / "config.json", lambda c: c["text_config"].pop("mtp_num_hidden_layers")),
         {"mtp_undeclared"}),
    ],
)  # fmt: skip
def test_broken_copies(tmp_path: Path, harm: Callable[[Path], Any], expected: set[str]) -> None:
    folder = small(tmp_path / "m", method="")
    assert found(folder) == {}
    harm(folder)
    assert expected <= set(found(folder))
    assert not set(found(folder)) - expected - {"missing_layers", "missing_tensors"}


def test_config_that_promises_mtp(tmp_path: Path) -> None:
    assert found(small(tmp_path / "m", mtp=False, ignore=IGNORE[:2])) == {"mtp_missing": 1}


def test_layer_that_lacks_a_module(tmp_path: Path) -> None:
    gone = "model.language_model.layers.3.self_attn.o_proj.weight"
    assert found(small(tmp_path / "m", method="", drop=[gone])) == {"missing_tensors": 1}


def test_dense_first_layers_of_a_mixture_are_no_gap(tmp_path: Path) -> None:
    folder = tmp_path / "moe"
    folder.mkdir()
    specs = []
    for index in range(4):
        name = f"model.layers.{index}"
        specs += [s for s in hybrid_layer("model.", index, {**_text(), "full_attention_interval": 1}, "")
                  if ".mlp." not in s[0]]  # fmt: skip
        specs += linear(f"{name}.mlp.gate_proj", 512, 256) if index == 0 else [
            *linear(f"{name}.mlp.experts.0.gate_proj", 64, 256), *linear(f"{name}.mlp.gate", 4, 256)
        ]  # fmt: skip
    shard(folder / "model.safetensors", specs)
    config = {"num_hidden_layers": 4, "hidden_size": 256, "num_attention_heads": 4, "num_key_value_heads": 2,
              "head_dim": 64, "attn_output_gate": True}  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config))
    assert found(folder) == {}


def _text() -> dict[str, Any]:
    return {**SMALL}


def test_an_explosive_pattern_is_not_tried(tmp_path: Path) -> None:
    folder = small(tmp_path / "m", ignore=[*IGNORE[:3], "re:(a+)+$", "re:[", "re:" + "a" * 5000])
    assert found(folder) == {"ignore_unmatched": 3}
