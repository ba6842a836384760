"""The runtime series: what one line cannot tell, and memory that does not grow."""

from __future__ import annotations

import pytest

from analyzer.events import Event
from analyzer.framing.record import Record
from analyzer.run.facts import Facts
from analyzer.run.series import MAX_POINTS, Series


def line(number: int, rank: str = "", **fields: float) -> Event:
    record = Record("log", number, number, f"line {number}", time=float(number), rank=rank)
    return Event("decode_batch", "sglang", record, dict(fields))


def facts_of(series: Series) -> Facts:
    facts = Facts()
    series.write(facts)
    return facts


def test_waiting_on_an_empty_pool() -> None:
    series = Series()
    for number in range(1, 11):
        series.feed(line(number, running=1, queued=3, usage=0.1, decode_rate=40.0))
    facts = facts_of(series)
    assert facts.value("load.waiting_pool_low") == 10 and facts.value("load.waiting_pool_full") == 0
    assert facts.value("load.running_when_waiting") == 1 and facts.value("load.max_queue") == 3
    assert [where.line for where in facts.where("load.waiting_pool_low")] == [1, 10]


def test_waiting_on_a_full_pool() -> None:
    series = Series()
    series.feed(line(1, running=6, queued=0, usage=0.5))
    series.feed(line(2, running=6, queued=5, usage=0.94))
    series.feed(line(3, running=6, queued=5, usage=0.2, swa_usage=0.99))
    facts = facts_of(series)
    assert facts.value("load.waiting_pool_full") == 2 and facts.value("load.waiting_pool_low") == 0
    assert facts.value("load.max_usage") == 0.94


def test_rates_after_a_pause_do_not_count() -> None:
    series = Series()
    series.feed(line(1, running=1, usage=0.1, decode_rate=0.6))
    assert "load.decode_rate_best" not in facts_of(series)
    series.feed(line(2, running=1, usage=0.1, decode_rate=60.0))
    series.feed(line(3, running=1, usage=0.1, decode_rate=0.4), decode=False)
    series.feed(line(4, running=1, usage=0.1, decode_rate=0.5))
    facts = facts_of(series)
    assert facts.value("load.decode_rate_best") == facts.value("load.decode_rate_last") == 60.0
    assert facts.value("load.decode_lines") == 3


def test_acceptance_over_context() -> None:
    series = Series()
    for number in range(4):
        series.feed(line(number, running=2, tokens=2 * 500, accept_length=3.8))
    for number in range(4, 8):
        series.feed(line(number, running=1, tokens=100_000, accept_length=2.0))
    facts = facts_of(series)
    assert facts.value("spec.accept_length_short") == pytest.approx(3.8)
    assert facts.value("spec.accept_length_long") == pytest.approx(2.0)
    assert facts.value("spec.accept_long_context") <= 100_000
    assert facts.value("spec.accept_length") == 2.0 and facts.value("spec.accept_samples") == 8


def test_ranks_are_kept_apart() -> None:
    series = Series()
    series.feed(line(1, rank="DP0 TP0", running=4, usage=0.9))
    series.feed(line(2, rank="DP1 TP0", running=9, usage=0.2))
    facts = facts_of(series)
    fact = facts.get("load.max_running")
    assert fact is not None and fact.value == 9 and fact.ranks == {"DP0 TP0": 4, "DP1 TP0": 9}
    assert set(series.summary()["by_rank"]) == {"DP0 TP0", "DP1 TP0"}


def test_points_are_thinned_and_ranks_bounded() -> None:
    series = Series()
    for number in range(20 * MAX_POINTS):
        series.feed(line(number, running=number % 7, usage=0.1))
    for number in range(1000):
        series.feed(line(number, rank=f"TP{number}", running=1, usage=0.1))
    points = series.summary()["points"]
    assert MAX_POINTS <= len(points["time"]) < 3 * MAX_POINTS
    assert points["time"] == sorted(points["time"]) and len(points["running"]) == len(points["time"])
    assert len(series.tracks) <= 64


def test_an_empty_series_says_nothing() -> None:
    series = Series()
    assert not series and series.summary() == {} and len(facts_of(series)) == 0


def test_retractions_are_counted_in_requests() -> None:
    series = Series()
    for number, requests in enumerate((1, 4, 2)):
        series.retracted(line(number).record, requests)
    facts = facts_of(series)
    assert facts.value("load.retractions") == 7 and facts.value("load.retraction_events") == 3
