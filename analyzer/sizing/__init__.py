"""Sizing: the engines' own formulas by version, filled with the facts of one run."""

from __future__ import annotations

from analyzer.run.model import Run
from analyzer.sizing.base import Check, SizingModel, Solution

__all__ = ["Check", "SizingModel", "Solution", "check", "model_for"]


def model_for(run: Run) -> SizingModel | None:
    """The sizing model of the run's engine and version; None if the run says too little for any."""
    if run.engine == "sglang":
        from analyzer.sizing.sglang import sglang_model

        return sglang_model(run)
    if run.engine == "vllm":
        from analyzer.sizing.vllm import vllm_model

        return vllm_model(run)
    return None


def check(model: SizingModel, run: Run) -> Check:
    """Predicted against observed pool. The error is relative to the observed pool, None where either is unknown."""
    predicted = model.solve()
    observed = run.facts.value("pool.tokens")
    error = None
    if predicted.tokens is not None and observed:
        error = predicted.tokens / observed - 1
    return Check(
        model.formula,
        predicted.tokens,
        observed,
        error,
        tuple(model.missing),
        tuple(model.calibrated),
        model.margin,
        predicted.steps,
    )
