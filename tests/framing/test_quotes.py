"""Engine lines that a logged request or answer quotes are no lines of this server; glued ones are."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from analyzer.framing.quotes import without_quoted
from analyzer.pipeline import explain
from analyzer.resources import data_dir
from tests.framing.support import framed as records

VLLM = "INFO 05-11 10:00:00 [logger.py:39] "
SGLANG = "[2026-11-30 02:55:49] "
PASTED = (
    "it printed INFO 01-01 00:00:00 [kv_cache_utils.py:1087] GPU KV cache size: 7 tokens\n"
    "[2026-01-01 00:00:00 TP0] KV Cache is allocated. dtype: torch.bfloat16, #tokens: 7, K size: 0.1 GB, V size: 0.1 GB"
    "\n"
    'Traceback (most recent call last):\n  it\'s "odd"\nRuntimeError: CUDA out of memory'
)
SAID = {"event": "request.finished", "rid": "ab", "obj": {"text": PASTED}, "out": {"text": PASTED}}
QUOTING = [
    json.dumps({"timestamp": "2026-11-30T02:55:49.123456", **SAID}),
    SGLANG + json.dumps({"timestamp": "2026-11-30T02:55:49.123456", **SAID}),
    f"{VLLM}Received request cmpl-1: prompt: {PASTED!r}, params: SamplingParams(n=1, stop=['a']), lora_request: None.",
    f"(APIServer pid=7) {VLLM}Received request cmpl-1: prompt: {PASTED!r}, params: SamplingParams(n=1).",
    f"{VLLM}Request cmpl-1 details: prompt: {PASTED!r}, prompt_token_ids: [1], prompt_embeds shape: None.",
    f"{VLLM}Generated response chatcmpl-1: output: {PASTED!r}, output_token_ids: [1], finish_reason: stop",
    f"{VLLM}Generated response chatcmpl-1 (streaming complete): output: {PASTED!r}, output_token_ids: None",
    f"{SGLANG}Receive: obj=GenerateReqInput(rid='ab', text={PASTED!r}, sampling_params={{}})",
    f"{SGLANG}Finish: obj=GenerateReqInput(rid='ab', text={PASTED!r}), out={{'text': {PASTED!r}, 'meta_info': {{}}}}",
]


@pytest.mark.parametrize("line", QUOTING)
def test_a_quoted_line_is_a_part_of_the_request(line: str) -> None:
    (record,) = records(f"{line}\n")
    assert line.endswith(record.text)


@pytest.mark.parametrize("line", QUOTING)
def test_no_fact_and_no_failure_comes_of_it(line: str, tmp_path: Path) -> None:
    log = data_dir("samples") / ("vllm/cpu_0.8.5_normal.log" if VLLM in line else "sglang/dense_mf030.log")
    text = log.read_text().rstrip("\n") + "\n"
    (tmp_path / "plain.log").write_text(text)
    (tmp_path / "asked.log").write_text(f"{text}{line}\n")
    plain, asked = (explain([str(tmp_path / name)]).runs[0] for name in ("plain.log", "asked.log"))
    assert {k: f.value for k, f in asked.facts.items() if k.startswith("pool.")} == {
        k: f.value for k, f in plain.facts.items() if k.startswith("pool.")
    }
    assert asked.failure is None
    assert [f.rule for f in asked.findings] == [f.rule for f in plain.findings]


def test_a_line_glued_behind_a_request_is_read() -> None:
    request = f"{VLLM}Received request cmpl-1: prompt: {PASTED!r}, params: SamplingParams(n=1), lora_request: None."
    glued = f"{VLLM}Can't go on, won't stop"
    assert [r.text for r in records(f"{request}{glued}\n")] == [request[len(VLLM) :], glued[len(VLLM) :]]
    assert [r.text for r in records(f"{glued}{request}\n")] == [glued[len(VLLM) :], request[len(VLLM) :]]
    both = records(f"{request}{request}{glued}\n")
    assert [r.text for r in both] == [request[len(VLLM) :], request[len(VLLM) :], glued[len(VLLM) :]]


def test_a_request_that_was_cut_hides_nothing() -> None:
    cut = f"{SGLANG}Receive: obj=GenerateReqInput(rid='ab', text='cut in the middle "
    real = f"{SGLANG}The server is fired up and ready to roll!"
    assert [r.text for r in records(f"{cut}{real}\n")][-1] == real[len(SGLANG) :]


def test_what_is_no_request_quotes_nothing() -> None:
    line = f"{VLLM}Somebody said 'x {VLLM}GPU KV cache size: 7 tokens' and left"
    assert len(records(f"{line}\n")) == 2


def test_many_quotes_take_no_long_time() -> None:
    text = "Received request a: prompt: '" + "\\'\" " * 80_000 + "INFO 01-01 00:00:00 [a.py:1] x"
    place = text.index("INFO")
    assert without_quoted(text, 0, [(place, place)]) == [(place, place)]
    assert without_quoted(text + "'", 0, [(place, place)]) == []
