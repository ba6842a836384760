# ruff: noqa: E501  (messages are quoted whole)
"""Tracebacks of which a paste kept one line."""

from __future__ import annotations

from analyzer.run.glued import unfold
from analyzer.run.tracebacks import parse
from tests.run.helpers import only

PLAIN = (
    'Scheduler hit an exception: Traceback (most recent call last): File "/s/sglang/srt/managers/scheduler.py", line 2989, in '
    'run_scheduler_process scheduler = Scheduler( File "/s/sglang/srt/models/qwen3.py", line 493, in load_weights param = '
    "params_dict[name] KeyError: 'lm_head.weight'"
)
TAGGED = (
    'Traceback (most recent call last): (SGLangWorker pid=38138) File "/t/triton/compiler.py", line 292, in make_cubin '
    "(SGLangWorker pid=38138) subprocess.run(cmd, shell=True, check=True) (SGLangWorker pid=38138) "
    "subprocess.CalledProcessError: Command 'ptxas -v a.ptx' returned non-zero exit status 255. (SGLangWorker pid=38138) "
    "(SGLangWorker pid=38138) During handling of the above exception, another exception occurred: (SGLangWorker pid=38138) "
    '(SGLangWorker pid=38138) Traceback (most recent call last): (SGLangWorker pid=38138) File "/t/triton/compiler.py", '
    "line 300, in make_cubin (SGLangWorker pid=38138) raise PTXASError(error) (SGLangWorker pid=38138) "
    "triton.runtime.errors.PTXASError: PTXAS error: Value 'sm_120' is not defined for option 'gpu-name'"
)


def test_frames_and_exception_of_one_line() -> None:
    root = parse(PLAIN).root
    assert root is not None
    assert (root.exception, root.message) == ("KeyError", "'lm_head.weight'")
    assert [f.function for f in root.frames] == ["run_scheduler_process", "load_weights"]
    assert (root.start, root.end) == (0, 0)
    assert not parse(PLAIN).cut


def test_an_exception_that_the_source_raises_is_not_its_message() -> None:
    text = 'Traceback (most recent call last): File "a.py", line 3, in f raise ValueError("x: y") ValueError: x: y'
    root = parse(text).root
    assert root is not None
    assert (root.exception, root.message) == ("ValueError", "x: y")


def test_process_tags_show_where_lines_began() -> None:
    parsed = parse(TAGGED)
    assert [link.short for link in parsed.links] == ["CalledProcessError", "PTXASError"]
    assert parsed.links[1].relation == "context"
    assert parsed.root is not None
    assert parsed.root.message.startswith("PTXAS error")


def test_an_assertion_without_a_message() -> None:
    text = 'Traceback (most recent call last): File "a.py", line 3, in f assert len(x) <= n AssertionError'
    root = parse(text).root
    assert root is not None
    assert (root.exception, root.message) == ("AssertionError", "assert len(x) <= n")


def test_lines_as_printed_stay_as_they_are() -> None:
    lines = ["Traceback (most recent call last):", '  File "a.py", line 1, in f', "    x()", "ValueError: y"]
    assert unfold(lines) == (lines, [0, 1, 2, 3])


def test_places_are_lines_of_the_log() -> None:
    run = only(f"[2025-09-18 03:27:44 TP0] Load weight begin. avail mem=23.10 GB\n[2025-09-18 03:27:45 TP0] {PLAIN}\n")
    assert run.failure is not None
    assert (run.outcome, run.failure.exception, run.failure.where[0].line) == ("crashed at startup", "KeyError", 2)
