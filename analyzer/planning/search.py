"""Which flags reach a wanted context or concurrency, changed as little as possible.

The search goes through a small set of changes that a person would try, cheapest first: no change, a higher fraction, a
smaller chunk, 8-bit KV, a smaller state type, more ranks. A candidate counts if the worst case of the estimates still
reaches the target.
"""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from analyzer.planning.forecast import Forecast, forecast, middle
from analyzer.planning.launch import Launch

FRACTIONS = (0.85, 0.88, 0.9, 0.92, 0.94)
RANKS = (1, 2, 4, 8)
HEADROOM = 2.0 * (1 << 30)
"""Free memory that must stay after graphs under SGLang, for activations."""


@dataclass(frozen=True, slots=True)
class Target:
    """``context`` tokens for each of ``concurrency`` requests at once."""

    context: int
    concurrency: int


@dataclass(frozen=True, slots=True)
class Answer:
    """A launch that reaches the target, what was changed, and the command line."""

    found: Forecast
    changes: dict[str, Any]
    command: str


def search(launch: Launch, target: Target) -> Answer | None:
    """The least change that reaches ``target``, or None if none of the tried ones does."""
    for changes in _candidates(launch, target):
        changed = launch.changed(**changes)
        if not _reaches(middle(changed), target):
            continue
        found = forecast(changed)
        if _reaches(found, target):
            shown = {k: v for k, v in changes.items() if launch.args.get(k) != v}
            return Answer(found, shown, command_line(launch, found.launch, changes))
    return None


def document(answer: Answer | None, target: Target) -> dict[str, Any]:
    """The result of a search for ``target`` as JSON-ready values."""
    return {
        "context": target.context, "concurrency": target.concurrency, "reached": answer is not None,
        "changes": answer.changes if answer else None, "command": answer.command if answer else None,
        "pool_tokens": answer.found.tokens if answer else None,
    }  # fmt: skip


def _reaches(found: Forecast, target: Target) -> bool:
    if found.trouble or found.running < target.concurrency:
        return False
    if found.launch.engine == "vllm":
        worst = found.concurrency * (found.low / found.tokens if found.tokens else 0.0)
        return found.context >= target.context and worst * found.context >= target.concurrency * target.context
    slack = found.run.facts.value("free.after_graphs")
    kept = slack is None or float(slack) >= HEADROOM
    return kept and found.context >= target.context and found.low >= target.concurrency * target.context


def _candidates(launch: Launch, target: Target) -> Iterator[dict[str, Any]]:
    sglang = launch.engine == "sglang"
    fraction = "mem_fraction_static" if sglang else "gpu_memory_utilization"
    base: dict[str, Any] = {"context_length" if sglang else "max_model_len": target.context}
    running = "max_running_requests" if sglang else "max_num_seqs"
    limits: list[int | None] = [None]  # the engine's default serves as it is, unless room must be made
    if not launch.number(running):
        limits.append(target.concurrency)
    elif launch.number(running) < target.concurrency:
        base[running] = target.concurrency
    given = launch.number(fraction)
    fractions: list[float | None] = [None, *(f for f in FRACTIONS if f > given)]
    kv: list[str | None] = (
        [None] if launch.text("kv_cache_dtype").startswith("fp") else [None, "fp8_e4m3" if sglang else "fp8"]
    )
    states: list[str | None] = [None]
    if launch.folder.geometry.states and launch.text("mamba_ssm_dtype") != "bfloat16":
        states.append("bfloat16")
    chunks: list[int | None] = [None, 4096, 2048]
    chunk = "chunked_prefill_size" if sglang else "max_num_batched_tokens"
    ranks = [tp for tp in RANKS if tp >= launch.tp and _divides(launch, tp)]
    options = itertools.product(ranks, states, kv, chunks, fractions, limits)
    tried: list[tuple[int, dict[str, Any]]] = []
    for tp, state, kv_type, chunk_size, share, limit in options:
        changes = dict(base)
        cost = 0
        for name, value, price in (
            ("tensor_parallel_size", tp if tp != launch.tp else None, 8 * RANKS.index(tp)),
            ("mamba_ssm_dtype", state, 4),
            ("kv_cache_dtype", kv_type, 3),
            (chunk, chunk_size, 2),
            (fraction, share, 1),
            (running, limit, 1),
        ):
            if value is not None:
                changes[name] = value
                cost += price
        if sglang and launch.folder.geometry.states:
            slots = _slots(launch, target)
            tried.append((cost + 1, {**changes, "max_mamba_cache_size": slots}))
        tried.append((cost, changes))
    yield from (changes for _, changes in sorted(tried, key=lambda pair: pair[0]))


def _slots(launch: Launch, target: Target) -> int:
    """State slots for the wanted requests: five each is the most that a version takes for one."""
    per_request = 1 if launch.on("disable_radix_cache") else 5
    return target.concurrency * per_request


def _divides(launch: Launch, tp: int) -> bool:
    heads = launch.folder.config.number("heads") or tp
    return heads % tp == 0


def command_line(launch: Launch, found: Launch, changes: dict[str, Any]) -> str:
    """The engine's command line of ``launch`` with ``changes``; what was not given and not changed stays out."""
    names = {"tensor_parallel_size": "tp" if launch.engine == "sglang" else "tensor-parallel-size"}
    if launch.engine == "vllm":
        names["mamba_ssm_dtype"] = "mamba-ssm-cache-dtype"
    start = (["python", "-m", "sglang.launch_server", "--model-path", launch.folder.path]
             if launch.engine == "sglang" else ["vllm", "serve", launch.folder.path])  # fmt: skip
    words = list(start)
    for name in dict.fromkeys([*launch.spelled, *changes]):
        value = changes.get(name, launch.args.get(name))
        if value is None:
            continue
        words.append(launch.spelled.get(name) or f"--{names.get(name, name.replace('_', '-'))}")
        if value is not True:
            words.append(str(value))
    return shlex.join(words)
