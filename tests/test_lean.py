"""A process keeps to one thread unless its environment says otherwise."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

STATUS = Path("/proc/self/status")
COUNT = f"""
from pathlib import Path
from analyzer.lean import run_lean
run_lean()
import numpy
print(Path("{STATUS}").read_text().partition("Threads:")[2].split()[0])
import polars
print(polars.thread_pool_size())
"""


@pytest.mark.skipif(not STATUS.exists(), reason="no /proc to count threads in")
@pytest.mark.parametrize(("said", "size"), [({}, 1), ({"POLARS_MAX_THREADS": "3"}, 3)])
def test_threads(said: dict[str, str], size: int) -> None:
    names = ("POLARS_MAX_THREADS", "OPENBLAS_NUM_THREADS")
    env = {name: value for name, value in os.environ.items() if name not in names} | said
    out = subprocess.run([sys.executable, "-c", COUNT], env=env, capture_output=True, text=True, check=True).stdout
    assert out.split() == ["1", str(size)]
