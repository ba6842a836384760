"""``python -m benchmarks [MEGABYTES]``: speeds in one table, each the median of three runs, beside public tools.

Figures are MB (10^6 bytes) per CPU-second of the whole process, start-up included, so that other load on the machine
matters little; wall time and peak memory stand beside them.
"""

from __future__ import annotations

import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.generate import STARTUP, write_log, write_quiet

RUNS = 3
PROGRAM = [sys.executable, "-m", "analyzer"]


@dataclass
class Measured:
    """Median CPU and wall seconds, spread of the CPU seconds, peak memory in MB."""

    cpu: float
    wall: float
    spread: float
    memory: float


def measure(command: Sequence[str], folder: Path) -> Measured:
    """Runs ``command`` several times under a small wrapper that reads its resource use."""
    script = (
        "import resource,subprocess,sys,time;t=time.monotonic();"
        "subprocess.run(sys.argv[1:],stdout=subprocess.DEVNULL,stderr=subprocess.DEVNULL);"
        "u=resource.getrusage(resource.RUSAGE_CHILDREN);print(u.ru_utime+u.ru_stime,time.monotonic()-t,u.ru_maxrss)"
    )
    rows = []
    for _ in range(RUNS):
        out = subprocess.run(
            [sys.executable, "-c", script, *command], cwd=folder, capture_output=True, text=True
        ).stdout
        rows.append([float(x) for x in out.split()])
    cpu, wall, memory = (statistics.median(column) for column in zip(*rows, strict=True))
    used = [row[0] for row in rows]
    return Measured(cpu, wall, (max(used) - min(used)) / cpu if cpu else 0.0, memory / 1000)


def row(name: str, megabytes: float, result: Measured) -> None:
    """Prints one line of the table."""
    speed = f"{megabytes / result.cpu:8.1f}" if megabytes else " " * 8
    spread = f"{100 * result.spread:5.0f} %"
    print(f"{name:44} {speed} {result.cpu:9.3f} {result.wall:9.3f} {result.memory:8.0f} {spread}")


def main() -> None:
    """The table."""
    size = float(sys.argv[1]) if len(sys.argv) > 1 else 50.0
    root = Path(__file__).resolve().parent.parent
    model = platform.processor() or platform.machine()
    print(f"{model}, {os.cpu_count()} cores, Python {platform.python_version()}, load {os.getloadavg()[0]:.2f}\n")
    print(f"{'':44} {'MB/CPU s':>8} {'CPU s':>9} {'wall s':>9} {'peak MB':>8} {'spread':>7}")
    os.environ["PYTHONPATH"] = str(root)
    with tempfile.TemporaryDirectory(prefix="kvautopsy-bench-") as temporary:
        folder = Path(temporary)
        # As installed: with byte code, whatever this shell says, and with one run before those that count.
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = str(folder / "bytecode")
        measure([*PROGRAM, "explain", str(STARTUP["sglang"])], folder)
        start = str(STARTUP["sglang"])
        row("python -c pass", 0, measure([sys.executable, "-c", "pass"], folder))
        row("kvautopsy --help", 0, measure([*PROGRAM, "--help"], folder))
        row("kvautopsy explain, a start-up log", 0, measure([*PROGRAM, "explain", start], folder))
        for engine in ("sglang", "vllm"):
            log = write_log(folder / f"{engine}.log", size, engine)
            mega = log.stat().st_size / 1e6
            row(f"kvautopsy explain, {engine} runtime log", mega, measure([*PROGRAM, "explain", str(log)], folder))
            row(f"kvautopsy events, {engine} runtime log", mega, measure([*PROGRAM, "events", str(log)], folder))
            for name, command in peers(log):
                row(f"{name}, {engine} runtime log", mega, measure(command, folder))
        quiet = write_quiet(folder / "quiet.log", size)
        mega = quiet.stat().st_size / 1e6
        row("kvautopsy explain, nothing of interest", mega, measure([*PROGRAM, "explain", str(quiet)], folder))
        many = folder / "many"
        many.mkdir()
        for number in range(200):
            shutil.copy(start, many / f"{number:03}.log")
        result = measure([*PROGRAM, "audit", str(many), "-o", str(folder / "audit.csv")], folder)
        row("kvautopsy audit, 200 start-up logs", 0, result)
        print(f"{'':44} {200 / result.wall:8.0f} logs a second")


def peers(log: Path) -> list[tuple[str, list[str]]]:
    """Public tools that are installed, as a measure of the machine: a plain search, a typed query."""
    found = []
    if shutil.which("rg"):
        found.append(("ripgrep -c", ["rg", "-c", "token usage|KV cache usage", str(log)]))
    if shutil.which("lnav"):
        query = ";SELECT count(*), max(log_time) FROM all_logs"
        found.append(("lnav, typed query", ["lnav", "-n", "-c", query, str(log)]))
    return found


if __name__ == "__main__":
    main()
