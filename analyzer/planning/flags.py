"""Engine flags as they stand on the engine's own command line, in every spelling that the engine takes.

``--tp 2``, ``--tp-size=2`` and ``--tensor-parallel-size 2`` mean one thing; vLLM also takes underscores and ``-tp``.
Flags that do not bear on memory are kept and named, not refused: a command line is pasted as it is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from analyzer.errors import UserError

_COMMON = {
    "tp": "tensor_parallel_size", "tensor_parallel_size": "tensor_parallel_size",
    "pp": "pipeline_parallel_size", "pipeline_parallel_size": "pipeline_parallel_size",
    "dp": "data_parallel_size", "data_parallel_size": "data_parallel_size",
    "kv_cache_dtype": "kv_cache_dtype", "quantization": "quantization", "dtype": "dtype",
}  # fmt: skip
_SGLANG = {
    **_COMMON, "tp_size": "tensor_parallel_size", "pp_size": "pipeline_parallel_size", "dp_size": "data_parallel_size",
    "ep": "expert_parallel_size", "ep_size": "expert_parallel_size", "expert_parallel_size": "expert_parallel_size",
    "enable_dp_attention": "enable_dp_attention", "mem_fraction_static": "mem_fraction_static",
    "max_running_requests": "max_running_requests", "max_total_tokens": "max_total_tokens",
    "chunked_prefill_size": "chunked_prefill_size", "max_prefill_tokens": "max_prefill_tokens",
    "context_length": "context_length", "page_size": "page_size", "cuda_graph_max_bs": "cuda_graph_max_bs",
    "cuda_graph_max_bs_decode": "cuda_graph_max_bs", "disable_cuda_graph": "disable_cuda_graph",
    "disable_radix_cache": "disable_radix_cache", "disable_overlap_schedule": "disable_overlap_schedule",
    "speculative_algorithm": "speculative_algorithm", "speculative_algo": "speculative_algorithm",
    "speculative_draft_model_path": "speculative_draft_model_path",
    "speculative_draft_model": "speculative_draft_model_path", "speculative_num_steps": "speculative_num_steps",
    "speculative_eagle_topk": "speculative_eagle_topk",
    "speculative_num_draft_tokens": "speculative_num_draft_tokens", "mamba_ssm_dtype": "mamba_ssm_dtype",
    "mamba_full_memory_ratio": "mamba_full_memory_ratio", "max_mamba_cache_size": "max_mamba_cache_size",
    "mamba_radix_cache_strategy": "mamba_radix_cache_strategy",
    "mamba_scheduler_strategy": "mamba_scheduler_strategy", "swa_full_tokens_ratio": "swa_full_tokens_ratio",
    "disable_hybrid_swa_memory": "disable_hybrid_swa_memory", "attention_backend": "attention_backend",
    "language_only": "language_only", "disable_prefill_cuda_graph": "disable_prefill_cuda_graph",
}  # fmt: skip
_VLLM = {
    **_COMMON, "gpu_memory_utilization": "gpu_memory_utilization", "max_model_len": "max_model_len",
    "max_num_seqs": "max_num_seqs", "max_num_batched_tokens": "max_num_batched_tokens", "block_size": "block_size",
    "num_gpu_blocks_override": "num_gpu_blocks_override", "kv_cache_memory_bytes": "kv_cache_memory_bytes",
    "kv_cache_memory": "kv_cache_memory_bytes", "enforce_eager": "enforce_eager",
    "enable_expert_parallel": "enable_expert_parallel", "speculative_config": "speculative_config",
    "sc": "speculative_config", "spec_method": "spec_method", "spec_tokens": "spec_tokens", "spec_model": "spec_model",
    "mamba_ssm_cache_dtype": "mamba_ssm_dtype", "mamba_cache_dtype": "mamba_cache_dtype",
    "mamba_cache_mode": "mamba_cache_mode", "dcp": "decode_context_parallel_size",
    "decode_context_parallel_size": "decode_context_parallel_size", "q": "quantization",
    "enable_prefix_caching": "enable_prefix_caching", "no_enable_prefix_caching": "no_enable_prefix_caching",
    "language_model_only": "language_model_only",
}  # fmt: skip
_SWITCHES = frozenset({
    "enable_dp_attention", "disable_cuda_graph", "disable_radix_cache", "disable_overlap_schedule",
    "disable_hybrid_swa_memory", "language_only", "disable_prefill_cuda_graph", "enforce_eager",
    "enable_expert_parallel", "enable_prefix_caching", "no_enable_prefix_caching", "language_model_only",
})  # fmt: skip
_FLOATS = frozenset(
    {"mem_fraction_static", "gpu_memory_utilization", "mamba_full_memory_ratio", "swa_full_tokens_ratio"}
)
_TEXTS = frozenset({
    "kv_cache_dtype", "quantization", "dtype", "speculative_algorithm", "speculative_draft_model_path",
    "mamba_ssm_dtype", "mamba_radix_cache_strategy", "mamba_scheduler_strategy", "attention_backend", "spec_method",
    "spec_model", "mamba_cache_dtype", "mamba_cache_mode", "speculative_config",
})  # fmt: skip
_HUMAN = {"k": 1000, "m": 10**6, "g": 10**9, "t": 10**12, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
"""vLLM's own suffixes of whole numbers: small letters are decimal, capitals binary."""


