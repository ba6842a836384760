"""Which SGLang wrote a log: from a banner, else bracketed from the shapes of its lines.

Each piece of evidence bounds the version from below, from above or both; the bracket is their intersection. Bounds are
first and last of the releases whose text was compared (0.4.0 .. 0.5.23); between two of them a bound is drawn to the
side that is certain. Development builds can contradict a bracket: then no range is claimed.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from analyzer.events import Event
from analyzer.run.facts import Where
from analyzer.run.model import Run

if TYPE_CHECKING:
    from analyzer.run.sglang import SglangFolder

Bound = tuple[str, str]
"""(lowest, highest); ``""`` is open."""

KINDS: dict[str, Bound] = {
    "distributed_begin": ("", "0.5.20"),
    "parallel_begin": ("0.5.21", ""),
    "parallel_end": ("0.5.21", ""),
    "memory_baseline": ("0.5.21", ""),
    "kv_dtype": ("0.5.3", "0.5.12"),
    "graph_batches": ("0.4.6", "0.5.13"),
    "graph_tokens": ("0.5.4", "0.5.13"),
    "max_requests_resolved": ("0.5.13", "0.5.13"),
    "max_running_default": ("0.5.4", ""),
    "max_running_reduced": ("0.5.14", ""),
    "state_slots_cap": ("0.5.17", ""),
    "state_slots_figures": ("0.5.17", ""),
    "startup_timings": ("0.5.17", ""),
    "multimodal_reserve": ("0.5.18", ""),
    "load_weight_committed": ("0.5.18", ""),
    "pool_below_context": ("0.5.23", ""),
    "http_workers": ("0.5.23", ""),
    "dsv4_calculation": ("0.5.12", ""),
    "dsv4_draft_pools": ("0.5.12", ""),
    "kv_cache_va_bound": ("0.5.16", ""),
    "kv_cache_post_capture": ("0.5.16", ""),
    "kv_cache_post_capture_draft": ("0.5.22", ""),
    "weights_leave_nothing": ("0.5.14", ""),
    "subprocess_crashed": ("0.5.10", ""),
    "watchdog_timeout": ("", "0.5.6"),
    "watchdog_timeout_named": ("0.5.7", ""),
    "watchdog_ready": ("0.5.7", ""),
    "fraction_multimodal_reduced": ("0.4.3", "0.4.6.post5"),
    "fraction_multimodal_adjusted": ("0.4.9", "0.4.10.post2"),
    "state_no_overlap": ("0.5.7", "0.5.13"),
    "spec_overlap_off": ("0.4.6", "0.5.3"),
    "unified_pool": ("0.5.15", ""),
    "endpoint_deprecated": ("0.5.6", ""),
    "mla_enabled": ("", "0.5.4"),
    "tree_cache": ("0.5.13", ""),
}
"""Kinds that only some versions print."""

ARGUMENTS: dict[str, Bound] = {
    "mamba_scheduler_strategy": ("0.5.7", "0.5.13"),
    "mamba_radix_cache_strategy": ("0.5.14", ""),
    "cuda_graph_config": ("0.5.14", ""),
}
"""Arguments that only some versions have."""


_VERSION = re.compile(r"(\d+(?:\.\d+)*)(?:\.?(rc|a|b|dev|post)(\d+))?")


def version_key(version: str) -> tuple[int, ...]:
    """A version as something that sorts: ``0.5.9rc1``, ``0.5.9``, ``0.5.9.post1``; ``()`` for no version."""
    found = _VERSION.match(version)
    if found is None:
        return ()
    release = [int(part) for part in found[1].split(".")]
    release += [0] * (3 - len(release))
    if found[2] is None:
        return (*release, 0)
    return (*release, int(found[3])) if found[2] == "post" else (*release, -1, int(found[3]))


def _fields(event: Event, kind: str) -> list[Bound]:
    """What the fields of one event tell beyond its kind."""
    fields = event.fields
    found: list[Bound] = []
    if kind in ("prefill_batch", "decode_batch"):
        found.append(("", "0.5.3") if "full_stop" in fields else ("0.5.4", ""))
        if "prefix_hit" in fields:
            found.append(("", "0.4.4"))
        if "acceptance" in fields:
            found.append(("0.5.4", ""))
        if "pending_tokens" in fields:
            found.append(("0.5.11", ""))
        if "unbootstrapped" in fields:
            found.append(("0.4.6", "0.5.2"))
    elif kind == "distributed_end" and not fields.keys().isdisjoint(("elapsed", "used")):
        found.append(("0.5.9", "0.5.20") if "elapsed" in fields else ("0.4.5", "0.5.8"))
    elif kind == "load_weight_end":
        if "elapsed" in fields:
            found.append(("0.5.9", "0.5.9.post9") if "dtype" in fields else ("0.5.10", ""))
        elif "dtype" in fields and "avail" in fields:
            found.append(("0.4.5", "0.5.8") if "used" in fields else ("", "0.4.4"))
    elif kind == "kv_cache_allocated":
        if "tokens" not in fields:
            found.append(("0.4.1", "0.4.4"))
        elif "k_bytes" in fields or "kv_bytes" in fields:
            found.append(("0.5.13", "") if "dtype" in fields else ("0.4.4", "0.5.12"))
    elif kind == "pool_summary":
        if "avail" in fields:
            found.append(("0.4.7", ""))
        else:
            found.append(("", "0.4.6.post5"))
    elif kind in ("target_graph_begin", "prefill_graph_begin", "draft_graph_begin", "draft_extend_graph_begin"):
        found.append(("0.5.14", "") if "backend" in fields else ("", "0.5.13"))
        if "tokens_per_batch" in fields:
            found.append(("0.5.14", "0.5.15"))
        if "tokens_per_request" in fields:
            found.append(("0.5.16", ""))
    elif kind in ("target_graph_end", "prefill_graph_end") and "batches" in fields:
        found.append(("0.5.22", ""))
    elif kind == "mamba_cache_allocated":
        found.append(("0.5.4", "") if "slots" in fields else ("0.5.2", ""))
    elif kind == "retraction":
        if "gained" in fields:
            found.append(("0.5.7", ""))
        elif "aborted" in fields:
            found.append(("0.5.3", "0.5.4"))
    return found


def _order(folder: SglangFolder) -> tuple[Bound, Where | None] | None:
    """Up to 0.5.13 the draft is loaded after the target's pool, from 0.5.14 before it."""
    for log in folder.ranks.values():
        if log.loads_before_pool is None or not any(load.looks_like_draft for load in log.loads):
            continue
        drafts = [i for i, load in enumerate(log.loads) if load.looks_like_draft and load.end is not None]
        if drafts:
            record = log.loads[drafts[0]].end
            bound = ("0.5.14", "") if drafts[0] < log.loads_before_pool else ("", "0.5.14")
            return bound, Where.of(record) if record else None
    return None


