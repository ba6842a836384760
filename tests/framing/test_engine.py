"""Engine prefixes of both engines and of many versions."""

from __future__ import annotations

import pytest

from analyzer.framing.engine import process_tag, seconds, seconds_without_year
from tests.framing.support import framed


@pytest.mark.parametrize(
    ("line", "rank", "text"),
    [
        ("[2026-02-27 15:27:13] Memory pool end.", "", "Memory pool end."),
        ("[2025-07-02 07:41:59 DP0 TP0] max_total_tokens=1", "DP0 TP0", "max_total_tokens=1"),
        ("[2026-11-30 02:55:49 DP0 PP0 ATTN_CP5 MOE_DP1 TP5 EP3] x", "DP0 PP0 ATTN_CP5 MOE_DP1 TP5 EP3", "x"),
        ("[2026-11-30 02:55:49.123 TP1] x", "TP1", "x"),
        ("2026-05-24 03:51:44 TP0] Decode batch", "TP0", "Decode batch"),
    ],
)
def test_sglang(line: str, rank: str, text: str) -> None:
    (record,) = framed(line + "\n")
    assert (record.form, record.rank, record.text, record.level) == ("log", rank, text, "")
    assert record.time is not None


def test_sglang_encoder_process() -> None:
    (record,) = framed("[2026-11-30 02:55:49 encode_dp_worker[2]] ready\n")
    assert (record.process, record.rank, record.text) == ("encode_dp_worker[2]", "", "ready")


def test_milliseconds_count() -> None:
    (record,) = framed("[2026-11-30 02:55:49.250 TP1] x\n")
    assert record.time == 1796007349.25
    assert record.stamp == "2026-11-30 02:55:49.250"


@pytest.mark.parametrize(
    ("line", "level", "process", "rank", "pid", "module", "text"),
    [
        ("INFO 08-26 19:18:49 api_server.py:440] text", "INFO", "", "", None, "api_server.py:440", "text"),
        ("(APIServer pid=1) INFO 09-04 01:02:21 [utils.py:326] a", "INFO", "APIServer", "", 1, "utils.py:326", "a"),
        ("(EngineCore_DP0 pid=3) DEBUG 09-04 01:02:21 [v1/worker/gpu_worker.py:3] a", "DEBUG", "EngineCore_DP0", "", 3,
         "v1/worker/gpu_worker.py:3", "a"),
        ("(Worker_TP1_EP1 pid=9) ERROR 07-17 15:08:01 [b.py:1] a", "ERROR", "Worker_TP1_EP1", "Worker_TP1_EP1", 9,
         "b.py:1", "a"),
        ("(VllmWorker rank=1 pid=5) ERROR 04-14 14:24:52 [m.py:383] a", "ERROR", "VllmWorker", "VllmWorker rank=1", 5,
         "m.py:383", "a"),
        ("(VllmWorkerProcess pid=233) INFO 03-30 01:58:25 [m.py:225] a", "INFO", "VllmWorkerProcess",
         "VllmWorkerProcess pid=233", 233, "m.py:225", "a"),
        ("(RayWorkerWrapper pid=34, ip=10.0.0.2) INFO 03-30 01:58:25 [m.py:225] a", "INFO", "RayWorkerWrapper",
         "RayWorkerWrapper pid=34, ip=10.0.0.2", 34, "m.py:225", "a"),
        ("(EngineCore_0 pid=1) (RayWorkerWrapper pid=12) INFO 09-10 23:27:30 [c.py:1] a", "INFO", "RayWorkerWrapper",
         "RayWorkerWrapper pid=12", 12, "c.py:1", "a"),
        ("(APIServer pid=1) INFO:     Started server process [1]", "INFO", "APIServer", "", 1, "",
         "Started server process [1]"),
        ("INFO:     Application startup complete.", "INFO", "", "", None, "", "Application startup complete."),
        # formatters of the user's: with the year, without seconds, without a time
        ("ERROR 2026-05-14 05:25:28.876 [core.py:1123] a", "ERROR", "", "", None, "core.py:1123", "a"),
        ("(APIServer pid=2) ERROR 11-03 23:14 [a.py:1] a", "ERROR", "APIServer", "", 2, "a.py:1", "a"),
        ("ERROR [core.py:1330] a", "ERROR", "", "", None, "core.py:1330", "a"),
    ],
)  # fmt: skip
def test_vllm(line: str, level: str, process: str, rank: str, pid: int | None, module: str, text: str) -> None:
    (record,) = framed(line + "\n")
    found = (record.level, record.process, record.rank, record.pid, record.module, record.text)
    assert found == (level, process, rank, pid, module, text)
    assert record.form == "log"


