"""``--like``: the figures of a real log of the same set-up replace the estimates."""

from __future__ import annotations

from pathlib import Path

import pytest

from analyzer.errors import UserError
from analyzer.planning.command import launch_of
from analyzer.planning.forecast import forecast
from analyzer.planning.likeness import like
from analyzer.resources import data_dir
from tests.evidence.packages import hybrid

GIB = 1 << 30


@pytest.fixture(scope="module")
def wrapper(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return hybrid(tmp_path_factory.mktemp("m") / "wrapper-16l", layers=16, method="")


def test_figures_of_the_log_narrow_the_range(wrapper: Path) -> None:
    launch = launch_of("sglang", "0.5.17", "143771MiB", [str(wrapper), "--mem-fraction-static", "0.8"])
    known = like(launch, str(data_dir("samples") / "sglang" / "wrapper_nospec.log"))
    assert known.known["context"] == pytest.approx(1.21 * GIB, abs=0.02 * GIB)
    assert known.known["loading"] == pytest.approx(0.08 * GIB, abs=0.03 * GIB)
    before, after = forecast(launch), forecast(known)
    assert after.tokens == pytest.approx(3_281_428, rel=0.001)
    assert after.high - after.low < 0.25 * (before.high - before.low)
    assert all("wrapper_nospec.log" in e.basis for e in after.estimates)


def test_a_log_of_the_other_engine_is_refused(wrapper: Path) -> None:
    launch = launch_of("vllm", "0.24.0", "80GiB", [str(wrapper)])
    with pytest.raises(UserError, match="no run of vllm"):
        like(launch, str(data_dir("samples") / "sglang" / "wrapper_nospec.log"))
