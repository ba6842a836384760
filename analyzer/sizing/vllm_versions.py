"""Which of vLLM's formulas hold for a run: by its version, or by what its lines say where the number tells nothing."""

from __future__ import annotations

from analyzer.run.model import Run
from analyzer.run.vllm_version import ordered, version_key

OLDEST, NEWEST = version_key("0.4.0"), version_key("0.33.0")
UTILISATION_RAISED = version_key("0.20.0")
TOKENS_BY_CONCURRENCY = version_key("0.20.1")
ESTIMATE_SUBTRACTED = version_key("0.20.0")
WINDOWS_COUNT_BATCHES = version_key("0.26.0")


def span(run: Run) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Lowest and highest version that the run can have."""
    if run.version and ordered(run.version):
        key = version_key(run.version)
        return key, key
    low, high = run.version_range or ("", "")
    return version_key(low.lstrip(">=")) if low else OLDEST, version_key(high.lstrip("<=")) if high else NEWEST


def at_least(run: Run, version: tuple[int, ...]) -> bool | None:
    """Whether the run's version is ``version`` or later; None if its bracket leaves it open."""
    low, high = span(run)
    if low >= version:
        return True
    return False if high < version else None


def default_fraction(run: Run) -> float | None:
    """gpu_memory_utilization where nobody gave one: 0.90, from 0.20 on 0.92. None if the bracket leaves it open."""
    newer = at_least(run, UTILISATION_RAISED)
    return None if newer is None else 0.92 if newer else 0.90


def label(run: Run) -> str:
    """The version or bracket for the formula's name."""
    if run.version:
        return run.version
    return " ".join(bound for bound in run.version_range or () if bound) or "of unknown version"
