"""The summary of an archive: regressions between versions, outliers, and what cannot be compared is left out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from analyzer.fleet.rows import TABLES
from analyzer.fleet.store import frame_of
from analyzer.fleet.summary import Summary, summarise


def run(number: int, engine: str, version: str | None, pool: float, flags: str = "{}", **more: Any) -> dict[str, Any]:
    return {
        "run": f"{number}.log#1", "source": f"{number}.log", "engine": engine, "version": version, "pool_tokens": pool,
        "flags": flags, "model_path": "/models/m/", "gpu_name": "G", "outcome": "serving", **more,
    }  # fmt: skip


def summary(folder: Path, runs: list[dict[str, Any]]) -> Summary:
    for table in TABLES:
        frame_of(table, runs if table == "runs" else []).write_parquet(folder / f"{table}.parquet")
    return summarise(folder)


def test_the_same_set_up_with_a_smaller_pool_later(tmp_path: Path) -> None:
    found = summary(
        tmp_path,
        [
            run(1, "sglang", "0.5.10", 80_000),  # after 0.5.9, which as text would come later
            run(2, "sglang", "0.5.9", 100_000),
            run(3, "sglang", "0.5.11", 79_000),  # within what is called the same
            run(4, "sglang", "0.5.9", 50_000, '{"page_size": 64}'),
            run(5, "sglang", "0.5.10", 60_000, '{"page_size": 64}'),  # larger: none
            run(6, "sglang", "0.5.10", 10_000, model_path="/models/other"),  # other set-up
        ],
    ).regressions
    assert found.select("from", "to", "before", "after").rows() == [("0.5.9", "0.5.10", 100_000.0, 80_000.0)]
    assert abs(found["change"][0] + 0.2) < 1e-9


def test_a_changed_meaning_is_no_regression(tmp_path: Path) -> None:
    runs = [run(1, "vllm", "0.20.0", 400_000), run(2, "vllm", "0.20.1", 100_000), run(3, "vllm", "0.21.0", 90_000)]
    assert summary(tmp_path, runs).regressions.select("from", "to").rows() == [("0.20.1", "0.21.0")]


def bracket(number: int, low: str, high: str, pool: float, engine: str = "sglang") -> dict[str, Any]:
    return run(number, engine, None, pool, version_low=low, version_high=high)


def test_brackets_that_do_not_overlap_have_an_order(tmp_path: Path) -> None:
    found = summary(
        tmp_path,
        [
            bracket(1, ">=0.5.13", "<=0.5.15", 100_000),
            bracket(2, ">=0.5.14", "<=0.5.17", 70_000),  # overlaps with both: no order, nothing said
            bracket(3, ">=0.5.16", "<=0.5.18", 80_000),
            run(4, "sglang", "0.5.20", 60_000),
            bracket(5, ">=0.5.21", "", 50_000),
            bracket(6, "", "<=0.5.3", 40_000),
        ],
    ).regressions
    assert found.select("from", "to").rows() == [
        ("0.5.16-0.5.18", "0.5.20"),
        ("0.5.13-0.5.15", "0.5.16-0.5.18"),
        ("0.5.20", "0.5.21 or later"),
    ]


def test_a_bracket_beside_the_changed_meaning(tmp_path: Path) -> None:
    runs = [
        bracket(1, ">=0.18.0", "<=0.20.0", 400_000, "vllm"),
        bracket(2, ">=0.20.1", "<=0.22.0", 100_000, "vllm"),  # other meaning
        bracket(3, ">=0.23.0", "<=0.24.0", 90_000, "vllm"),
    ]
    assert summary(tmp_path, runs).regressions.select("from", "to").rows() == [("0.20.1-0.22.0", "0.23.0-0.24.0")]
    runs = [bracket(1, ">=0.20.0", "<=0.20.2", 400_000, "vllm"), bracket(2, ">=0.21.0", "<=0.22.0", 100_000, "vllm")]
    assert not summary(tmp_path, runs).regressions.height  # on which side the first one is, nobody knows


def test_counts_and_pools_name_the_bracket(tmp_path: Path) -> None:
    found = summary(tmp_path, [bracket(1, ">=0.5.13", "<=0.5.15", 1), bracket(2, "", "", 2), run(3, "sglang", "1", 3)])
    assert found.counts["version"].to_list() == [None, "0.5.13-0.5.15", "1"]
    assert set(found.pools["version"]) == {None, "0.5.13-0.5.15", "1"}


def test_outliers_need_three_runs_and_a_fifth(tmp_path: Path) -> None:
    runs = [run(i, "sglang", "0.5.9", pool) for i, pool in enumerate((100_000, 101_000, 99_000, 70_000, 110_000))]
    runs += [run(9, "sglang", "0.5.10", 10), run(10, "sglang", "0.5.10", 1000)]
    assert summary(tmp_path, runs).outliers["run"].to_list() == ["3.log#1"]
