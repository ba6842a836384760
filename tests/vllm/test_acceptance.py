# ruff: noqa: E501  (messages are quoted whole)
"""A falling acceptance length: by context, by time, and over more lines than are kept as points."""

from __future__ import annotations

from collections.abc import Callable

from analyzer.run.model import Run
from tests.run.helpers import only

HEAD = "INFO 07-18 11:00:00 [kv_cache_utils.py:1087] GPU KV cache size: 400,000 tokens\n"


def served(lines: int, usage: Callable[[int], float], accepted: Callable[[int], float]) -> Run:
    """A run with ``lines`` pairs of statistics; ``usage`` (per cent) and ``accepted`` by number of the pair."""
    text = HEAD
    for n in range(lines):
        time = f"07-{18 + n // 8640:02d} {n // 360 % 24:02d}:{n // 6 % 60:02d}:{n % 6 * 10:02d}"
        text += (
            f"INFO {time} [loggers.py:310] Engine 000: Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: 30.0 tokens/s, Running: 1 reqs, Waiting: 0 reqs, GPU KV cache usage: {usage(n):.1f}%, Prefix cache hit rate: 0.0%\n"
            f"INFO {time} [metrics.py:120] SpecDecoding metrics: Mean acceptance length: {accepted(n):.2f}, Accepted throughput: 20.00 tokens/s, Drafted throughput: 30.00 tokens/s, Accepted: 200 tokens, Drafted: 300 tokens, Per-position acceptance rate: {accepted(n) - 1:.3f}, Avg Draft acceptance rate: 66.7%\n"
        )
    return only(text)


def test_by_context() -> None:
    facts = served(8, lambda n: 1.0 if n < 4 else 40.0, lambda n: 3.0 if n < 4 else 1.5).facts
    assert facts.value("spec.accept_length_short") == 3.0
    assert facts.value("spec.accept_length_long") == 1.5
    assert facts.value("spec.accept_long_context") == 131072


def test_contexts_of_about_one_length_are_not_compared() -> None:
    facts = served(8, lambda n: 10.0 if n < 4 else 14.0, lambda n: 3.0 if n < 4 else 1.5).facts
    assert "spec.accept_length_long" not in facts


def test_by_time_and_too_few_lines() -> None:
    facts = served(18, lambda n: 10.0, lambda n: 3.0 - n // 6 * 0.5).facts
    assert [facts.value(f"spec.accept_length_{part}") for part in ("early", "middle", "late")] == [3.0, 2.5, 2.0]
    assert "spec.accept_length_late" not in served(17, lambda n: 10.0, lambda n: 3.0).facts


def test_both_kinds_of_lines_survive_the_thinning_of_points() -> None:
    run = served(2000, lambda n: 1.0 if n < 1000 else 40.0, lambda n: 3.0 if n < 1000 else 2.0)
    assert run.facts.value("spec.accept_length_early") == 3.0
    assert run.facts.value("spec.accept_length_late") == 2.0
    assert run.facts.value("spec.accept_length_long") == 2.0
