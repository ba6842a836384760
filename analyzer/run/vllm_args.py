"""Launch arguments and resolved configuration of a vLLM server: three dumps of different age and completeness.

``args: Namespace(...)`` (up to 0.9.1) holds every argument, ``non-default args: {...}`` only what was given; the
engine's line ``with config: ...`` holds what came of them and wins where both name a thing. It lacks the utilisation,
``max_num_seqs``, ``max_num_batched_tokens`` and the block size.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from analyzer.events import Event
from analyzer.run.facts import Facts, Where
from analyzer.units import number_or_text

ARGUMENT_KINDS = frozenset({"launch_command", "server_args", "non_default_args", "engine_init", "engine_dump"})

_SCALARS = (str, int, float, bool)
_NOT_ARGUMENTS = frozenset({"__class__", "__args__", "config", "subparser", "dispatch_function", "speculative_config"})
_LONGEST = 500

CONFIG_NAMES = {
    "tensor_parallel_size": "args.tensor_parallel_size",
    "pipeline_parallel_size": "args.pipeline_parallel_size",
    "data_parallel_size": "args.data_parallel_size",
    "decode_context_parallel_size": "args.decode_context_parallel_size",
    "prefill_context_parallel_size": "args.prefill_context_parallel_size",
    "kv_cache_dtype": "args.kv_cache_dtype",
    "quantization": "args.quantization",
    "enforce_eager": "args.enforce_eager",
    "dtype": "args.dtype",
    "load_format": "args.load_format",
    "enable_prefix_caching": "args.enable_prefix_caching",
    "enable_chunked_prefill": "args.enable_chunked_prefill",
    "chunked_prefill_enabled": "args.enable_chunked_prefill",
    "device_config": "args.device",
    "disable_custom_all_reduce": "args.disable_custom_all_reduce",
}
"""Keys of the engine's line and the facts they become."""

_GIVEN_NAMES = {"model_tag": "model", "spec_method": "speculative_method", "spec_tokens": "num_speculative_tokens"}
"""Arguments with two names."""


_SHORT = {"-tp": "tensor_parallel_size", "-pp": "pipeline_parallel_size", "-dp": "data_parallel_size"}
_MUST_AGREE = frozenset(
    {
        "max_model_len", "kv_cache_dtype", "quantization", "gpu_memory_utilization", "tensor_parallel_size", "dtype",
        "pipeline_parallel_size", "speculative_config", "spec_method", "spec_tokens", "spec_model", "block_size",
        "max_num_batched_tokens", "max_num_seqs", "kv_cache_memory_bytes", "enable_prefix_caching",
        "enable_expert_parallel", "enforce_eager", "nnodes", "decode_context_parallel_size",
    }
)  # fmt: skip
"""Arguments that all nodes of one server have to be given alike."""


def write_arguments(lines: Mapping[str, list[Event]], facts: Facts) -> None:
    """Facts of all argument dumps, the least resolved first."""
    for event in lines.get("launch_command", []):
        _write_given(read_flags(event.get("flags", ""), event.get("model_tag")), event, facts)
    for event in lines.get("server_args", []):
        _write_given(event.get("all_args"), event, facts)
    for event in lines.get("non_default_args", []):
        given = event.get("given_args")
        _write_given(given, event, facts)
        if isinstance(given, dict) and not event.cut and "sizing.fraction" not in facts:
            facts.add("sizing.fraction_default", True, event.record, rank="")
        elif isinstance(given, dict) and "gpu_memory_utilization" in given:
            facts.add("sizing.fraction_default", False, event.record, rank="")
    _write_differences(lines.get("non_default_args", []), facts)
    for kind in ("engine_dump", "engine_init"):
        for event in lines.get(kind, []):
            _write_config(event.get("config"), event, facts)


def read_flags(text: str, model: str | None = None) -> dict[str, Any]:
    """The arguments of a command line, from behind the first ``--``: names with underscores, numbers as numbers."""
    try:
        words = shlex.split(text)
    except ValueError:  # a quote that the paste cut off
        words = text.split()
    given: dict[str, Any] = {"model": model} if model else {}
    key = ""
    for number, word in enumerate(words):
        if number == 0 or word.startswith("--"):
            name, _, value = word.lstrip("-").partition("=")
            key = name.replace("-", "_")
            given[key] = number_or_text(value) if value else True
        elif word in _SHORT:
            key = _SHORT[word]
        elif key and word != "\\":
            given[key] = number_or_text(word)
            key = ""
    return given


