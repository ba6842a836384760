"""Headers that tell the truth are read exactly; headers that lie are refused with a sentence, in bounded memory."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from analyzer.errors import UserError
from analyzer.evidence.gguf import config_of, read_gguf
from analyzer.evidence.model_dir import inspect_model
from analyzer.evidence.safetensors import HeaderError, read_shard
from tests.evidence.packages import hybrid, shard


def raw(path: Path, header: bytes, data: int = 0, length: int | None = None) -> Path:
    size = len(header) if length is None else length
    path.write_bytes(size.to_bytes(8, "little") + header + b"\0" * data)
    return path


def entry(**changes: object) -> bytes:
    return json.dumps({"a": {"dtype": "BF16", "shape": [2, 3], "data_offsets": [0, 12], **changes}}).encode()


def test_sparse_shard_is_read_without_its_data(tmp_path: Path) -> None:
    size = shard(tmp_path / "m.safetensors", [("a", "BF16", (1 << 20, 1 << 14)), ("b", "F8_E4M3", (3,))])
    read = read_shard(tmp_path / "m.safetensors")
    assert [(t.name, t.dtype, t.shape, t.bytes) for t in read.tensors] == [
        ("a", "BF16", (1 << 20, 1 << 14), 1 << 35), ("b", "F8_E4M3", (3,), 3)
    ]  # fmt: skip
    assert size == (1 << 35) + 3 and not read.problems and not read.cut


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "too short"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "Git LFS pointer"),
        ((1 << 62).to_bytes(8, "little") + b"{}", "more than the format allows"),
        ((5000).to_bytes(8, "little") + b"{}", "holds only 10"),
        ((2).to_bytes(8, "little") + b"[]", "no JSON object"),
        ((4).to_bytes(8, "little") + b"\xff\xfe{}", "no valid JSON"),
        ((7).to_bytes(8, "little") + b'{"a":1}', "without dtype"),
    ],
)
def test_lies_are_refused(tmp_path: Path, content: bytes, sentence: str) -> None:
    path = tmp_path / "m.safetensors"
    path.write_bytes(content)
    with pytest.raises(HeaderError, match=sentence):
        read_shard(path)


@pytest.mark.parametrize("change", [{"shape": [-2]}, {"shape": [2.5]}, {"data_offsets": [12, 0]}, {"shape": [True]}])
def test_impossible_tensors_are_refused(tmp_path: Path, change: dict[str, object]) -> None:
    with pytest.raises(HeaderError, match="impossible"):
        read_shard(raw(tmp_path / "m.safetensors", entry(**change), 12))


def test_twice_declared_and_nested_headers(tmp_path: Path) -> None:
    twice = b'{"a":{"dtype":"U8","shape":[],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[],"data_offsets":[0,1]}}'
    with pytest.raises(HeaderError, match="twice"):
        read_shard(raw(tmp_path / "m.safetensors", twice, 1))
    with pytest.raises(HeaderError, match="no valid JSON"):
        read_shard(raw(tmp_path / "n.safetensors", b"[" * 200_000))


def test_contradictions_are_told(tmp_path: Path) -> None:
    shape = read_shard(raw(tmp_path / "a.safetensors", entry(shape=[2, 4]), 12))
    assert "needs 16" in shape.problems[0]
    cut = read_shard(raw(tmp_path / "b.safetensors", entry(), 5))
    assert cut.cut and cut.tensors[0].missing_bytes == 7
    extra = read_shard(raw(tmp_path / "c.safetensors", entry(), 20))
    assert "8 bytes at the end" in extra.problems[0]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=200))
def test_any_bytes_are_a_header_or_a_sentence(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "x.bin"
    path.write_bytes(data)
    for read in (read_shard, read_gguf):
        try:
            read(path)
        except HeaderError as error:
            assert str(error)
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 1, 1) + data)
    try:
        read_gguf(path)
    except HeaderError as error:
        assert str(error)


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value)) + value.encode()


def gguf(path: Path, tokens: int = 3000) -> Path:
    pairs = [
        text("general.architecture") + struct.pack("<I", 8) + text("llama"),
        text("llama.block_count") + struct.pack("<II", 4, 2),
        text("llama.embedding_length") + struct.pack("<II", 4, 64),
        text("llama.attention.head_count") + struct.pack("<II", 4, 4),
        text("llama.attention.head_count_kv") + struct.pack("<II", 4, 2),
        text("llama.context_length") + struct.pack("<II", 4, 4096),
        text("tokenizer.ggml.tokens") + struct.pack("<IIQ", 9, 8, tokens) + text("t") * tokens,
    ]
    infos = text("token_embd.weight") + struct.pack("<IQQIQ", 2, 64, 3000, 14, 0)
    infos += text("blk.1.attn_q.weight") + struct.pack("<IQQIQ", 2, 256, 64, 12, 157_504)
    data = b"GGUF" + struct.pack("<IQQ", 3, 2, len(pairs)) + b"".join(pairs) + infos
    with path.open("wb") as file:
        file.write(data)
        file.truncate(-(-len(data) // 32) * 32 + 157_504 + 9216)
    return path


def test_gguf(tmp_path: Path) -> None:
    folder = inspect_model(gguf(tmp_path / "m.gguf"))
    assert [(t.name, t.dtype, t.shape, t.bytes) for t in folder.tensors] == [
        ("token_embd.weight", "Q6_K", (3000, 64), 64 * 3000 // 256 * 210),
        ("blk.1.attn_q.weight", "Q4_K", (64, 256), 9216),
    ]
    assert folder.config.number("vocab") == 3000 and folder.config.context == 4096
    assert len(folder.geometry.attention) == 2 and folder.geometry.kv_heads == 2
    assert list(folder.components) == ["embedding", "attention"]


def test_gguf_that_claims_too_much(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 1 << 40, 1))
    with pytest.raises(HeaderError, match="too many"):
        read_gguf(path)
    path.write_bytes(
        b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + text("a") + struct.pack("<IIQ", 9, 4, 1 << 50) + b"0" * 99
    )
    with pytest.raises(HeaderError, match="claims an array"):
        read_gguf(path)


def test_gguf_layers_without_attention() -> None:
    config = config_of({"general.architecture": "x", "x.attention.head_count_kv": [0, 4], "x.block_count": 2})
    assert config["layer_types"] == ["linear_attention", "full_attention"] and config["num_key_value_heads"] == 4


def test_a_folder_that_is_none(tmp_path: Path) -> None:
    for place, sentence in ((tmp_path / "gone", "no such"), (tmp_path, "neither config.json")):
        with pytest.raises(UserError, match=sentence) as error:
            inspect_model(place)
        assert error.value.status == 3


def test_one_bad_file_does_not_stop_the_rest(tmp_path: Path) -> None:
    folder = hybrid(tmp_path / "m", layers=4)
    (folder / "extra.safetensors").symlink_to(tmp_path / "nowhere")
    (folder / "generation_config.json").write_text("{")
    read = inspect_model(folder)
    assert {p.file for p in read.problems} == {"extra.safetensors", "generation_config.json"}
    assert read.components["MLP"].tensors == 4 * 9


def test_folder_of_the_hubs_cache(tmp_path: Path) -> None:
    cache = tmp_path / "models--owner--name"
    for revision in ("aaa", "bbb"):
        hybrid(cache / "snapshots" / revision, layers=4, mtp=revision == "bbb")
    with pytest.raises(UserError, match="neither config"):  # two revisions and no word which one is meant
        inspect_model(cache)
    (cache / "refs").mkdir()
    (cache / "refs" / "main").write_text("bbb")
    assert inspect_model(cache).mtp_layers == 1
    (cache / "refs" / "main").write_text("../../..")
    with pytest.raises(UserError):
        inspect_model(cache)