def bounds(folder: SglangFolder) -> list[Bound]:
    """Every bound that the run's events give."""
    found = [KINDS[kind] for kind in folder.first if kind in KINDS]
    for kind, event in folder.first.items():
        if "@" not in kind:
            found += _fields(event, kind)
    if (order := _order(folder)) is not None:
        found.append(order[0])
    if folder.args_event is not None:
        found.append(("", "0.5.18") if "__class__" in folder.args else ("0.5.19", ""))
        found += [bound for key, bound in ARGUMENTS.items() if key in folder.args]
    return found


def write_version(folder: SglangFolder, run: Run) -> None:
    """Sets version, range and basis of ``run`` from a banner or from the bracket."""
    banner = folder.of("version_banner") or folder.of("version_image")
    if banner is not None:
        run.version = str(banner.get("version"))
        run.version_basis = "banner" if banner.kind == "version_banner" else "argument"
        run.facts.add("engine.version", run.version, banner.record, rank="")
        return
    low = high = ""
    for lower, upper in bounds(folder):
        if lower and (not low or version_key(lower) > version_key(low)):
            low = lower
        if upper and (not high or version_key(upper) < version_key(high)):
            high = upper
    if not (low or high):
        return
    if low and high and version_key(low) > version_key(high):
        run.notes.append(
            f"Lines of this log belong to versions that do not overlap (from {low}, up to {high}): "
            "a development build, or several logs in one."
        )
        return
    run.version_range = (f">={low}" if low else "", f"<={high}" if high else "")
    run.version_basis = "shapes"
