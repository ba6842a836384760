"""Lines that a busy server prints, with varied figures: batches, statistics, requests, access lines, rare notices.

Every line is dated in the first hour of ``DAY``; ``generate`` moves whole blocks of lines to later hours.
"""

from __future__ import annotations

import datetime
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DAY = datetime.datetime(2026, 12, 1)
STEP_MS = (10, 50)
"""Between two lines: about a hundred thousand of them, the 16 MB of a block, fill less than an hour."""

_PLACES = ("/v1/chat/completions", "/v1/completions", "/health", "/metrics", "/generate")
_SAMPLE = re.compile(r"^//= (.*)$|^([a-z]\w*):", re.MULTILINE)
_RARE_FILES = {
    "sglang": ("sglang/runtime.lark", "sglang/requests.lark", "common/http.lark"),
    "vllm": ("vllm/runtime.lark", "common/http.lark"),
}
NOT_WHILE_SERVING = frozenset(
    (
        # the server dies of these, or they belong to its start or end
        "pool_leak", "request_table_leak", "pool_leak_old", "pool_leak_busy", "pool_leak_parts", "nan_logits",
        "health_failed", "health_in_shutdown", "request_failed_dead", "allocator_twice", "gc_frozen", "stats_off",
        "http_process_started", "http_app_starting", "http_app_started", "http_running", "http_app_failed",
        "port_taken", "http_stopping", "http_draining", "http_app_stopping", "http_app_stopped",
        "http_process_finished", "kv_connector", "offload_spec", "offload_buffers", "kv_cross_layer",
        "connector_experimental",
        # a traceback follows, which a line alone does not show
        "http_exception", "request_preprocessing_failed", "request_stream_failed",
    )
)  # fmt: skip
"""Shapes of those files that no healthy server prints between two requests."""


@dataclass(slots=True)
class Load:
    """How busy the server is while one line is printed."""

    stamp: datetime.datetime
    rank: int
    ranks: int
    running: int
    queued: int
    tokens: int


def rare_lines(engine: str) -> dict[str, list[str]]:
    """Shape -> its sample lines, for every shape of ``engine``'s grammars that a healthy server of today may print."""
    found: dict[str, list[str]] = {}
    for name in _RARE_FILES[engine]:
        samples: list[str] = []
        for sample, shape in _SAMPLE.findall((ROOT / "grammars" / name).read_text(encoding="utf-8")):
            if sample:
                samples.append(sample)
                continue
            if samples and shape not in NOT_WHILE_SERVING and not shape.endswith("_v0"):
                found[shape] = samples
            samples = []
    return found


def runtime_lines(engine: str, ranks: int = 4, seed: int = 1) -> Iterator[str]:
    """Endless runtime lines of ``engine`` with ``ranks`` data-parallel ranks."""
    chance = random.Random(seed)
    load = [Load(DAY, rank, ranks, 0, 0, 0) for rank in range(ranks)]
    rare = [line for samples in rare_lines(engine).values() for line in samples]
    now = DAY
    while True:
        now += datetime.timedelta(milliseconds=chance.randrange(*STEP_MS))
        one = load[chance.randrange(ranks)]
        one.stamp = now
        one.running = max(0, min(256, one.running + chance.randrange(-8, 9)))
        one.queued = max(0, one.queued + chance.randrange(-4, 5)) if one.running > 200 else 0
        one.tokens = one.running * chance.randrange(400, 2900)
        yield _FAMILIES[engine](chance, one, rare)


def quiet_lines(seed: int = 1) -> Iterator[str]:
    """Endless well-formed lines in which nothing is of interest, for the speed of passing over."""
    chance = random.Random(seed)
    now = DAY
    words = ("tick", "router", "cell", "note", "plain", "words", "step")
    while True:
        now += datetime.timedelta(milliseconds=chance.randrange(*STEP_MS))
        text = " ".join(chance.choice(words) for _ in range(16))
        yield f"[{now:%Y-%m-%d %H:%M:%S}] module {chance.randrange(99)} says {text} {chance.randrange(10**6)}"


def access(chance: random.Random) -> str:
    """One answered request, as uvicorn prints it."""
    place = chance.choice(_PLACES)
    method = "GET" if place in ("/health", "/metrics") else "POST"
    status = "200 OK" if chance.random() < 0.99 else chance.choice(("400 Bad Request", "503 Service Unavailable"))
    return f'INFO:     {address(chance)}:{chance.randrange(30000, 60999)} - "{method} {place} HTTP/1.1" {status}'


def address(chance: random.Random) -> str:
    """Some client's address in a private network."""
    return "10." + ".".join(str(chance.randrange(256)) for _ in range(3))


def _words(chance: random.Random) -> str:
    return " ".join(chance.choice(("the", "pool", "of", "a", "server", "tells", "why", "it", "is")) for _ in range(24))


