"""Plans against pools that real servers printed: no log is read, only the folder and the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from analyzer.errors import UserError
from analyzer.evidence.model_dir import inspect_model
from analyzer.planning.command import launch_of, target_of, tokens_of
from analyzer.planning.forecast import Forecast, document, forecast, judge
from analyzer.planning.plan_page import write, write_answer
from analyzer.planning.search import Target, search
from analyzer.report.sheet import Sheet, cells
from tests.evidence.packages import config_of, edit_json, hybrid, shard

H200 = "143771MiB"
NEXTN = ("--speculative-algorithm NEXTN --speculative-num-steps 3 --speculative-eagle-topk 1 "
         "--speculative-num-draft-tokens 4 --speculative-draft-model-path DIR")  # fmt: skip


@pytest.fixture(scope="module")
def wrapper(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """16 layers of the hybrid in BF16 with its MTP layer: the shape that was run on an H200."""
    return hybrid(tmp_path_factory.mktemp("m") / "wrapper-16l", layers=16, method="")


@pytest.fixture(scope="module")
def int4(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return hybrid(tmp_path_factory.mktemp("m") / "hybrid-27b-int4")


def plan(folder: Path, flags: str, engine: str = "sglang", version: str = "0.5.17", memory: str = H200) -> Forecast:
    words = [str(folder), *flags.replace("DIR", str(folder)).split()]
    return forecast(launch_of(engine, version, memory, words))


def rules(found: Forecast) -> dict[str, str]:
    return {f.cause: f.severity for f in judge(found).findings}


def test_wrapper_with_misread_draft_depth_as_measured(wrapper: Path) -> None:
    """774,081 tokens on hardware; four times as many with one field in the draft's config (3,096,324)."""
    found = plan(wrapper, f"--mem-fraction-static 0.8 {NEXTN}")
    assert found.tokens == pytest.approx(774_081, rel=0.005)
    assert found.low < found.tokens < found.high
    assert found.running == 48
    causes = rules(found)
    assert causes["pool-cell-inflation"] == "critical" and "pool-draft-overhead" in causes
    edit_json(wrapper / "config.json", lambda c: c["text_config"].update(num_nextn_predict_layers=1))
    mended = plan(wrapper, f"--mem-fraction-static 0.8 {NEXTN}")
    edit_json(wrapper / "config.json", lambda c: c["text_config"].pop("num_nextn_predict_layers"))
    assert mended.tokens == pytest.approx(3_096_324, rel=0.005)
    assert "pool-cell-inflation" not in rules(mended)


def test_without_speculation_as_measured(wrapper: Path) -> None:
    found = plan(wrapper, "--mem-fraction-static 0.8")
    assert found.tokens == pytest.approx(3_281_428, rel=0.005)
    assert found.running == pytest.approx(251, abs=1)


def test_the_defect_is_gone_in_the_next_version(wrapper: Path) -> None:
    found = plan(wrapper, f"--mem-fraction-static 0.8 {NEXTN}", version="0.5.18")
    assert "pool-cell-inflation" not in rules(found)


