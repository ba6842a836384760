"""Prefixes of collectors, alone and stacked."""

from __future__ import annotations

import json

import pytest

from tests.framing.support import framed

VLLM = "(APIServer pid=1) INFO 09-12 10:00:00 [core.py:59] text"
SGLANG = "[2026-11-30 02:55:49 TP0] text"


@pytest.mark.parametrize("inner", [VLLM, SGLANG])
@pytest.mark.parametrize(
    ("prefix", "stream"),
    [
        ("vllm-1  | ", "vllm-1"),
        ("engine | ", "engine"),
        ("2026-06-24T17:38:02.436246479+02:00 stderr F ", ""),
        ("2026-06-24T17:38:02.436246479Z ", ""),
        ("[pod/vllm-7f9-x/server] ", "pod/vllm-7f9-x/server"),
        ("ms-pd-decode-6c8f9c4df6-vh88z vllm ", "ms-pd-decode-6c8f9c4df6-vh88z/vllm"),
        ("Nov 30 03:24:15 node7 vllm.service[812]: ", "node7 vllm.service"),
        ("2026-11-30T03:24:15+0000 node7 vllm[812]: ", "node7 vllm"),
        ("<30>Nov 30 03:24:15 node7 vllm[812]: ", "node7 vllm"),
        ("[2025-05-20T05:24:25Z] ", ""),
        ("2025-02-04 21:21:33 ", ""),
        ("2025-02-04 21:21:33,123 ", ""),
        ("\x1b_bk;t=1715000000000\x07", ""),
        ("> ", ""),
        ("- ", ""),
        ("**", ""),
        ("  3: ", ""),
        ("0|vllm  | ", "0|vllm"),
        ("[rank0]: ", ""),
        ("[pod/a/b] 2026-06-24T17:38:02.4Z ", "pod/a/b"),
        ("vllm-1  | 2025-02-04 21:21:33 ", "vllm-1"),
        ("2026-06-24T17:38:02Z vllm-1  | ", "vllm-1"),
    ],
)
def test_prefix(prefix: str, stream: str, inner: str) -> None:
    (record,) = framed(prefix + inner + "\n")
    assert (record.text, record.form, record.stream) == ("text", "log", stream)


@pytest.mark.parametrize("inner", [VLLM, SGLANG])
def test_docker_json_file(inner: str) -> None:
    entries = [
        json.dumps({"log": part, "stream": "stderr", "time": "2026-11-30T02:55:49.5Z"})
        for part in (inner[:10], inner[10:] + "\n", "raw\n")
    ]
    records = framed("\n".join(entries) + "\n")
    assert [record.text for record in records] == ["text", "raw"]
    assert (records[0].line, records[0].last_line, records[1].line) == (1, 2, 3)


def test_cri_parts_are_joined_per_stream() -> None:
    lines = (
        "[pod/a/c] 2026-06-24T17:38:02Z stdout P [2026-06-24 15:38:02] KV Cache is allo\n"
        "[pod/b/c] 2026-06-24T17:38:02Z stdout F [2026-06-24 15:38:02] other\n"
        "[pod/a/c] 2026-06-24T17:38:02Z stdout F cated. #tokens: 5\n"
    )
    assert sorted((r.stream, r.text) for r in framed(lines)) == [
        ("pod/a/c", "KV Cache is allocated. #tokens: 5"),
        ("pod/b/c", "other"),
    ]


def test_json_formatter() -> None:
    entry = {
        "asctime": "2026-11-30 02:55:49,123", "levelname": "ERROR", "name": "vllm.v1.engine.core",
        "processName": "Worker_TP1", "process": 77, "message": "EngineCore failed to start.",
        "filename": "core.py",
        "lineno": 5,
        "exc_info": "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\n    x\nValueError: no",
    }  # fmt: skip
    message, trace = framed(json.dumps(entry) + "\nplain\n")[:2]
    assert (message.text, message.level, message.module) == ("EngineCore failed to start.", "ERROR", "core.py:5")
    assert (message.process, message.rank, message.pid, message.stamp) == (
        "Worker_TP1", "Worker_TP1", 77, "2026-11-30 02:55:49,123",
    )  # fmt: skip
    assert (trace.form, trace.line, trace.text.split("\n")[-1]) == ("traceback", 1, "ValueError: no")


