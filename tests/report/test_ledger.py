"""The ledger adds up to what the device had, takes the tightest rank, and invents nothing."""

from __future__ import annotations

import pytest

from analyzer.report.ledger import ledger, tightest_rank
from analyzer.report.view import ledger_total
from analyzer.run.facts import Facts, Where
from analyzer.run.model import Run
from analyzer.units import GIB


def run_of(engine: str, gib: dict[str, float], **plain: float) -> Run:
    """A run whose facts are ``gib`` (in GiB) and ``plain``, each proved by a line of its own."""
    facts = Facts()
    for line, (name, value) in enumerate(gib.items(), 1):
        facts.add(name, value * GIB, Where("log", line, name))
    for line, (name, value) in enumerate(plain.items(), 50):
        facts.add(name.replace("__", "."), value, Where("log", line, name))
    return Run(1, "log", engine=engine, facts=facts)


SGLANG = {
    "gpu.free_before_load": 139.13, "weights.loaded": 16.14, "draft.weights.loaded": 5.53, "state.bytes": 14.74,
    "state.intermediate_bytes": 6.53, "pool.bytes": 59.84, "draft.pool.bytes": 14.96, "graphs.bytes": 0.76,
    "free.after_pool": 27.81, "free.before_graphs": 32.28, "free.after_graphs": 31.51,
    "draft.duplicate_vocab": 4.74,
}  # fmt: skip


def rows_of(run: Run) -> dict[str, float]:
    return {row.item: round(row.bytes / GIB, 2) for row in ledger(run)}


def test_an_sglang_ledger_adds_up_to_what_was_free_before_loading() -> None:
    run = run_of("sglang", SGLANG, sizing__fraction=0.8, pool__tokens=3922281, state__slots=228)
    rows = ledger(run)
    assert ledger_total(rows) / GIB == pytest.approx(139.13)
    assert rows_of(run) == {
        "weights, target": 16.14, "weights, draft": 5.53, "state, 228 slots": 14.74, "KV pool, target": 59.84,
        "KV pool, draft": 14.96, "CUDA graphs": 0.76, "other": 0.39, "free, kept": 27.83, "free, unused": 3.68,
    }  # fmt: skip
    draft = rows[1]
    assert draft.freed / GIB == pytest.approx(4.74) and "4.74 of it freed" in draft.note and draft.lines == [3]
    assert [row.kind for row in rows[-2:]] == ["kept", "unused"]
    assert "8.21 slots + 6.53 for speculation" in rows[2].note


def test_without_a_known_vocabulary_the_rise_of_free_memory_is_what_was_freed() -> None:
    gib = {k: v for k, v in SGLANG.items() if k != "draft.duplicate_vocab"}
    rows = ledger(run_of("sglang", gib, sizing__fraction=0.8, pool__tokens=1))
    assert rows[1].freed / GIB == pytest.approx(4.47)
    assert ledger_total(rows) / GIB == pytest.approx(139.13)


def test_a_run_that_died_before_its_pool_has_no_reserve_and_no_waste() -> None:
    gib = {"gpu.free_before_load": 79.0, "weights.loaded": 70.0, "gpu.free_after_load": 9.0}
    rows = ledger(run_of("sglang", gib, sizing__fraction=0.8))
    assert [(row.item, row.kind) for row in rows] == [("weights, target", "used"), ("left free", "kept")]


def test_rounding_is_not_a_row_of_its_own() -> None:
    gib = {"gpu.free_before_load": 80.0, "weights.loaded": 15.0, "pool.bytes": 50.0, "free.after_pool": 14.98}
    assert "other" not in rows_of(run_of("sglang", gib, pool__tokens=1))


def test_a_vllm_ledger_adds_up_to_the_device_and_tells_what_lies_outside_the_budget() -> None:
    gib = {
        "gpu.total": 80.0, "weights.loaded": 15.0, "activation.bytes": 2.0, "non_torch.bytes": 1.0,
        "pool.available_bytes": 53.5, "graphs.bytes": 0.9,
    }  # fmt: skip
    run = run_of("vllm", gib, sizing__fraction=0.9)
    assert rows_of(run) == {
        "weights, target": 15.0, "activation peak": 2.0, "outside torch": 1.0, "not itemised": 0.5, "KV pool": 53.5,
        "CUDA graphs": 0.9, "outside the budget": 7.1,
    }  # fmt: skip
    assert ledger_total(ledger(run)) / GIB == pytest.approx(80.0)


