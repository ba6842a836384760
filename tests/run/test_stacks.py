"""Where a hung process stood, as py-spy's dump shows it."""

from __future__ import annotations

import pytest

from analyzer.run.stacks import standing
from tests.run.helpers import only

NATIVE = """Pyspy dump for PID 88693:
Process 88693: sglang::scheduler_PP2_TP1

Thread 90522 (idle): "Thread-2 (_watchdog_thread)"
    poll (libc.so.6)
    select (selectors.py:415)
Thread 88693 (idle): "MainThread"
    0x7fa2d1487d71 (libc.so.6)
    pthread_cond_timedwait (libc.so.6)
    gloo::transport::tcp::UnboundBuffer::waitRecv (libtorch_cpu.so)
    c10d::ProcessGroupGloo::RecvWork::wait (libtorch_cpu.so)

    recv_object (parallel_state.py:1167)
    event_loop_pp (scheduler_pp_mixin.py:81)
"""


def test_the_first_call_with_a_name_and_the_python_function_above_it() -> None:
    said = "gloo::transport::tcp::UnboundBuffer::waitRecv, called from recv_object (parallel_state.py:1167)"
    assert standing(NATIVE) == said


@pytest.mark.parametrize("text", ["Pyspy dump for PID 1:", 'Thread 1 (idle): "Thread-2"\n    poll (libc.so.6)', ""])
def test_a_dump_without_the_main_thread_tells_nothing(text: str) -> None:
    assert standing(text) is None


def test_python_alone() -> None:
    text = 'Thread 309 (active): "MainThread"\n    _apply (penaltylib/min_new_tokens.py:78)\n'
    assert standing(text) == "_apply (penaltylib/min_new_tokens.py:78)"


def test_it_is_a_fact_of_the_rank() -> None:
    run = only(
        f"[2026-01-29 13:12:37 PP2 TP1] {NATIVE}\n"
        "[2026-01-29 13:12:37 PP2 TP1] Watchdog timeout (self.watchdog_timeout=300)\n"
    )
    fact = run.facts.get("hang.where")
    assert fact is not None and list(fact.ranks) == ["PP2 TP1"]