def test_a_bar_is_no_compose_prefix() -> None:
    assert [r.form for r in framed("100%|████| 4/4 [00:01<00:00,  2.33it/s]\n")] == ["bar"]


def test_tables_are_no_compose_prefix() -> None:
    (record,) = framed("gpu | memory | state\n")
    assert (record.stream, record.text) == ("", "gpu | memory | state")


def test_indentation_survives_a_bracketed_stamp() -> None:
    trace = 'Traceback (most recent call last):\n  File "a.py", line 1, in f\n    x\nValueError: no'
    (record,) = framed("".join(f"[2025-05-20T05:24:29Z] {line}\n" for line in trace.split("\n")))
    assert (record.form, record.text) == ("traceback", trace)


def test_markdown_and_entities() -> None:
    (record,) = framed("> [2026-11-30 02:55:49] max\\_total\\_num\\_tokens=5, a=&quot;b&quot; &lt;X&gt;\n")
    assert record.text == 'max_total_num_tokens=5, a="b" <X>'
    assert framed("```\n" + SGLANG + "\n```\n")[0].line == 2
    (record,) = framed("\\[2026-11-30 02:55:49 TP0\\] text\n")
    assert (record.form, record.rank) == ("log", "TP0")


def test_words_with_a_colon_behind_a_stamp_are_no_journal() -> None:
    (record,) = framed("2026-06-24T17:38:02.4Z Loading model: tiny\n")
    assert (record.stream, record.text) == ("", "Loading model: tiny")


def test_messages_of_several_lines_in_docker_s_json() -> None:
    header = "(APIServer pid=1) INFO 09-12 10:00:00 [a.py:1]"
    lines = [f"{header} binding\r", f"{header} tid 1\r", f"{header} tid 2", f"{header} another"]
    text = "".join(
        json.dumps({"log": line + "\n", "stream": "stderr", "time": "2026-11-30T02:55:49Z"}) + "\n" for line in lines
    )
    assert [record.text for record in framed(text)] == ["binding\ntid 1\ntid 2", "another"]


def test_the_logger_of_a_program_that_ran_the_server() -> None:
    head = "2024-11-14T22:16:37.09Z 2024-11-14 22:16:37,096 - sglang - INFO - "
    (record,) = framed(
        f'{head}[2024-11-14 22:16:37 TP0] Traceback (most recent call last):\n{head}  File "a.py", line 1, in f\n'
        f"{head}    g()\n{head}RuntimeError: boom\n"
    )
    assert record.form == "traceback"
    assert record.rank == "TP0"
    assert record.text.endswith("RuntimeError: boom")


@pytest.mark.parametrize("head", ["04-20 13:32:25.784", "04-20 13:32:25.784 ", "ERROR 2025-04-07T19:13:52.31Z "])
def test_stamps_without_a_year_and_levels_of_an_export(head: str) -> None:
    (record,) = framed(f"{head}[2025-04-07 19:13:52 TP1] text\n")
    assert (record.text, record.rank) == ("text", "TP1")


def test_a_header_of_vllm_is_no_stamp_without_a_year() -> None:
    (record,) = framed("INFO 04-20 13:32:25 [core.py:1] text\n")
    assert (record.text, record.level) == ("text", "INFO")


