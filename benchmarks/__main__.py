"""``python -m benchmarks [MEGABYTES]``: speed, memory and latency in one Markdown table, beside public tools.

Every row of a run was measured on the same machine in the same minutes, so that the ratios between rows hold where the
figures do not. A tool that is missing is a row that says so; Drain3 may live in a virtual environment of its own, whose
interpreter ``DRAIN3_PYTHON`` names.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks import peers
from benchmarks.generate import STARTUP, write_access, write_log, write_postgres, write_quiet
from benchmarks.lines import ROOT
from benchmarks.live import backlog, latency
from benchmarks.measure import Measured, measure
from benchmarks.table import Row, markdown

PROGRAM = [sys.executable, "-m", "analyzer"]
SLOW_MB = 50.0
"""What a tool reads that would need many minutes for a gigabyte."""
AUDITED = 600
STATISTICS = {"sglang": "decode_batch", "vllm": "stats"}
START_RUNS = 10


def main() -> None:
    """Measures and prints the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("megabytes", type=float, nargs="?", default=50.0, help="size of each log, in 10^6 bytes")
    parser.add_argument("--runs", type=int, default=3, help="how often each command runs")
    parser.add_argument("-o", "--output", type=Path, help="also write the table to this file")
    options = parser.parse_args()
    os.environ["PYTHONPATH"] = str(ROOT)
    # As installed: with byte code, whatever this shell says, and with one run before those that count.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryDirectory(prefix="kvautopsy-bench-") as temporary:
        folder = Path(temporary)
        os.environ["PYTHONPYCACHEPREFIX"] = str(folder / "bytecode")
        measure([*PROGRAM, "explain", str(STARTUP["sglang"])], folder, 1)
        rows = []
        for row in all_rows(folder, options.megabytes, options.runs):
            print(f"{row.name}: {' | '.join(row.cells()[1:])}", file=sys.stderr, flush=True)
            rows.append(row)
    table = markdown(rows, options.runs)
    print(table, end="")
    if options.output is not None:
        options.output.write_text(table, encoding="utf-8")


def all_rows(folder: Path, megabytes: float, runs: int) -> Iterator[Row]:
    """Every row of the table, in order; each log is removed once it was read."""
    yield from starts(folder, max(runs, START_RUNS))
    for engine in ("sglang", "vllm"):
        log = write_log(folder / f"{engine}.log", megabytes, engine)
        small = write_log(folder / f"{engine}_small.log", min(megabytes, SLOW_MB), engine)
        for command, asked in _commands(log, folder / "tables", STATISTICS[engine]).items():
            yield Row(f"kvautopsy {command}, {engine} log", _mb(log), measure(asked, folder, runs))
        large, less = (list(peers.on_our_log(one, engine, folder)) for one in (log, small))
        for peer, slow in zip(large, less, strict=True):
            yield _peer_row(slow if peer.slow else peer, small if peer.slow else log, folder, runs, f", {engine} log")
        log.unlink()
        small.unlink()
    quiet = write_quiet(folder / "quiet.log", megabytes)
    passed = measure([*PROGRAM, "explain", str(quiet)], folder, runs)
    yield Row("kvautopsy explain, uninteresting text", _mb(quiet), _as_meant(passed, 3))
    quiet.unlink()
    foreign: tuple[tuple[Callable[[Path, float], Path], Callable[[Path, Path], peers.Peer]], ...] = (
        (write_postgres, peers.pgbadger),
        (write_access, peers.goaccess),
    )
    for write, tool in foreign:
        path = folder / "foreign.log"
        peer = tool(path, folder)
        if peer.command:
            write(path, min(megabytes, SLOW_MB) if peer.slow else megabytes)
        yield _peer_row(peer, path, folder, runs, "")
        path.unlink(missing_ok=True)
    yield from fleet_and_live(folder, runs)


def _commands(log: Path, tables: Path, kind: str) -> dict[str, list[str]]:
    """What is asked of kvautopsy on a large log. Tables want a folder that is not there: the last run's goes first.

    ``kind``: of the statistics lines, which lnav's typed query reads, too.
    """
    export = shlex.join([*PROGRAM, "events", str(log), "--output", str(tables)])
    return {
        "explain": [*PROGRAM, "explain", str(log), "--fail-on", "never"],
        "events --format jsonl": [*PROGRAM, "events", str(log), "--format", "jsonl"],
        "events --output (Parquet)": ["sh", "-c", f"rm -rf {shlex.quote(str(tables))}; exec {export}"],
        "events --output of one kind": ["sh", "-c", f"rm -rf {shlex.quote(str(tables))}; exec {export} --kind {kind}"],
    }


def starts(folder: Path, runs: int) -> Iterator[Row]:
    """What a short command costs, against an interpreter that does nothing."""
    long = folder / "500.log"
    write_log(long, 1)
    lines = long.read_bytes().splitlines(keepends=True)[:500]
    long.write_bytes(b"".join(lines))
    never = ["--fail-on", "never"]
    rows = (
        ("python -c pass", [sys.executable, "-c", "pass"]),
        ("kvautopsy --help", [*PROGRAM, "--help"]),
        ("kvautopsy explain, start-up log of 104 lines", [*PROGRAM, "explain", *never, str(STARTUP["sglang"])]),
        ("kvautopsy explain, log of 500 lines", [*PROGRAM, "explain", *never, str(long)]),
    )
    base = 0.0
    for name, command in rows:
        measure(command, folder, 1)  # its byte code is written
        result = measure(command, folder, runs)
        base = base or result.wall
        yield Row(name, 0, result, f"{runs} runs, {result.wall / base:.1f} times python -c pass")


def fleet_and_live(folder: Path, runs: int) -> Iterator[Row]:
    """Logs a second of an audit, and the latency of a finding while a log grows."""
    many = folder / "many"
    many.mkdir()
    data = STARTUP["sglang"].read_bytes()
    for number in range(AUDITED):
        # A log of its own each: other figures, other bytes.
        (many / f"{number:03}.log").write_bytes(data.replace(b"774081", b"%d" % (774081 - 4 * number)))
    csv = str(folder / "audit.csv")
    result = measure([*PROGRAM, "audit", str(many), "-o", csv], folder, runs)
    yield Row(f"kvautopsy audit, {AUDITED} start-up logs", 0, result, f"{AUDITED / result.wall:,.0f} logs a second")
    shutil.rmtree(many)
    seconds, spread = latency(PROGRAM, STARTUP["sglang"], folder, runs)
    yield Row("kvautopsy follow, line to finding", note=f"{1000 * seconds:.0f} ms, spread {100 * spread:.0f} %")
    yield from backlog(PROGRAM, folder, runs)


def _peer_row(peer: peers.Peer, log: Path, folder: Path, runs: int, ending: str) -> Row:
    if not peer.command:
        return Row(peer.name + ending)
    return Row(peer.name + ending, _mb(log), measure(peer.command, folder, runs))


def _as_meant(result: Measured, status: int) -> Measured:
    """``result`` with the exit status that the case should end with counted as none."""
    return result if result.status != status else Measured(result.cpu, result.wall, result.spread, result.memory)


def _mb(path: Path) -> float:
    return path.stat().st_size / 1e6


if __name__ == "__main__":
    main()