@dataclass(frozen=True, slots=True)
class Flags:
    """What was read: ``args`` by canonical name, ``spelled`` the flag as written, ``other`` flags without effect here,
    ``positional`` what belongs to no flag."""

    args: dict[str, Any] = field(default_factory=dict)
    spelled: dict[str, str] = field(default_factory=dict)
    other: tuple[str, ...] = ()
    positional: tuple[str, ...] = ()


def parse_flags(engine: str, words: Sequence[str]) -> Flags:
    """The flags in ``words``. Raises ``UserError`` for a known flag whose value is missing or makes no sense."""
    table = _SGLANG if engine == "sglang" else _VLLM
    args: dict[str, Any] = {}
    spelled: dict[str, str] = {}
    other: list[str] = []
    positional: list[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if not re.match(r"--?[A-Za-z]", word):
            positional.append(word)
            continue
        flag, equals, value = word.partition("=")
        name = table.get(flag.lstrip("-").replace("-", "_"))
        if name is None:
            other.append(flag)
            if not equals and rest and not rest[0].startswith("-") and _looks_like_value(rest[0]):
                rest.pop(0)
            continue
        spelled[name] = flag
        if name in _SWITCHES:
            args[name] = True
            continue
        if not equals:
            if not rest:
                raise UserError(f"{flag} needs a value")
            value = rest.pop(0)
        args[name] = _value(name, flag, value)
    return Flags(args, spelled, tuple(dict.fromkeys(other)), tuple(positional))


def speculation_of(args: dict[str, Any]) -> dict[str, Any]:
    """vLLM's speculative configuration: ``method``, ``model``, ``tokens``; empty without speculation.

    Raises ``UserError`` if ``--speculative-config`` is no JSON object.
    """
    given: dict[str, Any] = {}
    if text := args.get("speculative_config"):
        try:
            given = json.loads(text)
        except ValueError as error:
            raise UserError(f"--speculative-config is no JSON (quotes lost in a shell?): {str(text)[:80]}") from error
        if not isinstance(given, dict):
            raise UserError("--speculative-config is no JSON object")
    tokens = given.get("num_speculative_tokens") or args.get("spec_tokens")
    method = given.get("method") or args.get("spec_method")
    model = given.get("model") or args.get("spec_model")
    if not (tokens or method or model):
        return {}
    return {"method": str(method or ("draft_model" if model else "mtp")), "model": model, "tokens": int(tokens or 1)}


def whole_number(text: str) -> int:
    """``32k``, ``32K``, ``32,768`` or ``32768``. Raises ``ValueError`` for another text."""
    if match := re.fullmatch(r"(\d+(?:\.\d+)?)([kmgtKMGT])", text):
        return int(float(match[1]) * _HUMAN[match[2]])
    return int(text.replace(",", "").replace("_", ""))


def _looks_like_value(word: str) -> bool:
    """The next word belongs to an unknown flag: a number, a truth value, or a bare word without a path in it."""
    return "/" not in word and not word.startswith(".")


def _value(name: str, flag: str, value: str) -> Any:
    if name in _TEXTS:
        return value
    try:
        if name in _FLOATS:
            number = float(value)
            if not 0 < number <= 100:
                raise ValueError
            return number
        if name == "kv_cache_memory_bytes" and re.search(r"i?B$", value):
            from analyzer.units import parse_bytes

            return int(parse_bytes(value))
        return whole_number(value)
    except ValueError:
        raise UserError(f"{flag} {value}: not a number that this flag takes") from None