def test_uvicorn_inside_sglang() -> None:
    (record,) = framed('[2026-11-30 02:55:49] INFO:     127.0.0.1:60030 - "GET /health HTTP/1.1" 200 OK\n')
    assert (record.level, record.text) == ("INFO", '127.0.0.1:60030 - "GET /health HTTP/1.1" 200 OK')


def test_a_process_tag_alone_is_no_engine_prefix() -> None:
    (record,) = framed("(EngineCore pid=7) Process EngineCore:\n")
    assert (record.form, record.process, record.pid, record.text) == ("raw", "EngineCore", 7, "Process EngineCore:")


def test_brackets_that_are_no_process_tag_stay() -> None:
    (record,) = framed("(found at https://example.org/licence)\n")
    assert record.text == "(found at https://example.org/licence)"


def test_a_logging_prefix_of_the_user_s_own() -> None:
    lines = [f"tenant-a vllm> INFO 09-12 10:00:0{n} [core.py:{n}] message {n}\n" for n in range(6)]
    records = framed("".join(lines) + "tenant-a vllm> plain text\n")
    assert [r.text for r in records if r.form == "log"] == [f"message {n}" for n in range(6)]
    assert records[-1].text == "plain text"


def test_repeated_across_a_cluster() -> None:
    (record,) = framed(
        "(RayWorkerWrapper pid=3) INFO 09-10 23:27:29 [a.py:1] Found nccl [repeated 3x across cluster] "
        "(Ray deduplicates logs by default. Set RAY_DEDUP_LOGS=0 to disable log deduplication, or see x for more.)\n"
    )
    assert (record.text, record.repeated) == ("Found nccl", 3)


def test_times() -> None:
    assert seconds("1970-01-02 00:00:01") == 86401
    assert seconds("2026-13-02 00:00:01") is None
    assert seconds_without_year("02-29 00:00:00") == seconds("1972-02-29 00:00:00")
    assert seconds_without_year("02-29 00:01") == seconds("1972-02-29 00:01:00")
    assert seconds_without_year("2026-05-14 05:25:28") == seconds("2026-05-14 05:25:28")


def test_helpers_of_ray_are_processes() -> None:
    assert process_tag("raylet") == ("raylet", "", None)
    assert process_tag("see above") is None


def test_sglang_without_a_date() -> None:
    (record,) = framed("[19:34:55 TP0] Memory pool end. avail mem=8.34 GB\n")
    assert (record.form, record.rank, record.stamp) == ("log", "TP0", "19:34:55")
    assert record.time == seconds("1972-01-01 19:34:55")


def test_sglang_s_server_of_diffusion_models_prints_no_year() -> None:
    (record,) = framed("[12-16 14:27:10] Exit code: -9\n")
    assert (record.text, record.form) == ("Exit code: -9", "log")
    assert record.time is not None


@pytest.mark.parametrize("above", ["", 'Traceback (most recent call last):\n  File "a.py", line 1, in f\n'])
@pytest.mark.parametrize(
    "prefix", ["", " ", "(RayWorkerWrapper pid=3) ", "INFO 09-12 10:00:00 [a.py:1] ", "[2026-01-01 10:00:00] "]
)
def test_a_mark_of_repetition_that_stands_alone(above: str, prefix: str) -> None:
    records = framed(f"{above}{prefix}[repeated 3x across cluster]\n  x = 1\nValueError: bad\n")
    assert records and not any("across cluster" in r.text for r in records)
    if above and len(prefix) < 2:
        assert [r.text.splitlines()[-1] for r in records] == ["ValueError: bad"]
