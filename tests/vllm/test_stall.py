# ruff: noqa: E501  (messages are quoted whole)
"""A server that prints statistics while nothing moves."""

from __future__ import annotations

import pytest

from analyzer.run.model import Run
from tests.run.helpers import only


def printed(rows: list[tuple[int, float, float, float]]) -> Run:
    """A run of statistics lines: running, prompt rate, generation rate, usage in per cent."""
    return only(
        "".join(
            f"INFO 05-11 18:{n // 6:02d}:{n % 6}4 [loggers.py:111] Engine 000: Avg prompt throughput: {prompt} tokens/s, Avg generation throughput: {rate} tokens/s, Running: {running} reqs, Waiting: 0 reqs, GPU KV cache usage: {usage}%, Prefix cache hit rate: 0.0%\n"
            for n, (running, prompt, rate, usage) in enumerate(rows)
        )
    )


def test_the_last_lines_with_the_same_requests_and_no_token() -> None:
    run = printed([(2, 10.0, 30.0, 4.0)] * 3 + [(2, 0.0, 0.0, 5.0)] * 7)
    assert (run.facts.value("load.stalled_lines"), run.facts.value("load.stalled_running")) == (7, 2)


def test_what_is_no_stall() -> None:
    idle = [(0, 0.0, 0.0, 0.0)] * 9
    over = [(2, 0.0, 0.0, 5.0)] * 9 + [(2, 0.0, 30.0, 5.0)]
    prefill = [(1, 900.0, 0.0, 5.0)] * 9
    for rows in (idle, over, prefill):
        assert "load.stalled_lines" not in printed(rows).facts


def test_a_pool_that_fills_is_a_prefill() -> None:
    run = printed([(1, 0.0, 0.0, 1.0 + n) for n in range(9)])
    assert run.facts.value("load.stalled_lines") == 1


_OLD = "INFO 08-01 03:{:02d}:07 scheduler.py:271] Throughput: {} tokens/s, Running: {} reqs, Swapped: {} reqs, Pending: {} reqs, GPU KV cache usage: {}%, CPU KV cache usage: 0.0%\n"


def test_requests_that_wait_while_nothing_runs() -> None:
    rows = [(185.4, 1, 0, 0, 100.0)] * 3 + [(0.0, 0, 0, 1, 0.0)] * 5
    facts = only("".join(_OLD.format(n, *row) for n, row in enumerate(rows))).facts
    assert (facts.value("load.stuck_lines"), facts.value("load.stuck_queue")) == (5, 1)
    assert facts.value("load.full_samples") == 3
    assert facts.value("load.waiting_pool_full") == 0
    assert "load.stalled_lines" not in facts


def test_a_queue_that_moves_is_not_stuck() -> None:
    rows = [(0.0, 0, 0, 1, 0.0)] * 5 + [(185.4, 1, 0, 0, 4.0)]
    facts = only("".join(_OLD.format(n, *row) for n, row in enumerate(rows))).facts
    assert "load.stuck_lines" not in facts


_NEW = "INFO 08-01 03:{:02d}:07 loggers.py:236] Engine 000: Avg prompt throughput: {} tokens/s, Avg generation throughput: {} tokens/s, Running: 0 reqs, Waiting: 20 reqs, GPU KV cache usage: 0.0%, Prefix cache hit rate: 0.0%\n"


@pytest.mark.parametrize(
    ("rates", "stuck"),
    [
        ([(5321.0, 0.0)] * 6, False),
        ([(5321.0, 0.0)] * 6 + [(0.0, 0.0)], False),
        ([(5321.0, 9.0)] + [(0.0, 0.0)] * 6, True),
        ([(0.0, 0.0)] * 6, True),
    ],
)
def test_a_server_that_only_reads_prompts_is_not_stuck(rates: list[tuple[float, float]], stuck: bool) -> None:
    facts = only("".join(_NEW.format(n, *pair) for n, pair in enumerate(rates))).facts
    assert ("load.stuck_lines" in facts) is stuck


def test_swapped_requests_are_counted() -> None:
    rows = [(185.4, 4, 2, 1, 97.0), (185.4, 4, 3, 1, 98.0), (185.4, 5, 0, 0, 60.0)]
    facts = only("".join(_OLD.format(n, *row) for n, row in enumerate(rows))).facts
    assert facts.value("load.max_swapped") == 3


def test_a_wait_for_a_worker_counts_once_the_server_has_served() -> None:
    wait = "(EngineCore pid=2) INFO 07-15 15:33:47 [shm_broadcast.py:705] No available shared memory broadcast block found in 60 seconds.\n"
    serving = "(APIServer pid=1) INFO 07-15 15:32:57 [loggers.py:273] Engine 000: Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: 0.0 tokens/s, Running: 3 reqs, Waiting: 0 reqs, GPU KV cache usage: 0.7%, Prefix cache hit rate: 0.0%\n"
    assert only(wait + serving).facts.value("load.broadcast_waits") is None
    assert only(serving + wait + wait).facts.value("load.broadcast_waits") == 2


def test_look_ups_of_one_request_are_counted() -> None:
    line = "(EngineCore_0 pid=3) [2025-11-27 09:31:28,461] LMCache INFO: Reqid: chatcmpl-{}, Total tokens 40072, LMCache hit tokens: 32768, need to load: -64 (vllm_v1_adapter.py:1048:lmcache)\n"
    assert only("".join(line.format(name) for name in "abacada")).facts.value("load.lookups_repeated") == 4
    assert only("".join(map(line.format, "abc"))).facts.value("load.lookups_repeated") is None
