"""What SGLang's processes do to each other once one has failed is never the cause."""

from __future__ import annotations

import pytest

from analyzer.run.model import headline
from tests.run.helpers import only

CRASHED = "[2026-10-03 02:21:29] Subprocess scheduler_0 (pid=1123) crashed with exit code {}. Triggering SIGQUIT\n"
TOLD = "[2026-10-03 02:21:29] SIGQUIT received. signum=None, frame=None. It usually means one child failed.\n"


def test_the_signal_that_one_process_sends_another_names_no_cause() -> None:
    run = only(CRASHED.format(-3))
    assert run.failure is not None
    assert run.failure.kind == "elsewhere"
    assert only(CRASHED.format(-9)).failure.kind == "killed"  # type: ignore[union-attr]


def test_a_kill_after_a_child_has_told_of_its_failure_is_the_parents() -> None:
    run = only(TOLD + CRASHED.format(-9))
    assert run.failure is not None
    assert run.failure.kind == "elsewhere"


FRAMES = """\
  File "sglang/srt/disaggregation/prefill.py", line 376, get_next_disagg_prefill_batch_to_run
  File "torch/distributed/distributed_c10d.py", line 4056, all_gather_into_tensor
      work.wait()
RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:538]
    Read error [10.0.0.5]:63667: Connection reset by peer
"""


def test_frames_as_people_shorten_them_are_read() -> None:
    run = only(FRAMES)
    assert (run.engine, run.outcome) == ("sglang", "crashed at runtime")
    assert run.failure is not None
    assert run.failure.headline.endswith("Connection reset by peer")


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("Operation creation failed:\nexpects `coord`", "Operation creation failed: expects `coord`"),
        ("when calling: `f(a,\nb)`, expected dtype=bfloat16", "when calling: `f(a, b)`, expected dtype=bfloat16"),
        ("first\nsecond", "first"),
        ("CUDA error:", "CUDA error"),
    ],
)
def test_a_line_that_only_begins_a_sentence_goes_on(message: str, said: str) -> None:
    assert headline(message) == said


def test_what_the_parent_says_below_an_exception_is_no_part_of_its_message() -> None:
    run = only(
        '  File "python/sglang/srt/layers/cp/utils.py", line 91, in f\n'
        "    from sglang.srt.layers.dp_attention import g\n"
        "ImportError: cannot import name 'g' from 'sglang.srt.layers.dp_attention'\n"
        "RuntimeError: Rank 0 scheduler died during initialization (exit code: -3)\n"
    )
    assert run.failure is not None
    assert (run.failure.exception, run.failure.kind) == ("ImportError", "exception")
