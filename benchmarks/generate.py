"""Realistic logs of any size: a real start-up log, then runtime lines of every family with varied figures.

The same size and seed give the same bytes.
"""

from __future__ import annotations

import datetime
import random
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

ROOT = Path(__file__).resolve().parent.parent
STARTUP = {
    "sglang": ROOT / "samples" / "sglang" / "wrapper_nextn.log",
    "vllm": ROOT / "samples" / "failures" / "vllm_0.24.0_normal.log",
}
_STOPS = (b"SIGTERM received", b"[shutdown]")
_PLACES = ("/v1/chat/completions", "/v1/completions", "/health", "/metrics", "/generate")


def runtime_lines(engine: str, ranks: int = 1, seed: int = 1) -> Iterator[str]:
    """Endless runtime lines of ``engine`` with ``ranks`` data-parallel ranks."""
    chance = random.Random(seed)
    now = datetime.datetime(2026, 9, 12, 10, 0, 0)
    running = queued = 0
    while True:
        now += datetime.timedelta(milliseconds=chance.randrange(20, 900))
        rank = chance.randrange(ranks)
        running = max(0, min(256, running + chance.randrange(-8, 9)))
        queued = max(0, queued + chance.randrange(-4, 5)) if running > 200 else 0
        tokens = running * chance.randrange(400, 4000)
        kind = chance.random()
        make = _sglang if engine == "sglang" else _vllm
        yield make(chance, now, rank if ranks > 1 else None, running, queued, tokens, kind)


def _access(chance: random.Random) -> str:
    place = chance.choice(_PLACES)
    method = "GET" if place in ("/health", "/metrics") else "POST"
    status = "200 OK" if chance.random() < 0.99 else "400 Bad Request"
    host = ".".join(str(chance.randrange(256)) for _ in range(3))
    address = f"10.{host}:{chance.randrange(30000, 60999)}"
    return f'INFO:     {address} - "{method} {place} HTTP/1.1" {status}'


def _sglang(
    chance: random.Random, now: datetime.datetime, rank: int | None, running: int, queued: int, tokens: int, kind: float
) -> str:
    stamp = f"{now:%Y-%m-%d %H:%M:%S}"
    tag = "" if rank is None else f" DP{rank} TP{rank}"
    if kind < 0.45:
        return f"[{stamp}] {_access(chance)}"
    usage = min(1.0, tokens / 774081)
    if kind < 0.75:
        length = 1 + 3 * chance.random()
        rate = running * 41 * chance.random()
        return (
            f"[{stamp}{tag}] Decode batch, #running-req: {running}, #full token: {tokens}, full token usage: "
            f"{usage:.2f}, mamba num: {running * 4}, mamba usage: {running * 4 / 1200:.2f}, accept len: {length:.2f}, "
            f"accept rate: {(length - 1) / 3:.2f}, cuda graph: True, gen throughput (token/s): {rate:.2f}, "
            f"#queue-req: {queued}"
        )
    if kind < 0.97:
        new = chance.randrange(1, 8192)
        return (
            f"[{stamp}{tag}] Prefill batch, #new-seq: {chance.randrange(1, 9)}, #new-token: {new}, #cached-token: "
            f"{chance.randrange(0, 4096)}, full token usage: {usage:.2f}, mamba usage: {running * 4 / 1200:.2f}, "
            f"#running-req: {running}, #queue-req: {queued}, #pending-token: {queued * 900}, cuda graph: False, "
            f"input throughput (token/s): {new * 3 * chance.random():.2f}"
        )
    if kind < 0.985:
        return (
            f"[{stamp}{tag}] KV cache pool is full. Retract requests. #retracted_reqs: {chance.randrange(1, 9)}, "
            f"#new_tokens_gained: {chance.randrange(100, 9000)}, #new_token_ratio: {chance.random():.4f} -> "
            f"{chance.random():.4f}"
        )
    return f"[{stamp}{tag}] Some other component says nothing of interest about request {chance.randrange(10**9):09x}"


