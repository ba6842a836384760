# ruff: noqa: E501  (messages are quoted whole)
"""Several runs in one stream, and several processes of one run."""

from __future__ import annotations

from analyzer.framing import frame
from analyzer.parsing import default_catalog
from analyzer.run.fold import RunFolder
from analyzer.run.model import Run
from tests.run.helpers import SAMPLES, folded

ARGS = "[2026-01-01 {time}] server_args={{'model_path': '/m', 'tp_size': 1}}\n"
FAILED = (
    "[2026-01-01 {time}] Scheduler hit an exception: Traceback (most recent call last):\n"
    '  File "/sglang/srt/managers/scheduler.py", line 1, in __init__\n'
    "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.\n"
    "[2026-01-01 {time}] Received sigquit from a child process. It usually means the child failed.\n"
)


def test_restart_loop() -> None:
    text = "".join(ARGS.format(time=f"10:0{n}:00") + FAILED.format(time=f"10:0{n}:30") for n in range(3))
    runs = folded(text)
    assert [run.outcome for run in runs] == ["crashed at startup"] * 3
    assert [(run.first_line, run.last_line) for run in runs] == [(1, 5), (6, 10), (11, 15)]
    assert "3 runs" in runs[-1].notes[-1] and "same cause" in runs[-1].notes[-1] and "30 s" in runs[-1].notes[-1]


def test_attempts_of_one_shell() -> None:
    text = (
        "$ vllm serve /m --foo\nvllm: error: unrecognized arguments: --foo\n"
        "$ vllm serve /m\n(APIServer pid=2) INFO 11-30 01:59:00 [utils.py:1] non-default args: {'model': '/m'}\n"
        "(APIServer pid=2) INFO:     Application startup complete.\n"
    )
    runs = folded(text)
    assert [run.outcome for run in runs] == ["crashed at startup", "serving"]
    assert runs[1].first_line == 3


def test_version_line_and_logo_are_one_start() -> None:
    text = (
        "(APIServer pid=1) INFO 11-30 01:59:00 [api_server.py:1] vLLM API server version 0.15.1\n"
        "(APIServer pid=1) INFO 11-30 01:59:00 [utils.py:1]  ▄▄ ▄█ █     █     █ ▀▄▀ █  version 0.15.1\n"
        "(APIServer pid=1) INFO 11-30 01:59:00 [utils.py:1] non-default args: {'model': '/m'}\n"
    )
    assert len(folded(text)) == 1


def test_two_nodes_of_one_run_are_one_run() -> None:
    text = (
        "[2026-01-01 10:00:00] server_args={'model_path': '/m', 'nnodes': 2, 'node_rank': 0}\n"
        "[2026-01-01 10:00:01] server_args={'model_path': '/m', 'nnodes': 2, 'node_rank': 1}\n"
        "[2026-01-01 10:00:05 TP0] Load weight begin. avail mem=78.00 GB\n"
        "[2026-01-01 10:00:05 TP8] Load weight begin. avail mem=78.00 GB\n"
    )
    assert len(folded(text)) == 1


def test_two_services_of_one_file() -> None:
    def line(service: str, text: str) -> str:
        return f"{service}  | (APIServer pid=1) {text}\n"

    text = "".join(
        line(service, text)
        for text in (
            "INFO 11-30 01:59:00 [utils.py:1] non-default args: {'model': '/m'}",
            "INFO:     Application startup complete.",
        )
        for service in ("vllm-a", "vllm-b")
    )
    assert [run.outcome for run in folded(text)] == ["serving", "serving"]


def test_two_services_without_stream_names_are_told_apart_by_their_processes() -> None:
    text = ""
    for pid in (11, 22):
        text += (
            f"(APIServer pid={pid}) INFO 11-30 01:59:0{pid // 11} [api_server.py:1] vLLM API server version 0.11.0\n"
        )
        text += f"(APIServer pid={pid}) INFO 11-30 01:59:0{pid // 11} [utils.py:1] non-default args: {{'model': '/m{pid}'}}\n"
    text += "(EngineCore_DP0 pid=12) INFO 11-30 01:59:10 [x.py:1] Starting to load model /m11...\n"
    text += "(APIServer pid=11) INFO:     Application startup complete.\n"
    runs = folded(text)
    assert [run.outcome for run in runs] == ["serving", "starting"]


def test_streams_of_one_server_are_merged_on_request() -> None:
    folder, catalog = RunFolder(merge=True), default_catalog()
    out = "(APIServer pid=1) INFO 11-30 01:59:00 [utils.py:1] non-default args: {'model': '/m'}\n"
    err = 'Traceback (most recent call last):\n  File "/vllm/a.py", line 1, in load_model\nRuntimeError: no topology\n'
    for source, text in (("out.log", out), ("err.log", err)):
        for record in frame([text.encode()], source):
            folder.feed(record, catalog.match(record))
    (run,) = folder.runs()
    assert run.outcome == "crashed at startup"
    assert run.failure is not None and run.failure.where[0].source == "err.log"