def test_the_frame_of_a_terminal_program() -> None:
    one, two = framed(
        "│ INFO 03-21 20:15:44 [monitor.py:33] torch.compile takes 28.77 s in total            │\n"
        "│ (Worker pid=3) INFO 03-21 20:15:46 [executor_base.py:111] # cuda blocks: 7191          │\n"
    )
    assert (one.text, one.module) == ("torch.compile takes 28.77 s in total", "monitor.py:33")
    assert (two.text, two.pid) == ("# cuda blocks: 7191", 3)


def test_a_bracketed_tag_and_padded_line_numbers_are_learnt() -> None:
    engine = "INFO 03-21 20:15:44 [monitor.py:33] hello"
    trace = ["Traceback (most recent call last):", '  File "/a.py", line 1, in run', "ValueError: no"]
    for head in (lambda n: "[vllm-0] ", lambda n: f"{n:4d}  "):
        lines = [engine] * 8 + trace
        text = "".join(f"{head(n)}{line}\n" for n, line in enumerate(lines, 1))
        last = framed(text)[-1]
        assert (last.form, last.text, last.stream) == ("traceback", "\n".join(trace), "")


@pytest.mark.parametrize("head", ["> ", "    "])
def test_a_cut_traceback_that_is_quoted_or_stands_further_in(head: str) -> None:
    lines = ('  File "/a/pool.py", line 7, in _create_buffers', "    torch.zeros(", "RuntimeError: NPU out of memory")
    (record,) = framed("".join(f"{head}{line}\n" for line in lines))
    assert record.form == "traceback"
    assert record.text.endswith("RuntimeError: NPU out of memory")


def test_numbers_of_lines_are_no_tasks() -> None:
    lines = [f"(EngineCore pid=7) INFO 09-12 10:00:00 [core.py:{n}] message {n}" for n in range(8)]
    lines += ["Traceback (most recent call last):", '  File "a.py", line 3, in run', "    f()", "ValueError: bad", ""]
    lines += [f"(EngineCore pid=7) INFO 09-12 10:00:01 [core.py:{n}] message {n}" for n in range(8, 12)]
    records = framed("".join(f"{n:>4}: {line}\n" for n, line in enumerate(lines, 9_994)))
    (traceback,) = [r for r in records if r.form == "traceback"]
    assert traceback.text.splitlines() == lines[8:12]
    assert [r.text for r in records if r.form == "log"] == [f"message {n}" for n in range(12)]
    assert {r.process for r in records if r.form == "log"} == {"EngineCore"}


def test_tasks_of_srun_keep_their_numbers() -> None:
    line = "[2026-11-30 02:55:49] Load weight begin. avail mem=139.13 GB"
    records = framed("".join(f"{task}: {line}\n" for _ in range(5) for task in (0, 1, 2, 3)))
    assert [r.process for r in records] == list("0123") * 5


@pytest.mark.parametrize(
    "head", ["2024-06-02 00:26:10 | ERROR | stderr | ", "2024-06-02 00:26:10.123 | INFO     | worker.launch:run:12 - "]
)
def test_a_logger_with_pipes_around_the_server(head: str) -> None:
    lines = ["Traceback (most recent call last):", '  File "/p/sglang/api.py", line 39, in Runtime', "TypeError: x"]
    (record,) = framed("".join(f"{head}{line}\n" for line in lines))
    assert (record.form, record.text) == ("traceback", "\n".join(lines))


def test_journald_writes_a_message_with_escapes_as_bytes() -> None:
    painted = "\x1b[36m(APIServer pid=1)\x1b[0m INFO 09-12 10:00:00 [core.py:59] caf\xe9"
    for message in (painted, list(painted.encode())):
        (record,) = framed(json.dumps({"_SYSTEMD_UNIT": "vllm.service", "MESSAGE": message}) + "\n")
        assert (record.text, record.process, record.stream) == ("caf\xe9", "APIServer", "vllm.service")
    for other in ([], [300], ["a"], [None]):
        assert framed(json.dumps({"MESSAGE": other}) + "\n")[0].text.startswith("{")