def _vllm(
    chance: random.Random, now: datetime.datetime, rank: int | None, running: int, queued: int, tokens: int, kind: float
) -> str:
    stamp = f"{now:%m-%d %H:%M:%S}"
    engine = rank or 0
    prefix = f"(APIServer pid=4711) INFO {stamp}"
    if kind < 0.6:
        return f"(APIServer pid=4711) {_access(chance)}"
    if kind < 0.86:
        rate = running * 30 * chance.random()
        return (
            f"{prefix} [loggers.py:248] Engine {engine:03}: Avg prompt throughput: {900 * chance.random():.1f} "
            f"tokens/s, Avg generation throughput: {rate:.1f} tokens/s, Running: {running} reqs, Waiting: "
            f"{queued} reqs, GPU KV cache usage: {min(99.9, tokens / 9000):.1f}%, Prefix cache hit rate: "
            f"{99 * chance.random():.1f}%"
        )
    if kind < 0.97:
        drafted = chance.randrange(100, 9000)
        accepted = int(drafted * chance.random())
        return (
            f"{prefix} [metrics.py:101] SpecDecoding metrics: Mean acceptance length: {1 + accepted / drafted:.2f}, "
            f"Accepted throughput: {accepted / 10:.2f} tokens/s, Drafted throughput: {drafted / 10:.2f} tokens/s, "
            f"Accepted: {accepted} tokens, Drafted: {drafted} tokens, Per-position acceptance rate: "
            f"{accepted / drafted:.3f}, Avg Draft acceptance rate: {100 * accepted / drafted:.1f}%"
        )
    return f"{prefix} [async_llm.py:390] Added request cmpl-{chance.randrange(16**12):012x}."


def quiet_lines(seed: int = 1) -> Iterator[str]:
    """Endless well-formed lines in which nothing is of interest, for the speed of passing over."""
    chance = random.Random(seed)
    now = datetime.datetime(2026, 9, 12, 10, 0, 0)
    while True:
        now += datetime.timedelta(milliseconds=chance.randrange(1, 90))
        words = " ".join(chance.choice(("tick", "router", "cell", "note", "plain", "words", "step")) for _ in range(16))
        yield f"[{now:%Y-%m-%d %H:%M:%S}] module {chance.randrange(99)} says {words} {chance.randrange(10**6)}"


def write_log(path: Path, megabytes: float, engine: str = "sglang", ranks: int = 1, seed: int = 1) -> Path:
    """Writes a log of about ``megabytes`` (10^6 bytes): start-up lines first, then runtime lines."""
    start = STARTUP[engine]
    with path.open("wb") as out:
        size = 0
        if start.exists():
            data = start.read_bytes()
            # The sample ends with its shutdown; a runtime log goes on instead.
            cuts = [place for mark in _STOPS if (place := data.find(mark)) > 0]
            data = data[: data.rfind(b"\n", 0, min(cuts)) + 1] if cuts else data
            size = out.write(data)
        _fill(out, runtime_lines(engine, ranks, seed), megabytes * 1e6 - size)
    return path


def write_quiet(path: Path, megabytes: float, seed: int = 1) -> Path:
    """Writes a log of about ``megabytes`` in which nothing is of interest."""
    with path.open("wb") as out:
        _fill(out, quiet_lines(seed), megabytes * 1e6)
    return path


def _fill(out: BinaryIO, lines: Iterator[str], size: float) -> None:
    """Fills ``out``: 16 MB of fresh lines, then those again, since making lines is slower than reading them."""
    block: list[bytes] = []
    held = 0
    for line in lines:
        data = line.encode() + b"\n"
        block.append(data)
        held += len(data)
        if held >= min(size, 16e6):
            break
    whole = b"".join(block)
    while size > 0:
        part = whole if size >= len(whole) else whole[: whole.rfind(b"\n", 0, int(size)) + 1] or b"\n"
        out.write(part)
        size -= len(part)
