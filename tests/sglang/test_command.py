"""Options of a command line, and what they say beside the dump."""

from __future__ import annotations

import pytest

from analyzer.run.sglang_command import parse_options
from tests.sglang.read import read, stamped


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("model-path /m --tp 8 --trust-remote-code", {"model_path": "/m", "tp_size": 8, "trust_remote_code": True}),
        ("mem-fraction-static=0.85 --dp-size 2 2>&1 | tee log", {"mem_fraction_static": 0.85, "dp_size": 2}),
        (
            "model 'a b' --json-model-override-args '{\"a\": 1}'",
            {"model_path": "a b", "json_model_override_args": '{"a": 1}'},
        ),
        ("model-path <model> [options]", {}),
        ("model 'unclosed --tp 2", {"model_path": "'unclosed", "tp_size": 2}),
    ],
)
def test_options(text: str, expected: dict[str, object]) -> None:
    assert parse_options(text) == expected


def test_a_command_tells_a_default_from_a_choice() -> None:
    command = "$ python3 -m sglang.launch_server --model-path /m --tp 4 --speculative-algorithm EAGLE\n"
    dump = "server_args=ServerArgs(model_path='/m', tp_size=4, mem_fraction_static=0.85)"
    facts = read(command + stamped(dump)).facts
    assert facts.value("sizing.fraction") == 0.85 and facts.value("sizing.fraction_default") is True
    assert facts.value("spec.method") == "EAGLE", "a dump without the key does not hide what was given"
    alone = read(command.replace("--tp 4", "--tp 4 --mem-fraction-static 0.7")).facts
    assert alone.value("args.tensor_parallel_size") == 4
    assert alone.value("sizing.fraction") == 0.7 and alone.value("sizing.fraction_default") is False
