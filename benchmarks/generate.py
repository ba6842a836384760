"""Realistic logs of any size: a real start-up log, then runtime lines of every family and rank.

The same size and seed give the same bytes. For the tools that cannot read such logs there are a PostgreSQL log and
an access log of the same size, each in the format that the tool is made for.
"""

from __future__ import annotations

import datetime
import random
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from benchmarks.lines import DAY, ROOT, STEP_MS, address, quiet_lines, runtime_lines

STARTUP = {
    "sglang": ROOT / "samples" / "sglang" / "wrapper_nextn.log",
    "vllm": ROOT / "samples" / "failures" / "vllm_0.24.0_normal.log",
}
_STOPS = (b"SIGTERM received", b"[shutdown]")
_STAMPS = ("%Y-%m-%d %H:", "%m-%d %H:", "%d/%b/%Y:%H:")
"""How the formats write the day and the hour."""
_BLOCK = 16_000_000


def write_log(path: Path, megabytes: float, engine: str = "sglang", ranks: int = 4, seed: int = 1) -> Path:
    """Writes a log of about ``megabytes`` (10^6 bytes): start-up lines first, then runtime lines."""
    data = STARTUP[engine].read_bytes()
    # The sample ends with its shutdown; a runtime log goes on instead.
    cuts = [place for mark in _STOPS if (place := data.find(mark)) > 0]
    data = data[: data.rfind(b"\n", 0, min(cuts)) + 1] if cuts else data
    with path.open("wb") as out:
        size = out.write(data)
        _fill(out, runtime_lines(engine, ranks, seed), megabytes * 1e6 - size)
    return path


def write_quiet(path: Path, megabytes: float, seed: int = 1) -> Path:
    """Writes a log of about ``megabytes`` in which nothing is of interest."""
    return _write(path, megabytes, quiet_lines(seed))


def write_postgres(path: Path, megabytes: float, seed: int = 1) -> Path:
    """Writes a PostgreSQL log (``log_line_prefix = '%t [%p]: user=%u,db=%d '``), pgBadger's own format."""
    return _write(path, megabytes, postgres_lines(seed))


def write_access(path: Path, megabytes: float, seed: int = 1) -> Path:
    """Writes a web server's access log in NCSA's combined format, one of GoAccess's own."""
    return _write(path, megabytes, access_lines(seed))


def postgres_lines(seed: int = 1) -> Iterator[str]:
    """Endless lines of a database server: statements with their durations, check points, errors."""
    chance = random.Random(seed)
    now = DAY
    tables = ("orders", "customers", "items", "stock", "sessions")
    while True:
        now += datetime.timedelta(milliseconds=chance.randrange(*STEP_MS))
        head = f"{now:%Y-%m-%d %H:%M:%S} UTC [{chance.randrange(2000, 2064)}]: user=app,db=shop "
        table, number = chance.choice(tables), chance.randrange(10**6)
        kind = chance.random()
        if kind < 0.85:
            took = f"{chance.expovariate(0.05):.3f}"
            yield f"{head}LOG:  duration: {took} ms  statement: SELECT id, name FROM {table} WHERE id = {number};"
        elif kind < 0.97:
            took = f"{chance.random():.3f}"
            yield f"{head}LOG:  duration: {took} ms  statement: UPDATE {table} SET n = n + 1 WHERE id = 7;"
        elif kind < 0.99:
            yield f'{head}ERROR:  relation "{table}_{number}" does not exist at character 15'
        else:
            yield f"{head}LOG:  checkpoint complete: wrote {number % 9000} buffers (1.2%); write=2.1 s, sync=0.0 s"


def access_lines(seed: int = 1) -> Iterator[str]:
    """Endless lines of a web server."""
    chance = random.Random(seed)
    now = DAY
    agents = ("Mozilla/5.0 (X11; Linux x86_64) Firefox/140.0", "curl/8.10.1", "python-httpx/0.28.1")
    while True:
        now += datetime.timedelta(milliseconds=chance.randrange(*STEP_MS))
        status = chance.choices((200, 304, 404, 500), (90, 5, 4, 1))[0]
        yield (
            f"{address(chance)} - - [{now:%d/%b/%Y:%H:%M:%S} +0000] "
            f'"GET /page/{chance.randrange(2000)} HTTP/1.1" {status} {chance.randrange(200, 90000)} "-" '
            f'"{chance.choice(agents)}"'
        )


def _write(path: Path, megabytes: float, lines: Iterator[str]) -> Path:
    with path.open("wb") as out:
        _fill(out, lines, megabytes * 1e6)
    return path


def _fill(out: BinaryIO, lines: Iterator[str], size: float) -> None:
    """Fills ``out``: 16 MB of fresh lines, then those again an hour later: making lines is slow."""
    block: list[bytes] = []
    held = 0
    for line in lines:
        data = line.encode() + b"\n"
        block.append(data)
        held += len(data)
        if held >= min(size, _BLOCK):
            break
    whole = b"".join(block)
    hours = 0
    while size > 0:
        moved = _later(whole, hours)
        part = moved if size >= len(moved) else moved[: moved.rfind(b"\n", 0, int(size)) + 1]
        if not part:
            break
        out.write(part)
        size -= len(part)
        hours += 1


def _later(block: bytes, hours: int) -> bytes:
    """``block``, which is dated in the first hour of ``DAY``, ``hours`` later."""
    then = DAY + datetime.timedelta(hours=hours)
    for form in _STAMPS:
        old = DAY.strftime(form).encode()
        if old in block:
            return block.replace(old, then.strftime(form).encode())
    return block
