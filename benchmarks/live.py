"""How long after a line is written ``kvautopsy follow`` says what it proves, and how many lines a second it takes."""

from __future__ import annotations

import itertools
import json
import shlex
import statistics
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.generate import write_log
from benchmarks.lines import runtime_lines
from benchmarks.measure import measure
from benchmarks.table import Row

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


BACKLOG = 300_001
"""Runtime lines that a fast writer pushes through a pipe."""


def backlog(program: Sequence[str], folder: Path, runs: int = 3) -> Iterator[Row]:
    """`follow` behind a pipe whose writer is as fast as it can be: lines a second, and that none is lost."""
    log = write_log(folder / "backlog.log", 0)
    with log.open("a", encoding="utf-8") as out:
        out.writelines(line + "\n" for line in itertools.islice(runtime_lines("sglang"), BACKLOG))
    lines = log.read_bytes().count(b"\n")
    size = log.stat().st_size / 1e6
    for view in ("--plain", "--format jsonl"):
        pipe = f"cat {shlex.quote(str(log))} | {shlex.join(program)} follow --fail-on never {view}"
        result = measure(["sh", "-c", pipe], folder, runs)
        said = f"{lines / result.wall:,.0f} lines a second"
        if view == "--format jsonl":
            written = subprocess.run(["sh", "-c", pipe], stdout=subprocess.PIPE, check=True).stdout.splitlines()
            read = json.loads(written[-1])["inputs"][0]
            said += f"; {read['lines']:,} of {lines:,} lines read, {len(written):,} written"
        yield Row(f"kvautopsy follow {view}, through a pipe", size, result, said)
    log.unlink()
