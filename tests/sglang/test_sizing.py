"""SGLang's formulas by version, against figures of real starts (reference 3, checked on an H200)."""

from __future__ import annotations

import pytest

from analyzer.run.sglang_version import version_key
from analyzer.sizing import check, model_for
from analyzer.sizing.sglang import SglangSizing
from analyzer.sizing.sglang_fraction import default_fraction, multimodal_factor
from analyzer.sizing.sglang_running import RunningInputs, running_requests
from analyzer.sizing.sglang_state import StateInputs, plan_state, slots_per_request
from analyzer.sizing.sglang_versions import Span
from tests.sglang.read import sample

GIB, MIB = 1 << 30, 1 << 20


def span(version: str) -> Span:
    key = version_key(version)
    return Span(key, key, True)


@pytest.mark.parametrize(
    ("name", "tokens", "slots", "running"),
    [
        ("hybrid_nextn_ratio02.log", 3_922_281, 228, 45),
        ("wrapper_nextn.log", 774_081, 654, 48),
        ("wrapper_nextn_draftcfg1.log", 3_096_324, 654, 48),
        ("wrapper_nospec.log", 3_281_428, 1255, 251),
    ],
)
def test_pools_of_real_starts(name: str, tokens: int, slots: int, running: int) -> None:
    run = sample(name)
    model = model_for(run)
    assert model is not None
    result, solved = check(model, run), model.solve()
    assert result.observed_tokens == tokens
    assert result.error is not None and abs(result.error) < 0.001
    assert solved.slots == pytest.approx(slots, abs=1) and solved.running == running
    assert result.missing == ()


def test_the_inflated_cell_is_called_calibrated_and_the_others_are_not() -> None:
    inflated, mended = sample("wrapper_nextn.log"), sample("wrapper_nextn_draftcfg1.log")
    model, other = model_for(inflated), model_for(mended)
    assert model is not None and other is not None
    assert "sizing.cell" in model.calibrated and not other.calibrated
    assert inflated.facts.value("sizing.charged_ratio") == pytest.approx(4.0, rel=0.005)
    assert mended.facts.value("sizing.charged_ratio") == pytest.approx(1.0, rel=0.005)
    assert inflated.facts.value("draft.layers_counted") == 16


def test_worked_example() -> None:
    model = SglangSizing(
        formula="sglang 0.5.17",
        span=span("0.5.17"),
        inputs={
            "gpu.free_before_load": 139.13 * GIB,
            "gpu.free_after_load": 117.45 * GIB,
            "sizing.fraction": 0.8,
            "sizing.cell": 20480.0,
            "draft.weights.loaded": 5.53 * GIB,
            "draft.duplicate_vocab": 4.736 * GIB,
            "state.slot_bytes": 38_486_016.0,
            "state.ratio": 0.2,
            "state.slots_per_request": 5.0,
            "spec.draft_tokens": 4.0,
            "limit.running_requested": 48.0,
            "limit.context": 262_144.0,
        },
        state=True,
        draft_charged=True,
    )
    solved = model.solve()
    assert (solved.slots, solved.running) == (228, 45)
    assert solved.tokens == pytest.approx(3_922_769, abs=5)
    mended = model.solve({"draft.duplicate_vocab": 0.0})
    assert mended.slots == 240 and mended.tokens == pytest.approx(4_125_988, abs=2000)
    without = model.solve({"draft.weights.loaded": 0.0})
    both = model.solve({"draft.weights.loaded": 0.0, "draft.duplicate_vocab": 0.0})
    assert without.tokens == both.tokens, "the duplicate is a part of what the draft loaded"
    with pytest.raises(KeyError):
        model.solve({"no.such.input": 1.0})


def test_cap_page_and_missing_inputs() -> None:
    inputs = {
        "gpu.free_before_load": 80.0 * GIB,
        "gpu.free_after_load": 60.0 * GIB,
        "sizing.fraction": 0.9,
        "sizing.cell": 65536.0,
        "pool.user_cap": 100_100.0,
        "pool.block_tokens": 64.0,
    }
    model = SglangSizing("f", span("0.5.10"), inputs)
    assert model.solve().tokens == 100_096
    assert model.solve({"pool.user_cap": 1e12}).tokens == pytest.approx(52 * GIB / 65536, abs=64)
    assert model.solve({"pool.user_cap": 1e12, "gpu.foreign": -10.0 * GIB}).tokens == pytest.approx(
        (52 + 9) * GIB / 65536, abs=64
    ), "memory that others hold counts by the fraction only"
    del inputs["sizing.cell"]
    assert SglangSizing("f", span("0.5.10"), inputs).solve().tokens is None