def _sources(*parts: tuple[str, str], merge: bool = False) -> list[Run]:
    folder, catalog = RunFolder(merge=merge), default_catalog()
    for source, text in parts:
        for record in frame([text.encode()], source):
            folder.feed(record, catalog.match(record))
    return folder.runs()


START = "(APIServer pid=147) INFO 11-30 01:59:00 [utils.py:1] non-default args: {'model': '/m'}\n"
RAISED = (
    "(APIServer pid=147) Traceback (most recent call last):\n"
    '(APIServer pid=147)   File "/vllm/utils/numa.py", line 1, in load_model\n'
    "(APIServer pid=147) RuntimeError: no topology\n"
)


def test_standard_error_is_paired_by_its_processes() -> None:
    (run,) = _sources(("out.log", START), ("err.log", RAISED))
    assert run.outcome == "crashed at startup"
    assert run.failure is not None and run.failure.where[0].source == "err.log"
    assert any("err.log" in note for note in run.notes)
    other = RAISED.replace("147", "999")
    assert [r.outcome for r in _sources(("out.log", START), ("err.log", other))] == ["starting", "crashed at startup"]


def test_an_exception_of_standard_error_came_before_the_stop() -> None:
    stop = "(APIServer pid=147) INFO 11-30 02:00:04 [launcher.py:1] [shutdown] API server: shutdown triggered\n"
    (run,) = _sources(("out.log", START + stop), ("err.log", RAISED))
    assert run.outcome == "crashed at startup"
    dead = RAISED.replace("RuntimeError: no topology", "asyncio.exceptions.CancelledError")
    (run,) = _sources(("out.log", START + stop), ("err.log", dead))
    assert run.outcome == "stopped"


def test_facts_of_standard_error_count() -> None:
    loaded = "(EngineCore pid=148) INFO 11-30 01:59:30 [gpu.py:1] Model loading took 10.67 GiB and 12.5 seconds\n"
    (run,) = _sources(("out.log", START), ("err.log", loaded), merge=True)
    assert run.facts.value("weights.loaded") == 10.67 * 2**30


def test_nodes_in_streams_of_their_own_are_one_run() -> None:
    def line(node: int, text: str) -> str:
        return f"node-{node}  | [2026-01-01 10:00:0{node}] {text}\n"

    text = "".join(line(n, f"server_args={{'model_path': '/m', 'nnodes': 2, 'node_rank': {n}}}") for n in (0, 1))
    assert len(folded(text)) == 1


def test_asking_early_and_often_changes_nothing() -> None:
    data = (SAMPLES / "failures" / "vllm_0.32.0_kill_engine_busy.log").read_bytes()
    asked, quiet, catalog = RunFolder(), RunFolder(), default_catalog()
    for number, record in enumerate(frame([data], "x")):
        event = catalog.match(record)
        asked.feed(record, event)
        quiet.feed(record, event)
        if number % 25 == 0:
            asked.runs()
    for a, b in zip(asked.runs(), quiet.runs(), strict=True):
        assert (a.outcome, a.failure, a.stages, len(a.facts)) == (b.outcome, b.failure, b.stages, len(b.facts))


def test_another_service_of_the_same_file_is_no_run() -> None:
    def line(service: str, text: str) -> str:
        return f"{service}  | {text}\n"

    text = line("vllm-1", "(APIServer pid=1) INFO 11-30 01:59:00 [utils.py:1] non-default args: {'model': '/m'}")
    text += line("vllm-1", "(APIServer pid=1) INFO:     Application startup complete.")
    text += line("webui-1", "Traceback (most recent call last):")
    text += line("webui-1", '  File "/app/open_webui/main.py", line 3, in load')
    text += line("webui-1", "ValueError: no such user")
    assert [(run.engine, run.outcome) for run in folded(text)] == [("vllm", "serving")]


def test_what_sglang_says_before_its_arguments_is_the_next_run_s() -> None:
    start = (
        "/opt/sglang/sglang/launch_server.py:56: UserWarning: 'python -m sglang.launch_server' is still supported, but 'sglang serve' is the recommended entrypoint.\n"
        "  warnings.warn(\n"
        "[2026-01-01 {time}] Max running requests is reset to 48 for speculative decoding. You can override this by explicitly setting --max-running-requests.\n"
    )
    text = "".join(
        start.format(time=f"10:0{n}:00") + ARGS.format(time=f"10:0{n}:00") + FAILED.format(time=f"10:0{n}:30")
        for n in range(3)
    )
    assert [(run.first_line, run.last_line) for run in folded(text)] == [(1, 8), (9, 16), (17, 24)]
