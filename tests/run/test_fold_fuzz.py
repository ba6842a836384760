"""Whatever order, cut or noise the lines of a log come in: folding never raises and never points outside the log."""

from __future__ import annotations

from functools import cache

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.run.helpers import SAMPLES, folded


@cache
def lines() -> list[bytes]:
    """Lines of all kinds of failures, shortened."""
    found: list[bytes] = []
    for path in sorted((SAMPLES / "failures").glob("*.log")):
        found += [line[:300] for line in path.read_bytes().split(b"\n")][-90:]
    return list(dict.fromkeys(found))


@settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    picks=st.lists(st.integers(min_value=0, max_value=100_000), max_size=60),
    noise=st.binary(max_size=40),
    cut=st.integers(min_value=0, max_value=4_000),
)
def test_any_mixture_of_lines(picks: list[int], noise: bytes, cut: int) -> None:
    all_lines = lines()
    data = b"\n".join(all_lines[pick % len(all_lines)] for pick in picks)
    data = data[:cut] + noise + data[cut:]
    count = data.count(b"\n") + 1
    for run in folded(data):
        assert run.first_line <= run.last_line <= count
        for failure in run.failures:
            assert failure.where
            assert all(0 < where.line <= count for where in failure.where)
        if run.failure is not None:
            alone = run.engine is None and not run.stages and run.failure.kind == "exit"
            assert run.outcome == "unknown" if alone else run.outcome.startswith("crashed")
