"""What SGLang 0.5.14 and later charge for a draft, against what its pool holds, on starts made by the formula."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from analyzer.diagnosis import RuleSet
from analyzer.run.model import Run
from analyzer.sizing import check, model_for
from tests.sglang.read import read, stamped

GIB = 1 << 30
BEFORE, FRACTION = 78.0, 0.85


@dataclass(frozen=True)
class Start:
    """A start of 0.5.17: ``factor`` is what the cell was multiplied by, ``draft_cell`` what the draft stores."""

    factor: float
    cell: int
    draft_cell: float
    path: str = "'/m'"
    method: str = "EAGLE"
    target: str = "FooForConditionalGeneration"
    draft: str = "FooForCausalLMMTP"

    def run(self) -> Run:
        loaded, draft = 45.0, 1.2
        after = loaded - draft
        tokens = int((after - (BEFORE + 0.063) * (1 - FRACTION)) * GIB / (self.cell * self.factor))
        pool, draft_pool = tokens * self.cell / GIB, tokens * self.draft_cell / GIB
        left = after - pool - draft_pool
        return read(
            stamped(
                f"server_args=ServerArgs(model_path='/m', mem_fraction_static={FRACTION}, page_size=1, tp_size=1,"
                f" max_total_tokens=None, max_running_requests=48, speculative_algorithm='{self.method}',"
                f" speculative_draft_model_path={self.path}, speculative_num_draft_tokens=4)",
                f"Load weight begin. avail mem={BEFORE:.2f} GB",
                f"Load weight end. elapsed=9.00 s, type={self.target}, avail mem={loaded:.2f} GB, mem usage=33.00 GB.",
                f"Load weight begin. avail mem={loaded:.2f} GB",
                f"Load weight end. elapsed=1.00 s, type={self.draft}, avail mem={after:.2f} GB, mem usage=1.20 GB.",
                _pool(tokens, pool),
                f"Memory pool end. avail mem={after - pool:.2f} GB",
                _pool(tokens, draft_pool),
                f"Memory pool end. avail mem={left:.2f} GB",
                "Capture target verify CUDA graph begin. backend=full, num_tokens_per_req=4, bs=[1],"
                f" avail mem={left - 0.1:.2f} GB",
                f"max_total_num_tokens={tokens}, chunked_prefill_size=8192, max_prefill_tokens=16384,"
                f" max_running_requests=48, context_len=32768, available_gpu_mem={left - 0.3:.2f} GB",
                "The server is fired up and ready to roll!",
            )
        )


def _pool(tokens: int, size: float) -> str:
    half = f"{size / 2:.2f} GB"
    return f"KV Cache is allocated. dtype: torch.bfloat16, #tokens: {tokens}, K size: {half}, V size: {half}"


def rules(run: Run) -> dict[str, str]:
    judgement = RuleSet.load([]).judge(run, model_for(run))
    return {finding.rule: finding.severity for finding in judgement.findings}


def test_whole_depth_of_a_plain_model_is_twice_the_cell() -> None:
    run = Start(factor=2.0, cell=262_144, draft_cell=262_144 / 64).run()
    assert rules(run)["KV002"] == "critical"
    assert run.facts.value("draft.charged_depth") == pytest.approx(1.0, rel=0.01)
    assert "draft.layers_counted" not in run.facts, "a pool of 0.25 GiB does not tell 64 layers from 62"
    model = model_for(run)
    assert model is not None and "sizing.cell" in model.calibrated


def test_a_small_standalone_draft_is_charged_with_the_targets_geometry() -> None:
    draft_cell = 28 * 8 * 2 * 64 * 2
    run = Start(1 + 28 / 64, 262_144, draft_cell, "'/d'", "STANDALONE", "Qwen3ForCausalLM", "Qwen3ForCausalLM").run()
    assert rules(run)["KV002"] == "warning"
    model = model_for(run)
    assert model is not None
    fair = model.solve({"sizing.cell": 262_144.0 + draft_cell}).tokens
    assert fair == pytest.approx(32.09 * GIB / (262_144 + draft_cell), rel=0.005)


def test_a_draft_without_a_path_is_not_charged() -> None:
    run = Start(factor=1.0, cell=24_576, draft_cell=24_576 / 12, path="None").run()
    found = rules(run)
    assert "KV002" not in found and found["KV034"] == "info", "the draft's KV comes out of the reserve"
    model = model_for(run)
    assert model is not None
    result = check(model, run)
    assert result.error is not None and abs(result.error) < 0.002 and not result.calibrated


def test_the_right_charge_accuses_nobody() -> None:
    run = Start(factor=1 + 1 / 64, cell=262_144, draft_cell=262_144 / 64).run()
    assert not {"KV002", "KV009", "KV010", "KV034"} & rules(run).keys()
    model = model_for(run)
    assert model is not None and not model.calibrated
    result = check(model, run)
    assert result.error is not None and abs(result.error) < 0.002