def test_dense_as_measured(tmp_path: Path) -> None:
    """Qwen3 dense, 12 layers, fraction 0.3: 765,360 tokens; 4,096 running."""
    config = {"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "hidden_size": 4096,
              "num_hidden_layers": 12, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128,
              "vocab_size": 151936, "max_position_embeddings": 40960, "torch_dtype": "bfloat16"}  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(config))
    shard(tmp_path / "model.safetensors", [("model.layers.0.mlp.up_proj.weight", "BF16", (7_120_041_984 // 2, 1))])
    found = plan(tmp_path, "--mem-fraction-static 0.3 --cuda-graph-max-bs 16")
    assert found.tokens == pytest.approx(765_360, rel=0.005)
    assert found.running == 4096
    capped = plan(tmp_path, "--mem-fraction-static 0.3 --max-total-tokens 6000")
    assert capped.tokens == 6000 and "pool-user-cap" in rules(capped)


def test_two_nodes_with_and_without_mtp_as_printed(int4: Path) -> None:
    """vLLM, TP 2, fp8 KV: the worker's 74.27 GiB gave 4,676,407 tokens, 73.81 GiB with one MTP layer 4,305,153."""
    flags = "-tp 2 --kv-cache-dtype fp8 --max-model-len 262144 --max-num-seqs 8 --kv-cache-memory-bytes "
    plain = plan(int4, f"{flags}{74.27 * 2**30:.0f}", "vllm", "0.24.0", "121GiB")
    drafted = plan(int4, f"{flags}{73.81 * 2**30:.0f} --spec-method mtp --spec-tokens 1", "vllm", "0.24.0", "121GiB")
    assert (int(plain.tokens), round(plain.concurrency, 2)) == (4_676_407, 17.84)
    assert (int(drafted.tokens), round(drafted.concurrency, 2)) == (4_305_153, 16.42)
    assert int(plan(int4, f"{flags}{74.27 * 2**30:.0f}", "vllm", "0.20.0", "121GiB").tokens) == 3104 // 4 * 1568


def test_vllm_uniform_model(tmp_path: Path) -> None:
    """2 layers, 2 KV heads of 32 in BF16: 512 bytes a token; 1 GiB holds 2,097,152 tokens (real CPU runs)."""
    config = {"architectures": ["Qwen3ForCausalLM"], "hidden_size": 64, "num_hidden_layers": 2, "head_dim": 32,
              "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 384,
              "max_position_embeddings": 4096}  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(config))
    shard(tmp_path / "model.safetensors", [("model.embed_tokens.weight", "BF16", (384, 64))])
    found = plan(tmp_path, "--kv-cache-memory-bytes 1073741824", "vllm", "0.32.0", "80GiB")
    assert found.tokens == 2_097_152 and found.concurrency == 512
    default = plan(tmp_path, "", "vllm", "0.19.1", "80GiB")
    assert default.run.facts.value("sizing.fraction") == 0.90
    assert plan(tmp_path, "", "vllm", "0.20.2", "80GiB").run.facts.value("sizing.fraction") == 0.92


def test_trouble_is_said(int4: Path, tmp_path: Path) -> None:
    assert "nothing is left" in plan(int4, "--mem-fraction-static 0.4", memory="24GiB").trouble
    refused = plan(int4, "--max-model-len 262144", "vllm", "0.24.0", "24GiB")
    assert "does not fit" in refused.trouble or "no available" in refused.trouble
    (tmp_path / "config.json").write_text(json.dumps(config_of({"num_hidden_layers": 2}, ignore=None)))
    assert "no readable weights" in plan(tmp_path, "").trouble or "not known" in plan(tmp_path, "").trouble


def test_config_alone_and_the_size_of_the_weights(wrapper: Path, tmp_path: Path) -> None:
    """Before the download: config.json and the index, or a given size, plan like the files themselves."""
    for name in ("config.json", "model.safetensors.index.json"):
        (tmp_path / name).write_bytes((wrapper / name).read_bytes())
    whole = plan(wrapper, "--mem-fraction-static 0.8")
    by_index = plan(tmp_path, "--mem-fraction-static 0.8")
    assert by_index.tokens == pytest.approx(whole.tokens, rel=0.01)  # the index counts the MTP part too
    assert "shard index" in by_index.notes[-1]
    (tmp_path / "model.safetensors.index.json").unlink()
    words = [str(tmp_path), "--mem-fraction-static", "0.8"]
    given = forecast(launch_of("sglang", "0.5.17", H200, words, weights="17262202112"))
    assert given.tokens == pytest.approx(whole.tokens, rel=0.001)


def test_foreign_memory_lowers_the_plan(wrapper: Path) -> None:
    words = [str(wrapper), "--mem-fraction-static", "0.8"]
    alone = forecast(launch_of("sglang", "0.5.17", H200, words))
    shared = forecast(launch_of("sglang", "0.5.17", H200, words, taken="20GiB"))
    cell, states = 16384 * 1.9, 20 * 2**30 * 0.8
    assert alone.tokens - shared.tokens == pytest.approx(states / cell, rel=0.02)


def test_search_reaches_the_target_with_a_command_line(int4: Path) -> None:
    words = [str(int4), *["--max-model-len", "131072", "--kv-cache-dtype", "fp8", "--tp", "1"]]
    launch = launch_of("vllm", "0.24.0", "32GiB", words)
    answer = search(launch, Target(131_072, 4))
    assert answer is not None and answer.changes
    again = forecast(
        launch_of("vllm", "0.24.0", "32GiB", [w for w in answer.command.split() if w not in ("vllm", "serve")])
    )
    assert again.tokens == answer.found.tokens
    assert again.low >= 4 * 131_072 and again.running >= 4
    assert search(launch, Target(131_072, 100_000)) is None


def test_search_leaves_alone_what_is_enough(wrapper: Path) -> None:
    launch = launch_of("sglang", "0.5.18", H200, [str(wrapper), "--mem-fraction-static", "0.8"])
    answer = search(launch, Target(32_768, 4))
    assert answer is not None and set(answer.changes) <= {"context_length", "max_running_requests"}


def test_search_does_not_lower_a_limit_that_is_enough(tmp_path: Path) -> None:
    words = [str(hybrid(tmp_path / "m", layers=8)), "--max-model-len", "8192"]
    answer = search(launch_of("vllm", "0.24.0", "80GiB", words), Target(16_384, 4))
    assert answer is not None and answer.changes == {"max_model_len": 16_384}
    assert "--max-num-seqs" not in answer.command


@pytest.mark.parametrize("width", [50, 80, 110])
def test_a_context_beyond_the_model_is_said_and_no_note_is_cut(wrapper: Path, width: int) -> None:
    launch = launch_of("vllm", "0.24.0", H200, [str(wrapper)])
    longer = 2 * (launch.folder.config.context or 0)
    answer = search(launch, Target(longer, 1))
    sheet = Sheet(width)
    found = forecast(launch)
    write(found, judge(found), sheet)
    within = text_of(sheet)
    assert "RoPE" not in within
    assert "peak of a batch of 8,192 tokens, before profiling" in within
    assert "not asked for: gpu_memory_utilization 0.92" in within
    sheet = Sheet(width)
    write_answer(answer, Target(longer, 1), sheet)
    assert f"a context of {longer:,} is refused at the start" in text_of(sheet)


def text_of(sheet: Sheet) -> str:
    """What a sheet says, its lines joined."""
    lines = ("".join(p if isinstance(p, str) else p[0] for p in line) for line in sheet.lines)
    return " ".join(" ".join(lines).split())


@pytest.mark.parametrize("width", [80, 110])
def test_page_and_document(wrapper: Path, width: int) -> None:
    found = plan(wrapper, f"--mem-fraction-static 0.8 {NEXTN} --trust-remote-code")
    judgement = judge(found)
    sheet = Sheet(width, blocks=False)
    write(found, judgement, sheet)
    lines = ["".join(p if isinstance(p, str) else p[0] for p in line) for line in sheet.lines]
    assert all(cells(line) <= width for line in lines)
    assert "--trust-remote-code" in "\n".join(lines)
    about = json.loads(json.dumps(document(found, judgement)))
    assert about["pool_tokens_low"] < about["pool_tokens"] < about["pool_tokens_high"]
    assert about["report"]["runs"][0]["findings"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--tp", "2"], "give one model folder"),
        (["/nowhere", "--tp", "2"], "no model folder /nowhere"),
        (["DIR", "--tp"], "needs a value"),
        (["DIR", "--mem-fraction-static", "lots"], "not a number"),
        (["DIR", "--mem-fraction-static", "-1"], "not a number"),
    ],
)
def test_wrong_words(wrapper: Path, words: list[str], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        launch_of("sglang", "0.5.17", "80GiB", [w.replace("DIR", str(wrapper)) for w in words])


def test_wrong_sizes(wrapper: Path) -> None:
    for size in ("much", "-3GiB", "99999999TiB"):
        with pytest.raises(UserError):
            launch_of("sglang", "0.5.17", size, [str(wrapper)])
    assert launch_of("sglang", "", "80", [str(wrapper)]).total == 80 * 2**30
    assert target_of(launch_of("sglang", "", "80", [str(wrapper)]), None, 3) == Target(262_144, 3)


def test_folder_is_read_once_for_a_search(int4: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    launch = launch_of("vllm", "0.24.0", "80GiB", [str(int4)])
    monkeypatch.setattr("analyzer.evidence.model_dir.read_shard", _fail)
    search(launch, Target(32_768, 2))


def _fail(*_: Any) -> Any:
    raise AssertionError("files were read again")


def test_inspect_model_is_what_plan_reads(int4: Path) -> None:
    assert inspect_model(int4).mtp_layers == 1


@pytest.mark.parametrize(
    ("memory", "serves", "said"),
    [
        ("80GiB", (True, True, True), ""),
        ("26GiB", (False, True, True), "With every estimate at its worst this launch will not serve: one request"),
        ("25GiB", (False, False, True), "This launch will hardly serve: one request"),
        ("24GiB", (False, False, False), "This launch will not serve: one request"),
        ("16GiB", (False, False, False), "This launch will not serve: no available memory"),
    ],
)
def test_a_forecast_is_no_more_certain_than_its_estimates(
    tmp_path: Path, memory: str, serves: tuple[bool, bool, bool], said: str
) -> None:
    """A dense model of 16 GiB with one full context of 40,960 tokens (5.6 GiB), in vLLM."""
    config = {
        "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "hidden_size": 4096, "num_hidden_layers": 36,
        "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 151936,
        "intermediate_size": 12288, "max_position_embeddings": 40960, "torch_dtype": "bfloat16",
    }  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(config))
    found = forecast(launch_of("vllm", "0.24.0", memory, [str(tmp_path)], weights="16GiB"))
    assert (not found.at_worst, not found.trouble, not found.at_best) == serves
    assert 0 <= found.low <= found.tokens <= found.high
    judgement = judge(found)
    sheet = Sheet(80)
    write(found, judgement, sheet)
    page = ["".join(piece[0] for piece in line) for line in sheet.lines]
    assert page[1].strip() == f"Qwen3ForCausalLM, {float(memory[:-3]):.2f} GiB device, TP 1 PP 1"
    told = " ".join(" ".join(page[:8]).split())
    assert said in told and ("serve" in told) == bool(said)
    assert "exact" not in told
    assert bool(document(found, judgement)["trouble_at_worst"]) == (not serves[0])


@pytest.mark.parametrize(("text", "tokens"), [("32k", 32_000), ("32K", 32_768), ("262,144", 262_144), ("5", 5)])
def test_a_wanted_context_is_written_as_the_engines_take_it(text: str, tokens: int) -> None:
    assert tokens_of("--target-context", text) == tokens


@pytest.mark.parametrize("text", ["", "many", "0", "-3", "32kk"])
def test_a_wanted_context_that_is_no_number_is_refused(text: str) -> None:
    with pytest.raises(UserError, match=r"--target-context .*like 32768 or 32k"):
        tokens_of("--target-context", text)
