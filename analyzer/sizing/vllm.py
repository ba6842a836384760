"""vLLM's pool: from the device's memory to KV bytes, and from these to tokens.

    budget    = total x gpu_memory_utilization
    available = budget - weights - activation peak - memory outside the allocator - CUDA graphs (0.18 and later)
    blocks    = available / bytes per block,  tokens = blocks x tokens per block (one group of layers)

From 0.27 weights and memory outside the allocator are printed as one figure ("consumed").
``--kv-cache-memory-bytes`` and the CPU back end's KV space replace the budget; ``num_gpu_blocks_override`` caps the
blocks. The smallest rank decides. Source: vLLM 0.4 to 0.33, checked on published logs.

Inputs (overrides take the same names, base units): ``gpu.total``, ``sizing.fraction``, ``weights.loaded``,
``activation.bytes``, ``non_torch.bytes``, ``graphs.applied``, ``sizing.multimodal_reserve``, ``pool.available_bytes``,
``pool.user_bytes`` (infinite: not given), ``pool.user_blocks`` (infinite: no override), ``pool.bytes_per_token``,
``pool.block_bytes``, ``pool.block_tokens``, ``pool.padding_waste`` (share of each block that padding takes),
``args.decode_context_parallel_size`` (times that many tokens), ``pool.tokens`` (of the smallest worker, where
only tokens are printed); for hybrid models of known geometry ``limit.context``, ``spec.draft_tokens`` and
``draft.layers``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from analyzer.run.model import Run
from analyzer.sizing.base import Solution
from analyzer.sizing.vllm_hybrid import HybridPlan
from analyzer.units import show_bytes

PARTS = ("weights.loaded", "activation.bytes", "non_torch.bytes", "graphs.applied", "sizing.multimodal_reserve")
"""What is taken from the budget."""

NEUTRAL = {
    "graphs.applied": 0.0,
    "sizing.multimodal_reserve": 0.0,
    "pool.user_bytes": math.inf,
    "pool.user_blocks": math.inf,
    "pool.padding_waste": 0.0,
    "args.decode_context_parallel_size": 1.0,
}
"""Inputs that every model has, with the value that changes nothing."""


@dataclass(slots=True)
class VllmSizing:
    """vLLM's formula for one run's version, filled with its inputs. Implements ``sizing.base.SizingModel``."""

    formula: str
    inputs: dict[str, float]
    missing: tuple[str, ...] = ()
    calibrated: tuple[str, ...] = ()
    margin: float = 0.0
    ledger: tuple[str, ...] | None = None
    """Names of the parts whose sum with the pool is the budget; None if the log does not give them all."""
    tokens_known: float | None = None
    """Tokens of the unchanged pool where another line than the sizing gives them (concurrency, blocks)."""
    tokens_step: str = ""
    proportional: bool = False
    """Bytes per token were taken from the run's own pool: no rounding to whole blocks."""
    hybrid: HybridPlan | None = None
    """Geometry of a model with recurrent layers; then tokens follow from groups and blocks."""
    notes: tuple[str, ...] = field(default=())

    def solve(self, overrides: Mapping[str, float] | None = None) -> Solution:
        """The pool with ``overrides`` in place of inputs. Raises ``KeyError`` for a name that is no input."""
        values = {**NEUTRAL, **self.inputs}
        for name, value in (overrides or {}).items():
            if name not in values and name not in PARTS:
                raise KeyError(f"the sizing model of this run has no input {name!r}")
            values[name] = float(value)
        steps: list[str] = []
        size = self._available(values, steps)
        changed = {name for name, value in values.items() if value != {**NEUTRAL, **self.inputs}.get(name)}
        if size is not None:
            tokens = self._tokens(max(0.0, size), values, steps)
        else:
            tokens = self.tokens_known if changed <= {"pool.tokens"} else None
            steps.append(self.tokens_step)
        if tokens is not None and "pool.tokens" in changed:
            tokens *= values["pool.tokens"] / self.inputs["pool.tokens"]
        running = None
        if tokens is not None and (context := values.get("limit.context")) and "limit.running_requested" in values:
            running = min(values["limit.running_requested"], tokens / context)
        return Solution(tokens, running=running, steps=tuple(steps))

    def _available(self, values: Mapping[str, float], steps: list[str]) -> float | None:
        """KV bytes of the smallest rank."""
        if math.isfinite(values["pool.user_bytes"]):
            steps.append(f"available = {show_bytes(values['pool.user_bytes'])}, as given")
            return values["pool.user_bytes"]
        base = self.inputs.get("pool.available_bytes")
        if base is not None and values["pool.available_bytes"] != base:
            steps.append(f"available = {show_bytes(values['pool.available_bytes'])}")
            return values["pool.available_bytes"]
        if self.ledger is not None:
            return self._by_ledger(values, self.ledger, steps)
        if base is None:
            return None
        steps.append(f"available = {show_bytes(base)}, as printed")
        return self._changed(base, values, steps)

    def _by_ledger(self, values: Mapping[str, float], parts: tuple[str, ...], steps: list[str]) -> float:
        total, fraction = values["gpu.total"], values["sizing.fraction"]
        budget = total * fraction
        taken = [(name, values[name]) for name in parts]
        size = budget - sum(value for _, value in taken)
        shown = " - ".join(f"{name} {show_bytes(value)}" for name, value in taken if value)
        steps.append(f"budget = {show_bytes(total)} x {fraction:g} = {show_bytes(budget)}")
        steps.append(f"available = budget - {shown} = {show_bytes(size)}")
        return size

    def _changed(self, base: float, values: Mapping[str, float], steps: list[str]) -> float | None:
        """The printed budget, moved by what differs from the run's own inputs."""
        size = base
        fraction = values.get("sizing.fraction")
        if fraction != self.inputs.get("sizing.fraction") or values.get("gpu.total") != self.inputs.get("gpu.total"):
            before = self.inputs.get("sizing.fraction")
            if fraction is None or before is None or "gpu.total" not in self.inputs:
                return None
            size += values["gpu.total"] * fraction - self.inputs["gpu.total"] * before
        for name in PARTS:
            if name in values and values[name] != self._base(name):
                if name not in self.inputs and name not in NEUTRAL:
                    return None
                size -= values[name] - self._base(name)
        if size != base:
            steps.append(f"changed inputs make that {show_bytes(size)}")
        return size

    def _base(self, name: str) -> float:
        return self.inputs.get(name, NEUTRAL.get(name, 0.0))

    def _tokens(self, size: float, values: Mapping[str, float], steps: list[str]) -> float | None:
        """Tokens of a pool of ``size`` bytes."""
        if self.hybrid is not None:
            return self.hybrid.tokens(size, values, steps)
        per_token = self._per_token(values)
        if per_token is None:
            if values == {**NEUTRAL, **self.inputs}:
                steps.append(self.tokens_step)
                return self.tokens_known
            return None
        block = values.get("pool.block_tokens", 1.0) or 1.0
        parallel = values["args.decode_context_parallel_size"] / self._base("args.decode_context_parallel_size")
        tokens = size / per_token * parallel
        blocks = tokens / block
        if blocks > values["pool.user_blocks"]:
            tokens = values["pool.user_blocks"] * block
            steps.append(f"cut to {values['pool.user_blocks']:,.0f} blocks, as given: {tokens:,.0f} tokens")
            return tokens
        if not self.proportional:
            tokens = math.floor(tokens / block + 1e-9) * block
        steps.append(f"tokens = {show_bytes(size)} / {per_token:,.2f} bytes = {tokens:,.0f}")
        if self.tokens_step and self.proportional:
            steps.append(self.tokens_step)
        return tokens

    def _per_token(self, values: Mapping[str, float]) -> float | None:
        per_token = values.get("pool.bytes_per_token")
        block_bytes, block = values.get("pool.block_bytes"), values.get("pool.block_tokens")
        if block_bytes is not None and block_bytes != self.inputs.get("pool.block_bytes") and block:
            if "pool.block_bytes" not in self.inputs or per_token is None:
                per_token = block_bytes / block
            else:
                per_token *= block_bytes / self.inputs["pool.block_bytes"]
        if per_token is None:
            return None
        used = 1 - values["pool.padding_waste"]
        per_token *= 1 - self._base("pool.padding_waste")
        return per_token / used if per_token > 0 and used > 0 else None  # else no tokens that could be counted


def vllm_model(run: Run) -> VllmSizing | None:
    """The model of ``run``, filled from its facts; None if they say nothing of the pool's sizing.

    Also writes the facts that only the formula gives into ``run.facts`` (``sizing.requested``, ``graphs.applied``,
    ``pool.bytes``, ``pool.bytes_per_token`` …), with origin ``derived``.
    """
    from analyzer.sizing.vllm_inputs import build

    return build(run)
