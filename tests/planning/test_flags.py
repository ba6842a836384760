"""Engine flags in every spelling that the engines take."""

from __future__ import annotations

import pytest

from analyzer.errors import UserError
from analyzer.planning.flags import parse_flags, speculation_of


@pytest.mark.parametrize(
    "words", ["--tp 2", "--tp-size=2", "--tensor-parallel-size 2", "-tp 2", "--tensor_parallel_size=2"]
)
def test_one_thing_in_many_spellings(words: str) -> None:
    assert parse_flags("sglang", words.split()).args == {"tensor_parallel_size": 2}


def test_switches_unknown_flags_and_positional_words() -> None:
    words = "/m --enforce-eager --port 8000 --trust-remote-code --host=0.0.0.0 --max-model-len 32k --max-num-seqs 1K"
    flags = parse_flags("vllm", words.split())
    assert flags.args == {"enforce_eager": True, "max_model_len": 32_000, "max_num_seqs": 1024}
    assert flags.positional == ("/m",)
    assert flags.other == ("--port", "--trust-remote-code", "--host")


def test_a_folder_behind_an_unknown_switch_is_not_swallowed() -> None:
    assert parse_flags("sglang", ["--trust-remote-code", "/models/x"]).positional == ("/models/x",)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--speculative-config", '{"method": "mtp", "num_speculative_tokens": 2}'],
         {"method": "mtp", "model": None, "tokens": 2}),
        (["--spec-method", "mtp", "--spec-tokens", "1"], {"method": "mtp", "model": None, "tokens": 1}),
        (["-sc", '{"model": "/d", "num_speculative_tokens": 3}'],
         {"method": "draft_model", "model": "/d", "tokens": 3}),
        ([], {}),
    ],
)  # fmt: skip
def test_speculation(words: list[str], expected: dict[str, object]) -> None:
    assert speculation_of(parse_flags("vllm", words).args) == expected


def test_json_that_a_shell_has_eaten() -> None:
    with pytest.raises(UserError, match="quotes lost"):
        speculation_of(parse_flags("vllm", ["--speculative-config", "{method: mtp}"]).args)


def test_sizes_with_units() -> None:
    assert parse_flags("vllm", ["--kv-cache-memory-bytes", "4GiB"]).args == {"kv_cache_memory_bytes": 4 * 2**30}
    assert parse_flags("vllm", ["--kv-cache-memory", "4G"]).args == {"kv_cache_memory_bytes": 4 * 2**30}