def test_vllm_graphs_inside_the_budget_are_not_counted_twice() -> None:
    gib = {"gpu.total": 80.0, "weights.loaded": 15.0, "graphs.applied": 1.0, "graphs.bytes": 0.8, "pool.bytes": 50.0}
    rows = ledger(run_of("vllm", gib, sizing__fraction=0.9))
    assert [row.bytes / GIB for row in rows if row.item == "CUDA graphs"] == [1.0]
    assert ledger_total(rows) / GIB == pytest.approx(80.0)


def test_without_the_device_size_only_what_was_printed_is_shown() -> None:
    gib = {"weights.loaded": 15.0, "pool.available_bytes": 50.0}
    assert rows_of(run_of("vllm", gib, sizing__fraction=0.9)) == {"weights, target": 15.0, "KV pool": 50.0}
    assert ledger(Run(1, "log")) == []


def test_the_tightest_rank_speaks() -> None:
    facts = Facts()
    for rank, free, weights in (("TP0", 60.0, 10.0), ("TP1", 40.0, 12.0)):
        facts.add("gpu.free_after_load", free * GIB, Where("log", 3), rank=rank)
        facts.add("weights.loaded", weights * GIB, Where("log", 2), rank=rank)
    run = Run(1, "log", engine="sglang", facts=facts)
    assert tightest_rank(facts) == "TP1"
    assert [(r.rank, r.item, r.bytes / GIB) for r in ledger(run)] == [
        ("TP1", "weights, target", 12.0),
        ("TP1", "left free", 40.0),
    ]


def test_a_vllm_start_that_died_before_its_pool_shows_what_others_held() -> None:
    run = run_of(
        "vllm", {"gpu.total": 80.0, "gpu.free_before_load": 30.0, "weights.loaded": 15.0}, sizing__fraction=0.9
    )
    assert rows_of(run) == {"weights, target": 15.0, "taken before loading": 50.0, "the rest": 15.0}
    assert ledger_total(ledger(run)) / GIB == pytest.approx(80.0)
    assert ledger(run_of("vllm", {"gpu.total": 80.0}, sizing__fraction=0.9)) == []


def test_what_no_line_tells_is_not_called_workspaces() -> None:
    """Without the line that ends the load, most of the remainder are the weights themselves."""
    gib = {k: v for k, v in SGLANG.items() if not k.startswith(("weights", "draft.weights"))}
    rows = ledger(run_of("sglang", gib, pool__tokens=1))
    rest = next(row for row in rows if row.kind == "unknown")
    assert (rest.item, rest.note) == ("weights, other", "not itemised: no line tells the weights")


def test_a_draft_whose_load_gave_memory_back_lessens_the_weights() -> None:
    """A target read through the page cache of a device that shares its memory with the host."""
    figures = {
        "gpu.free_before_load": 111.97, "weights.loaded": 82.97, "draft.weights.loaded": -1.86, "pool.bytes": 3.66,
        "graphs.bytes": 0.11, "free.after_graphs": 26.15,
    }  # fmt: skip
    run = run_of("sglang", figures)
    assert rows_of(run)["weights"] == pytest.approx(81.11)
    assert "weights, draft" not in rows_of(run)
    assert ledger_total(ledger(run)) / GIB == pytest.approx(111.97)


def test_a_pool_made_after_the_last_told_free_memory_is_taken_out_of_it() -> None:
    run = run_of("sglang", {"gpu.free_before_load": 93.43, "weights.loaded": 33.43, "gpu.free_after_load": 60.0,
                            "pool.bytes": 13.24}, pool__tokens=28938)  # fmt: skip
    assert rows_of(run)["left free"] == pytest.approx(46.76)
    assert ledger_total(ledger(run)) / GIB == pytest.approx(93.43)