def _write_differences(events: list[Event], facts: Facts) -> None:
    """Arguments that processes of one run were given differently, as on two nodes; those of a node itself aside."""
    dumps = [e.get("given_args") for e in events if isinstance(e.get("given_args"), dict) and not e.cut]
    names = {key for given in dumps for key in given} & _MUST_AGREE
    differing = sorted(key for key in names if len({repr(given.get(key)) for given in dumps}) > 1)
    if differing:
        facts.add("launch.differs", ", ".join(differing), [Where.of(e.record) for e in events[:8]], rank="")


def _write_given(given: Any, event: Event, facts: Facts) -> None:
    """Arguments as they were given or defaulted."""
    if not isinstance(given, dict):
        return
    record = event.record
    for key, value in given.items():
        name = _GIVEN_NAMES.get(key, key)
        if key not in _NOT_ARGUMENTS and isinstance(value, _SCALARS) and len(str(value)) <= _LONGEST:
            facts.add(f"args.{name}", value, record, rank="", origin="argument")
    numbers = {"sizing.fraction": "gpu_memory_utilization", "limit.context": "max_model_len"}
    numbers |= {"limit.running_requested": "max_num_seqs", "pool.user_blocks": "num_gpu_blocks_override"}
    numbers |= {"pool.user_bytes": "kv_cache_memory_bytes", "pool.block_tokens": "block_size"}
    for name, key in numbers.items():
        value = given.get(key)
        if isinstance(value, int | float) and not isinstance(value, bool) and value > 0:
            facts.add(name, value, record, rank="")
    facts.add("model.path", given.get("model") or given.get("model_tag"), record, rank="")
    if isinstance(given.get("max_num_seqs"), int):
        facts.add("limit.running_default", False if event.kind == "non_default_args" else None, record, rank="")
    _write_speculation(_speculation_of(given), event, facts)


def _speculation_of(given: dict[str, Any]) -> Any:
    """The speculative configuration among arguments: a dict of its own, or the flags of its parts."""
    if "speculative_config" in given:
        return given["speculative_config"]
    method = given.get("spec_method")
    model = given.get("speculative_model") or given.get("spec_model")
    tokens = given.get("num_speculative_tokens") or given.get("spec_tokens")
    if not (method or model or tokens):
        return None
    return {"method": method, "model": model, "num_speculative_tokens": tokens}


def _write_config(config: Any, event: Event, facts: Facts) -> None:
    """What the engine resolved."""
    if not isinstance(config, dict):
        return
    record = event.record
    for key, name in CONFIG_NAMES.items():
        value = config.get(key)
        if value is None and key == "quantization" and key in config:
            value = "none"
        if isinstance(value, _SCALARS):
            facts.discard(name)
            facts.add(name, value, record, rank="", origin="argument")
    facts.add("limit.context", _number(config.get("max_seq_len")), record, rank="")
    if isinstance(model := config.get("model"), str) and "model.path" not in facts:
        facts.add("model.path", model, record, rank="")
    if "speculative_config" in config:
        speculation = config["speculative_config"]
        if speculation in (None, "None"):
            facts.add("spec.enabled", False, record, rank="")
        else:
            _write_speculation(speculation, event, facts)


def _write_speculation(speculation: Any, event: Event, facts: Facts) -> None:
    """``spec.*`` from a dict, a ``SpeculativeConfig(...)`` or a JSON text."""
    if isinstance(speculation, str):
        from analyzer.parsing.nested import parse_value

        speculation = parse_value(speculation)[0] if speculation[:1] == "{" else {"model": speculation}
    if not isinstance(speculation, dict):
        return
    record = event.record
    facts.add("spec.enabled", True, record, rank="")
    model = speculation.get("model") or speculation.get("draft_model")
    method = speculation.get("method")
    if not method and isinstance(model, str):
        method = model.strip("[]") if model.startswith("[") else "draft_model"
    facts.add("spec.method", method, record, rank="")
    tokens = speculation.get("num_spec_tokens") or speculation.get("num_speculative_tokens")
    facts.add("spec.draft_tokens", _number(tokens), record, rank="")
    if isinstance(model, str):
        facts.add("args.speculative_model", model, record, rank="", origin="argument")


def _number(value: Any) -> int | float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None
