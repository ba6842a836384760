"""Pastes wrapped at a terminal's width."""

from __future__ import annotations

import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.framing.unwrap import Unwrapper, wrap_width
from tests.framing.support import framed, texts

LINES = [
    "INFO 05-09 02:41:10 [api_server.py:1043] args: Namespace(model='/models/Llama-4', port=8000, "
    + ", ".join(f"option_{n}=None" for n in range(60))
    + ")",
    "INFO 05-09 02:41:32 [config.py:753] This model supports multiple tasks: {'generate', 'score', 'embed', "
    "'classify', 'reward'}. Defaulting to 'generate'.",
    "INFO 05-09 02:42:00 [ray_utils.py:335] No current placement group found.",
    "(Worker_TP0 pid=7) INFO 05-09 02:55:02 [gpu_model_runner.py:1697] Graph capturing finished in 230 secs, "
    "took 1.49 GiB and left a little more to say at the end of this line",
    'ERROR 05-09 03:01:59 [core.py:402]   File "/usr/local/lib/python3.12/dist-packages/ray/experimental/channel.py", '
    "line 683, in get_unique_id_of_the_communicator",
]


def wrapped(lines: list[str], width: int) -> str:
    return "".join(line[at : at + width] + "\n" for line in lines for at in range(0, len(line), width))


@given(st.sampled_from([80, 100, 119, 120, 130, 147, 160]))
def test_rejoined_at_any_width(width: int) -> None:
    records = framed(wrapped(LINES * 3, width))
    expected = framed("\n".join(LINES * 3) + "\n")
    assert [record.text for record in records] == [record.text for record in expected]


def test_a_shortened_process_tag() -> None:
    lines = wrapped(LINES, 130).split("\n")
    shortened = "\n".join(line.replace("(Worker_TP0 pid=7)", "(W pid=7)") for line in lines)
    assert any("finished in 230 secs" in text for text in texts(shortened))


def test_line_numbers() -> None:
    first, second = framed(wrapped(LINES, 100))[:2]
    height = len(textwrap.wrap("x" * len(LINES[0]), 100))
    assert (first.line, first.last_line, second.line) == (1, height, height + 1)


def test_logs_that_are_not_wrapped() -> None:
    rows = [
        f"[2026-05-24 03:51:{n:02} TP0] Decode batch, #running-req: 4, #token: 2642688, token usage: 1.00"
        for n in range(40)
    ]
    assert wrap_width(rows) == 0
    assert wrap_width([*rows[:20], "=" * 80, "text", "=" * 80, "more", "=" * 80, "end"]) == 0
    long = rows[0] + "x" * 900
    assert wrap_width([long, *wrapped(LINES, 100).split("\n")]) == 0


def test_one_wrapped_dump_in_a_short_paste() -> None:
    (record,) = framed(
        wrapped(
            ["INFO 05-09 02:41:10 [a.py:1] non-default args: {'model': '/m', " + "'port': 8000, " * 20 + "'x': 1}"], 147
        )
    )
    assert "\n" not in record.text
    assert record.text.endswith("'x': 1}")


def test_equal_raw_lines_are_no_wrapped_paste() -> None:
    assert (
        len(texts("".join(f"a library's text of always the same length, number {n:05}\n" for n in range(300)))) == 300
    )


def test_lines_that_a_terminal_filled_with_blanks_up_to_its_edge() -> None:
    whole = [
        f"(EngineCore_DP0 pid=316) ERROR 02-24 00:11:2{n} [core.py:936] ValueError: Free memory on device cuda:{n} is"
        " less than desired"
        for n in range(4)
    ]
    short = ["(EngineCore_DP0 pid=316) Process EngineCore_DP0:"] * 3
    lines = [part.ljust(100) for line in (*short, *whole) for part in (line[:100], line[100:]) if part]
    unwrapper = Unwrapper()
    spans = unwrapper.feed(lines, 1) + unwrapper.flush()
    assert [text for text, _, _ in spans] == [*short, *whole]


def test_a_blank_at_the_edge_got_lost_in_copying() -> None:
    said = "max_total_tokens=131072 is larger than the profiled value -561981. Use the value"
    line = "[2026-11-30 02:55:49 TP{}] " + said + " "
    head = (
        "[2026-11-30 02:55:48 TP0] Load weight end. type=DeepseekV3ForCausalLM, avail mem=21.73 GB, mem usage=6.5 GB.\n"
    )
    width = len(line) - 1
    wrapped = head[:width] + "\n" + head[width:] + "".join(f"{line.format(n).rstrip()}\ninstead.\n" for n in range(6))
    assert texts(wrapped) == [head[26:-1], *[f"{said} instead."] * 6]


def test_a_paste_without_prefixes() -> None:
    lines = [
        f"{name}: the {name} was not found where the configuration of the {name} says, see the manual of {name} for it"
        for name in ("model", "tokenizer", "draft model", "processor", "adapter", "template", "vocabulary")
    ]
    assert texts(wrapped(lines, 75)) == lines


def test_equal_lines_behind_an_unknown_prefix_are_no_wrapped_paste() -> None:
    lines = [f"gpu0 step {n} of the loading of weights took some time, namely seconds" for n in range(10, 30)]
    assert texts("\n".join(lines) + "\n") == lines


@pytest.mark.parametrize("name", ["vllm.v1.engine.exceptions.EngineDeadError", "torch.OutOfMemoryError", "ValueError"])
def test_the_edge_went_through_the_name_of_an_exception(name: str) -> None:
    head = "(APIServer pid=7) ERROR 05-09 03:01:59 [a_module_with_a_long_name.py:906] "
    for cut in range(1, len(name)):
        records = framed(wrapped([*LINES, f"{head}{name}: it died"], len(head) + cut))
        assert records[-1].text == f"{name}: it died"


