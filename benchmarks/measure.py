"""What a command costs: CPU seconds, wall seconds, peak memory, each the median of several runs, with the spread."""

from __future__ import annotations

import statistics
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_WRAPPER = """
import ctypes, os, resource, subprocess, sys, time
try:  # processes that outlive the command (a server of forks) count too: they become children of this one
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
except (OSError, AttributeError):
    pass
start = time.monotonic()
null = subprocess.DEVNULL
done = subprocess.run(sys.argv[1:], stdout=null, stderr=null, stdin=null)
wall = time.monotonic() - start
end = start + wall + 5
while time.monotonic() < end:
    try:
        if os.waitpid(-1, os.WNOHANG)[0] == 0:
            time.sleep(0.01)
    except ChildProcessError:
        break
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_utime + used.ru_stime, wall, used.ru_maxrss, done.returncode)
"""


@dataclass(frozen=True, slots=True)
class Measured:
    """Median CPU and wall seconds, spread of the CPU seconds (greatest less least, over the median), peak MB.

    The memory is that of the largest process. ``status`` is the worst exit status.
    """

    cpu: float
    wall: float
    spread: float
    memory: float
    status: int = 0


def measure(command: Sequence[str], folder: Path, runs: int = 3) -> Measured:
    """Runs ``command`` in ``folder`` several times, each under a small wrapper that reads its resource use."""
    rows = []
    for _ in range(runs):
        wrapped = [sys.executable, "-c", _WRAPPER, *command]
        out = subprocess.run(wrapped, cwd=folder, capture_output=True, text=True, check=True).stdout
        rows.append([float(part) for part in out.split()])
    cpu, wall, memory, _ = (statistics.median(column) for column in zip(*rows, strict=True))
    used = [row[0] for row in rows]
    # ru_maxrss is in KiB on Linux and in bytes on macOS.
    unit = 1e6 if sys.platform == "darwin" else 1e6 / 1024
    spread = (max(used) - min(used)) / cpu if cpu else 0.0
    return Measured(cpu, wall, spread, memory / unit, status=int(max(row[3] for row in rows)))
