"""How long after a line is written ``kvautopsy follow`` says what it proves."""

from __future__ import annotations

import statistics
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

SERVING = "fired up and ready to roll"
"""What follows this line is written while ``follow`` waits."""
FINDING = "SD001"
"""The draft's tokens are never accepted: proved by the lines that come then."""


def latency(program: Sequence[str], sample: Path, folder: Path, runs: int = 3) -> tuple[float, float]:
    """Median seconds from writing the proving lines to reading the finding, and their spread over the median."""
    seconds = sorted(_once(program, sample, folder / f"live{i}.log") for i in range(runs))
    middle = statistics.median(seconds)
    return middle, (seconds[-1] - seconds[0]) / middle


def _once(program: Sequence[str], sample: Path, log: Path) -> float:
    lines = sample.read_text(encoding="utf-8").splitlines(keepends=True)
    at = next(i for i, line in enumerate(lines) if SERVING in line)
    before, rest = lines[: at + 1], lines[at + 1 :]
    log.write_text("".join(before), encoding="utf-8")
    child = subprocess.Popen([*program, "follow", "--plain", str(log)], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    try:
        time.sleep(2)  # it has read what was there
        with log.open("a", encoding="utf-8") as out:
            out.write("".join(rest))
        start = time.monotonic()
        for line in child.stdout:
            if FINDING in line:
                return time.monotonic() - start
        raise RuntimeError(f"follow ended without {FINDING}")
    finally:
        child.kill()
        child.wait()