def _sglang(chance: random.Random, load: Load, rare: list[str]) -> str:
    stamp = f"{load.stamp:%Y-%m-%d %H:%M:%S}"
    tag = f" DP{load.rank} TP{load.rank} EP{load.rank}" if load.ranks > 1 else ""
    usage = min(1.0, load.tokens / 774081)
    state = f"mamba usage: {load.running * 4 / 1200:.2f}"
    kind = chance.random()
    if kind < 0.45:
        return f"[{stamp}] {access(chance)}"
    if kind < 0.72:
        length = 1 + 3 * chance.random()
        return (
            f"[{stamp}{tag}] Decode batch, #running-req: {load.running}, #full token: {load.tokens}, full token usage: "
            f"{usage:.2f}, mamba num: {load.running * 4}, {state}, accept len: {length:.2f}, accept rate: "
            f"{(length - 1) / 3:.2f}, cuda graph: True, gen throughput (token/s): "
            f"{load.running * 41 * chance.random():.2f}, #queue-req: {load.queued}"
        )
    if kind < 0.94:
        new = chance.randrange(1, 8192)
        return (
            f"[{stamp}{tag}] Prefill batch, #new-seq: {chance.randrange(1, 9)}, #new-token: {new}, #cached-token: "
            f"{chance.randrange(0, 4096)}, full token usage: {usage:.2f}, {state}, #running-req: {load.running}, "
            f"#queue-req: {load.queued}, #pending-token: {load.queued * 900}, cuda graph: False, input throughput "
            f"(token/s): {new * 3 * chance.random():.2f}"
        )
    if kind < 0.955:
        return (
            f"[{stamp}{tag}] KV cache pool is full. Retract requests. #retracted_reqs: {chance.randrange(1, 9)}, "
            f"#new_tokens_gained: {chance.randrange(100, 9000)}, #new_token_ratio: {chance.random():.4f} -> "
            f"{chance.random():.4f}"
        )
    if kind < 0.975:
        request = f"{chance.randrange(16**32):032x}"
        word = chance.choice(("Receive", "Finish"))
        return f"[{stamp}] {word}: obj=GenerateReqInput(rid='{request}', text='{_words(chance)}', stream=True)"
    if kind < 0.995:
        return f"[{stamp}{tag}] Some other component says nothing of interest about request {chance.randrange(10**9)}"
    return f"[{stamp}{tag}] {chance.choice(rare)}"


def _vllm(chance: random.Random, load: Load, rare: list[str]) -> str:
    stamp = f"{load.stamp:%m-%d %H:%M:%S}"
    said = f"(APIServer pid=4711) INFO {stamp}"
    kind = chance.random()
    if kind < 0.55:
        return f"(APIServer pid=4711) {access(chance)}"
    if kind < 0.8:
        return (
            f"{said} [loggers.py:273] Engine {load.rank:03}: Avg prompt throughput: {900 * chance.random():.1f} "
            f"tokens/s, Avg generation throughput: {load.running * 30 * chance.random():.1f} tokens/s, Running: "
            f"{load.running} reqs, Waiting: {load.queued} reqs, GPU KV cache usage: "
            f"{min(99.9, load.tokens / 7400):.1f}%, Prefix cache hit rate: {99 * chance.random():.1f}%"
        )
    if kind < 0.91:
        drafts = chance.randrange(100, 3000)
        places = sorted((chance.random() for _ in range(3)), reverse=True)
        accepted = int(drafts * sum(places))
        return (
            f"{said} [metrics.py:101] SpecDecoding metrics: Mean acceptance length: {1 + accepted / drafts:.2f}, "
            f"Accepted throughput: {accepted / 10:.2f} tokens/s, Drafted throughput: {3 * drafts / 10:.2f} tokens/s, "
            f"Accepted: {accepted} tokens, Drafted: {3 * drafts} tokens, Per-position acceptance rate: "
            f"{', '.join(f'{p:.3f}' for p in places)}, Avg Draft acceptance rate: {100 * accepted / 3 / drafts:.1f}%"
        )
    request = f"cmpl-{chance.randrange(16**32):032x}-0"
    if kind < 0.95:
        return f"{said} [async_llm.py:390] Added request {request}."
    if kind < 0.965:
        return (
            f"{said} [logger.py:39] Received request {request}: prompt: '{_words(chance)}', params: SamplingParams(n=1)"
        )
    if kind < 0.975:
        return f"{said} [async_llm.py:600] Aborted request(s) {request}."
    rank = f"(EngineCore_DP{load.rank} pid={5000 + load.rank})" if load.ranks > 1 else "(EngineCore pid=5000)"
    if kind < 0.995:
        return f"{rank} INFO {stamp} [core.py:700] Nothing of interest happened to request {chance.randrange(10**9)}"
    return f"{rank} WARNING {stamp} [core.py:701] {chance.choice(rare)}"


_FAMILIES: dict[str, Callable[[random.Random, Load, list[str]], str]] = {"sglang": _sglang, "vllm": _vllm}