@pytest.mark.parametrize(
    ("version", "slots", "speculative"),
    [
        ("0.5.3", 48, 0),
        ("0.5.5", 56, 4 * 56),
        ("0.5.10", 189, 48 * 4),
        ("0.5.14", 155, 31 * 4),
        ("0.5.17", 153, 31 * 4),
    ],
)
def test_generations_of_state(version: str, slots: int, speculative: int) -> None:
    size = 32.0 * MIB
    inputs = StateInputs(size, ratio=0.9, per_request=5, requests=48, draft_tokens=4)
    plan = plan_state(592.0 * size, inputs, span(version))
    assert plan.slots == slots
    assert plan.speculative_bytes == speculative * size
    padding = 1 if version == "0.5.17" else 0
    assert plan.slots_bytes == (slots + padding) * size


def test_slots_per_request_by_version() -> None:
    def slots(version: str, strategy: str = "extra_buffer", **more: bool) -> int:
        given = {"radix": True, "overlap": True, "speculative": False, **more}
        return slots_per_request(span(version), strategy=strategy, **given)[0]

    assert slots("0.5.17") == 5 and slots("0.5.17", overlap=False) == 4
    assert slots("0.5.17", "no_buffer") == 3 and slots("0.5.17", "auto") == 3
    assert slots("0.5.17", radix=False) == 1
    assert slots("0.5.9", speculative=True) == 4 and slots("0.5.9") == 5
    assert slots("0.5.7", "no_buffer") == 5
    assert slots("0.5.5") == 3


@pytest.mark.parametrize(
    ("version", "inputs", "expected"),
    [
        ("0.5.17", RunningInputs(tokens=765_403, context=40_960, requested=None), (4096, "default")),
        ("0.5.17", RunningInputs(tokens=6000, context=40_960, requested=None), (2048, "default")),
        ("0.5.17", RunningInputs(tokens=100, context=4096, requested=256), (50, "tokens")),
        ("0.5.17", RunningInputs(tokens=674, context=32_768, requested=None), (337, "tokens")),
        ("0.5.17", RunningInputs(tokens=1e6, context=1e5, requested=48, attention_dp=8, default=True), (6, "default")),
        ("0.5.17", RunningInputs(tokens=1e6, context=1e5, requested=48, slots=6, per_request=5), (1, "state-slots")),
        ("0.4.3", RunningInputs(tokens=46_611, context=131_072, requested=None), (2049, "default")),
        ("0.5.12", RunningInputs(tokens=1e6, context=1e6, requested=4), (4, "request")),
    ],
)
def test_running_requests(version: str, inputs: RunningInputs, expected: tuple[int, str]) -> None:
    running = running_requests(inputs, span(version))
    assert (running.requests, running.bound_by) == expected


def test_default_fraction() -> None:
    h200 = 143_771.0 * MIB
    assert default_fraction(span("0.4.3"), {"tensor_parallel_size": 4}, None) == 0.85
    assert default_fraction(span("0.4.6"), {"tensor_parallel_size": 2}, None, free=21 * GIB) == 0.87
    assert default_fraction(span("0.5.1"), {"tensor_parallel_size": 1}, 24 * GIB) == pytest.approx(0.879, abs=0.001)
    args = {"chunked_prefill_size": 8192, "cuda_graph_max_bs": 256, "tensor_parallel_size": 1}
    assert default_fraction(span("0.5.17"), args, h200) == 0.907
    assert default_fraction(span("0.5.12"), {**args, "speculative_algorithm": "EAGLE"}, h200) == 0.878
    assert default_fraction(span("0.5.17"), args, None) is None, "not without the device's size"
    assert default_fraction(Span(), args, h200) is None, "not without a version"
    assert multimodal_factor() == pytest.approx(0.95)
    assert multimodal_factor(27, 1152) < multimodal_factor()


def test_open_versions_stay_open() -> None:
    bracket = Span(version_key("0.5.14"), version_key("0.5.17"), True)
    assert bracket.at_least("0.5.14") is True and bracket.at_least("0.5.18") is False
    assert bracket.at_least("0.5.16") is None and bracket.likely("0.5.16") is False
    assert str(bracket) == "0.5.14-0.5.17" and str(Span()) == "of unknown version"
