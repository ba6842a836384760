"""Data-parallel engines behind one API server: each has a series of its own, and an imbalance between them shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from analyzer.diagnosis import RuleSet
from analyzer.run.model import Run
from tests.bulk.test_same import differences, report_by
from tests.run.helpers import only

Load = tuple[int, int, float]
"""Running, waiting, usage in per cent."""


def lines(rows: list[dict[int, Load]]) -> str:
    """Statistics of some engines at each time; one that is left out is idle and prints nothing."""
    return "".join(
        f"(APIServer pid=7) INFO 05-11 {10 + n // 360:02d}:{n // 6 % 60:02d}:{n % 6}4 [loggers.py:257] "
        f"Engine {engine:03d}: Avg prompt throughput: {running * 9.5} tokens/s, Avg generation throughput: "
        f"{running * 30.5} tokens/s, Running: {running} reqs, Waiting: {waiting} reqs, "
        f"GPU KV cache usage: {usage}%, Prefix cache hit rate: 0.0%\n"
        for n, row in enumerate(rows)
        for engine, (running, waiting, usage) in row.items()
    )


def found(run: Run) -> set[str]:
    return {finding.rule for finding in RuleSet.load().judge(run, None).findings}


UNEVEN: list[dict[int, Load]] = [{0: (24, 0, 70.1), 1: (2, 0, 4.5)}] * 4 + [{0: (31, 12, 98.5), 1: (1, 0, 1.5)}] * 16


def test_each_engine_has_a_series_of_its_own() -> None:
    run = only(lines(UNEVEN))
    assert list(run.series["by_rank"]) == ["Engine 000", "Engine 001"]
    assert run.series["by_rank"]["Engine 001"]["usage"]["max"] == 0.045
    usage = run.facts.get("load.max_usage")
    assert usage is not None and usage.ranks == {"Engine 000": 0.985, "Engine 001": 0.045} and usage.value == 0.985
    assert run.facts.value("load.waiting_samples") == 16
    assert run.facts.value("load.samples") == 40


def test_an_imbalance_is_told_with_both_engines() -> None:
    run = only(lines(UNEVEN))
    assert (run.facts.value("load.pressed_engine"), run.facts.value("load.spare_engine")) == (
        "Engine 000",
        "Engine 001",
    )
    assert run.facts.value("load.pressed_waiting") == 0.8
    explained = {f.rule: f.explained_by for f in RuleSet.load().judge(run, None).findings}
    assert explained["CC033"] == "CC050"  # the pool that is full is one of two


def test_an_engine_that_prints_little_is_idle_meanwhile() -> None:
    """vLLM leaves out the line of an engine without tokens: its few lines tell of its few busy moments only."""
    rows = [{0: (31, 12, 98.5), **({1: (9, 0, 40.5)} if n % 5 == 0 else {})} for n in range(20)]
    run = only(lines(rows))
    assert run.facts.value("load.spare_usage") == pytest.approx(0.081)
    assert run.facts.value("load.spare_running") == pytest.approx(1.8)
    assert "CC050" in found(run)


@pytest.mark.parametrize(
    "rows",
    [
        [{0: (31, 12, 98.5), 1: (30, 9, 97.5)}] * 20,
        [{0: (31, 12, 98.5), 1: (24, 0, 20.5)}] * 20,
        [{0: (31, 12, 98.5), 1: (2, 0, 60.5)}] * 20,
        [{0: (31, 1, 98.5), 1: (1, 0, 1.5)}] * 4 + [{0: (31, 0, 70.5), 1: (30, 0, 70.5)}] * 40,
        [{0: (31, 12, 98.5)}] * 20,
    ],
    ids=["both full", "short requests", "long requests", "a moment", "one engine"],
)
def test_no_imbalance(rows: list[dict[int, Load]]) -> None:
    assert "CC050" not in found(only(lines(rows)))


def test_one_engine_has_one_series_without_a_name() -> None:
    """Whatever its number (an API server of its own), and with the lines of speculation, which name no engine."""
    spec = (
        "(APIServer pid=7) INFO 05-11 10:00:05 [metrics.py:100] SpecDecoding metrics: Mean acceptance length: 2.50, "
        "Accepted throughput: 10.00 tokens/s, Drafted throughput: 20.00 tokens/s, Accepted: 100 tokens, Drafted: 200 "
        "tokens, Per-position acceptance rate: 0.800, 0.700, Avg Draft acceptance rate: 50.0%\n"
    )
    run = only((lines([{3: (2, 0, 4.5)}]) + spec) * 3)
    assert "by_rank" not in run.series
    usage = run.facts.get("load.max_usage")
    assert usage is not None and usage.ranks == {"": 0.045}
    assert {"usage", "accept_length"} <= run.series["points"].keys()


def test_an_engine_that_stands_is_no_dead_server_while_another_writes() -> None:
    stands = "Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: 0.0 tokens/s, Running: 31 reqs"
    busy = "Avg prompt throughput: 294.5 tokens/s, Avg generation throughput: 945.5 tokens/s, Running: 31 reqs"
    text = lines([{0: (31, 0, 50.5), 1: (30, 0, 50.5)}] * 20)
    assert text.count(busy) == 20
    assert "load.stalled_lines" not in only(text.replace(busy, stands)).facts
    both = text.replace(busy, stands).replace(
        "Avg prompt throughput: 285.0 tokens/s, Avg generation throughput: 915.0", stands[:74]
    )
    assert only(both).facts.value("load.stalled_lines") == 20


@pytest.mark.parametrize("first", [0, 5])
def test_by_columns_as_line_by_line(first: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Engines that come late, one that begins, and numbers of any size."""
    rows: list[dict[int, Load]] = [{first: (n % 31, n % 3, n % 99 + 0.5)} for n in range(2500)]
    rows += [{k: (n % (9 + k), n % 2, n % 90 + 0.5) for k in (1, 0, 12, 1234)} for n in range(1500)]
    path = tmp_path / "dp.log"
    path.write_text(lines(rows))
    plain, none = report_by(path, monkeypatch, 1 << 62)
    columns, by_columns = report_by(path, monkeypatch, 300_000)
    assert none == 0 and by_columns > 4000
    assert len(plain["runs"][0]["series"]["by_rank"]) == 4 + (first == 5)
    assert differences(plain, columns)[:5] == []