def test_wrapped_between_words_as_mails_are() -> None:
    for width in (72, 80, 100):
        lines = [
            part
            for line in LINES * 3
            for part in textwrap.wrap(line, width, break_long_words=False, break_on_hyphens=False)
        ]
        expected = framed("\n".join(LINES * 3) + "\n")
        assert [record.text for record in framed("\n".join(lines) + "\n")] == [record.text for record in expected]


def test_raw_lines_below_long_ones_are_no_mail() -> None:
    lines, wanted = [], []
    for n in range(12):
        wanted += ["word " * 12 + "x" * n + "y", f"a line of its own, number {n}"]
        lines += [f"INFO 05-09 02:41:{n:02} [core.py:104] {wanted[-2]}", wanted[-1]]
    assert texts("\n".join(lines) + "\n") == wanted


def test_a_short_traceback() -> None:
    lines = [
        "Traceback (most recent call last):",
        '  File "/sgl-workspace/sglang/python/sglang/srt/managers/scheduler.py", line 2063, in run_scheduler_process',
        "    scheduler = Scheduler(server_args)",
        '  File "/sgl-workspace/sglang/python/sglang/srt/model_executor/model_runner.py", line 182, in __init__',
        "    min_per_gpu_memory = self.init_torch_distributed()",
        "ValueError: The memory capacity is unbalanced. Some GPUs may be occupied by other processes. min_per_gpu=8",
    ]
    (record,) = framed(wrapped(lines, 100))
    assert record.form == "traceback" and record.text.split("\n") == lines


def test_lines_of_nccl_are_no_rests() -> None:
    """They bear host, process and thread, and come in equal lengths."""
    warn = (
        "[2026-02-27 15:27:13] node-6:118082{0}:118082{0} [{0}] os/linux.cc:200 NCCL WARN "
        "connect to 10.9.9.4<58525> returned Connection refused"
    )
    info = "node-6:118082{0}:118082{0} [{0}] NCCL INFO misc/socket.cc:389 -> 6"
    text = "\n".join(line.format(n) for n in range(6) for line in (warn, info)) + "\n"
    assert len(framed(text)) == 12


BROKEN = """\
[TP0] Load weight end. elapsed=36.9 s, type=NemotronHForCausalLM,
         avail mem=7.95 GB, mem usage=14.76 GB
Mamba Cache is allocated. max_mamba_cache_size: 360,
conv_state size: 0.99GB, ssm_state size: 50.77GB
[TP0]    max_total_num_tokens=1557504, chunked_prefill_size=1024,
         max_prefill_tokens=16384, max_running_requests=8,
         context_len=8192, available_gpu_mem=3.39 GB
"""


def test_messages_broken_behind_a_comma_are_put_together() -> None:
    weights, state, summary = framed(BROKEN)
    assert weights.text.endswith("type=NemotronHForCausalLM, avail mem=7.95 GB, mem usage=14.76 GB")
    assert state.text == (
        "Mamba Cache is allocated. max_mamba_cache_size: 360, conv_state size: 0.99GB, ssm_state size: 50.77GB"
    )
    assert (summary.line, summary.last_line) == (5, 7)


OOM = """\
torch.OutOfMemoryError: HIP out of memory. Tried to allocate 768.00 MiB.
GPU 0 has a total capacity of 15.87 GiB of which 860.50 MiB is free.
12.82 GiB is allocated by PyTorch, and 1.78 GiB is reserved by PyTorch
but unallocated.
"""


def test_an_account_of_memory_that_ran_out_is_put_together_wherever_it_was_broken() -> None:
    [account, after] = framed(OOM + "Next steps: a smaller batch\n")
    assert account.text.endswith("1.78 GiB is reserved by PyTorch but unallocated.")
    assert (account.line, account.last_line, after.line) == (1, 4, 5)


def test_items_with_a_hash_and_a_dash_go_on_too() -> None:
    text = (
        "[2026-09-22 01:06:11] Prefill batch, #new-seq: 4, #new-token: 2048, #cached-token: 35330,\n"
        "    full token usage: 0.43, mamba usage: 0.72, #running-req: 26, #queue-req: 55,\n"
        "    #pending-token: 669940, cuda graph: True, input throughput (token/s): 2667.10\n"
    )
    [batch] = framed(text)
    assert batch.text.endswith(
        "#queue-req: 55, #pending-token: 669940, cuda graph: True, input throughput (token/s): 2667.10"
    )


def test_a_unit_in_parentheses_is_no_code() -> None:
    text = "Engine startup timings (s): load_weight=2415.46, scheduler_e2e=2456.47,\ntokenizer_e2e=2461.44\n"
    [timings] = framed(text)
    assert timings.text.endswith("scheduler_e2e=2456.47, tokenizer_e2e=2461.44")


@pytest.mark.parametrize(
    "text",
    [
        "Engine(model='a',\n    tp_size=2,\n    dtype=None)\n",
        '"a": 1,\n"b": 2,\n',
        "[2026-01-01 00:00:00] Decode batch. #running-req: 1, #queue-req: 0,\n[2026-01-01 00:00:01] x=1\n",
        "a: 1, b: 2,\nThe rest of a sentence that was going on\n",
        "a: 1, b: 2,\n\nc: 3\n",
    ],
)
def test_commas_of_code_and_prose_join_nothing(text: str) -> None:
    assert all(record.line == record.last_line or "\n" in record.text for record in framed(text))
