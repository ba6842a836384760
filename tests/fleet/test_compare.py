"""compare: the whole difference, attributed input by input, with what it cannot compare said."""

from __future__ import annotations

import pytest

from analyzer.fleet.compare import RESULTS, Comparison, compare
from analyzer.fleet.show_compare import as_json, print_comparison
from analyzer.pipeline import read_runs
from analyzer.resources import data_dir


def runs(before: str, after: str) -> Comparison:
    folder = data_dir("samples")
    return compare(*(read_runs([str(folder / name)])[0] for name in (before, after)))


PAIRS = [
    ("sglang/wrapper_nospec.log", "sglang/wrapper_nextn.log"),
    ("sglang/wrapper_nextn.log", "sglang/wrapper_nextn_draftcfg1.log"),
    ("sglang/wrapper_nospec.log", "sglang/field_nextn_27b.log"),
    ("vllm/two_nodes_plain.log", "vllm/two_nodes_mtp.log"),
]


@pytest.mark.parametrize(("before", "after"), PAIRS)
def test_shares_and_remainder_add_up(before: str, after: str) -> None:
    result = runs(before, after)
    assert result.change is not None
    assert result.remainder is not None
    assert sum(s.tokens for s in result.shares) + result.remainder == pytest.approx(result.change, abs=1)
    assert abs(result.remainder) < 0.01 * max(result.pool_before or 0, result.pool_after or 0)
    assert not {s.name for s in result.shares} & RESULTS


def test_the_inflated_cell_is_the_cause() -> None:
    result = runs("sglang/wrapper_nextn_draftcfg1.log", "sglang/wrapper_nextn.log")
    assert result.shares[0].name == "sizing.cell"
    assert result.shares[0].tokens == pytest.approx(result.change, rel=0.01)


def test_the_two_nodes_with_mtp() -> None:
    result = runs("vllm/two_nodes_plain.log", "vllm/two_nodes_mtp.log")
    assert (result.pool_before, result.pool_after) == (4_676_407, 4_305_153)
    assert any(d.name == "args.num_speculative_tokens" for d in result.arguments)
    assert any(d.name == "weights.loaded" for d in result.facts)


def test_two_engines_are_not_attributed(capsys: pytest.CaptureFixture[str]) -> None:
    from rich.console import Console

    result = runs("sglang/wrapper_nextn.log", "vllm/two_nodes_mtp.log")
    assert not result.shares
    assert "not attributed" in " ".join(result.warnings)
    print_comparison(result, Console(highlight=False))
    assert "NOTE" in capsys.readouterr().out
    assert as_json(result)["remainder"] is None
