"""The fraction that SGLang takes when the user gives none (reference 3.2, SGLang 0.4.0 .. 0.5.23)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from analyzer.sizing.sglang_versions import Span
from analyzer.units import GIB, MIB, number_or_none

_BY_TP = ((16, 0.79), (8, 0.81), (4, 0.85), (2, 0.87))


def default_fraction(
    span: Span, args: Mapping[str, Any], total: float | None, free: float | None = None
) -> float | None:
    """The default of the version of ``span`` for a text model, None if it cannot be told.

    ``args`` are launch arguments under SGLang's common names (``tensor_parallel_size`` …), ``total`` is the device's
    memory in bytes as nvidia-smi counts it, ``free`` what was free before loading.
    """
    if not span.known:
        return None
    tp = _number(args, "tensor_parallel_size", 1)
    if not span.before("0.4.6"):
        tp *= _number(args, "pipeline_parallel_size", 1)
    if span.before("0.4.6") or (total is None and span.before("0.4.9") and free is not None and free < 60 * GIB):
        return _by_tp(tp)
    if total is None:
        return None
    megabytes = total / MIB
    if span.before("0.4.9"):
        if megabytes <= 81920:
            return _by_tp(tp)
        fraction = 0.88
        if megabytes > 98304:
            fraction = min(fraction + 49152 * (1 - fraction) / megabytes, (megabytes - 18432) / megabytes)
        return fraction
    reserved = _by_device(span, args, total, tp) if span.before("0.5.3") else _by_arguments(span, args, total, tp)
    return None if reserved is None else round((megabytes - reserved) / megabytes, 3)


def _by_tp(tp: float) -> float:
    return next((fraction for least, fraction in _BY_TP if tp >= least), 0.88)


def _by_device(span: Span, args: Mapping[str, Any], total: float, ranks: float) -> float:
    """MiB kept free, 0.4.9 .. 0.5.2."""
    if total < 35 * GIB:
        reserved = (2.8 + ranks / 10) * 1024
    elif total < 90 * GIB:
        reserved = (9.5 + ranks / 2) * 1024
    elif total < 160 * GIB:
        reserved = (12 + ranks / 2) * 1024
    else:
        reserved = 32 * 1024
    algorithm = str(args.get("speculative_algorithm") or "")
    if algorithm:
        reserved += 6144 if algorithm.upper() == "STANDALONE" and span.likely("0.5.2") else 2048
    if args.get("enable_dp_attention"):
        reserved += 4096
    return reserved


def _by_arguments(span: Span, args: Mapping[str, Any], total: float, ranks: float) -> float | None:
    """MiB kept free, 0.5.3 .. 0.5.23, without prefill-graph terms that the dump does not show."""
    chunk = args.get("chunked_prefill_size")
    if not isinstance(chunk, int) or chunk <= 0:
        chunk = args.get("max_prefill_tokens", 16384)
    batch = args.get("cuda_graph_max_bs") or args.get("cuda_graph_max_bs_decode") or 0
    if not isinstance(chunk, int) or not isinstance(batch, int):
        return None
    reserved = 512 + 1.5 * max(chunk, 2048) + 2.0 * batch + ranks * 128
    if args.get("enable_dp_attention"):
        dp = _number(args, "data_parallel_size", 1)
        reserved += 3.0 * batch * dp + (1.5 * batch * dp if batch > 300 else 0.0)
    if total > 60 * GIB:
        reserved = max(reserved, 10240.0)
    algorithm = str(args.get("speculative_algorithm") or "").upper()
    if algorithm and not span.likely("0.5.14"):
        if algorithm == "STANDALONE":
            reserved += 6144
        elif algorithm != "NGRAM":
            reserved += 4096 if span.likely("0.5.10") else 2048
    return reserved


def multimodal_factor(layers: float = 24, hidden: float = 1024) -> float:
    """What the fraction is multiplied by for a model with a vision tower (0.4.9 .. 0.5.23, default fraction only)."""
    cost = layers * hidden**2 / (24 * 1024**2)
    return float(0.95 * min(max(1.1 - 0.1 * cost, 0.8), 1.05))


def _number(args: Mapping[str, Any], name: str, default: float) -> float:
    value = number_or_none(args.get(name))
    return default if value is None else value
