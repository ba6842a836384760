"""Which vLLM wrote a log: from a banner or the engine's line, else bracketed from the shapes of its lines.

Bounds are releases whose text was compared; between two compared releases a bound is drawn to the side that is
certain. The number of a development build decides nothing (``0.1.dev15917`` is younger than 0.18): what its lines say
counts, see ``ordered``.
"""

from __future__ import annotations

from typing import Any

from analyzer.events import Event
from analyzer.run.model import Run
from analyzer.run.vllm_facts import Lines

FIELD_KINDS = ("kv_tokens", "kv_below_context", "rank_assigned", "engine_ready", "compile_seconds")
"""Kinds whose wording or fields tell more than the kind."""
VERSION_KINDS = ("banner", "api_server_version", "engine_init", "engine_dump")

Bound = tuple[str, str]

KINDS: dict[str, Bound] = {
    "v0_profile_results": ("0.6.4", "0.6.4.post1"),
    "v0_profile": ("0.6.5", "0.10.0"),
    "v0_blocks": ("", "0.11.0"),
    "available_kv": ("0.9.0", ""),
    "graph_profiling": ("0.18.0", ""),
    "graph_estimate": ("0.18.0", ""),
    "graph_compared": ("0.18.0", ""),
    "graph_estimate_later": ("0.18.0", "0.20.1"),
    "ledger_consumed": ("0.27.0", ""),
    "ledger_weights": ("0.10.2", "0.26.0"),
    "kv_bytes_given": ("0.10.2", ""),
    "context_parallel_tokens": ("0.10.2", "0.20.0"),
    "attention_block": ("0.10.0", ""),
    "padding_layers": ("0.9.0", ""),
    "group_sizes": ("0.30.0", ""),
    "pages_not_unified": ("0.27.0", ""),
    "startup_plan_applied": ("0.26.0", ""),
    "multimodal_reserve": ("0.25.0", ""),
    "cpu_kv_space": ("0.20.0", ""),
    "state_mode": ("0.15.0", ""),
    "non_default_args": ("0.9.0", ""),
    "server_args": ("", "0.9.1"),
    "free_below_target": ("0.9.0", ""),
    "stats_v0": ("", "0.11.0"),
    "autofit_reduced": ("0.14.0", ""),
    "checkpoint_size": ("0.20.0", ""),
    "weights_external": ("0.32.0", ""),
}
"""Kinds that only some versions print."""


def version_key(version: str) -> tuple[int, ...]:
    """A version as something that sorts: ``0.5.9.post1`` after ``0.5.9``, ``0.20.1.dev0`` and ``0.20.1rc1`` before
    ``0.20.1``."""
    parts: list[int] = []
    head = version.split("+")[0].replace("rc", ".-1.").replace(".dev", ".-2.").replace(".post", ".")
    for part in head.split("."):
        try:
            parts.append(int(part))
        except ValueError:
            break
    return tuple([*parts, 0, 0, 0, 0, 0][: max(5, len(parts))])


def ordered(version: str) -> bool:
    """Whether the number of ``version`` tells its age: not of a fork that counts from 0.1."""
    return bool(version) and not (".dev" in version and version_key(version) < (0, 2))


def before(version: str | None, other: str) -> bool:
    """Whether ``version`` is known and older than ``other``."""
    return bool(version) and ordered(version or "") and version_key(version or "") < version_key(other)


def _fields(event: Event) -> list[Bound]:
    """What the fields of one event tell beyond its kind."""
    fields, found = event.fields, []
    if event.kind == "kv_tokens":
        found.append(("0.28.0", "") if "concurrency" in fields else ("0.8.0", "0.27.1"))
        if fields.get("pool_device") not in (None, "GPU"):
            found.append(("0.30.0", ""))
        if event.record.process == "EngineCore":
            found.append(("0.18.0", ""))
        elif event.record.process.startswith("EngineCore_DP"):
            found.append(("0.10.2", ""))
    elif event.kind == "kv_below_context" and "models's" in event.record.text:
        found.append(("", "0.21.0"))
    elif event.kind == "kv_below_context" and "the model's" in event.record.text:
        found.append(("0.22.0", ""))
    elif event.kind == "rank_assigned":
        found.append(_rank_layout(fields))
    elif event.kind == "engine_ready":
        found.append(("", "0.19.2") if " seconds" in event.record.text else ("0.20.0", ""))
    elif event.kind == "compile_seconds":
        found.append(("", "0.17.1") if "compile takes" in event.record.text else ("0.18.0", ""))
    return found


def _rank_layout(fields: dict[str, Any]) -> Bound:
    """Which ranks a worker names: PCP from 0.12, EPLB from 0.17, ETP from 0.30."""
    if "etp_rank" in fields:
        return "0.30.0", ""
    if "eplb_rank" in fields:
        return "0.17.0", "0.29.0"
    return ("0.12.0", "0.16.1") if "pcp_rank" in fields else ("0.8.0", "0.11.1")


def bracket(lines: Lines) -> tuple[str, str]:
    """Lowest and highest version that the lines allow; ``""`` is open."""
    low = high = ""
    bounds = [KINDS[kind] for kind in lines if kind in KINDS]
    for kind in FIELD_KINDS:
        bounds += [bound for event in lines.get(kind, [])[:1] for bound in _fields(event)]
    for lower, upper in bounds:
        if lower and (not low or version_key(lower) > version_key(low)):
            low = lower
        if upper and (not high or version_key(upper) < version_key(high)):
            high = upper
    return low, high


def write_version(lines: Lines, run: Run) -> None:
    """Sets version, range and basis of ``run``."""
    for kind in VERSION_KINDS:
        for event in lines.get(kind, []):
            if version := event.get("version"):
                run.version, run.version_basis = str(version), "banner"
                run.facts.add("engine.version", run.version, event.record, rank="")
                break
        if run.version:
            break
    if run.version and ordered(run.version):
        return
    low, high = bracket(lines)
    if low and high and version_key(low) > version_key(high):
        run.notes.append(
            f"Lines of this log belong to versions that do not overlap (from {low}, up to {high}): a development "
            "build, or several logs in one."
        )
    elif low or high:
        run.version_range = (f">={low}" if low else "", f"<={high}" if high else "")
        run.version_basis = run.version_basis or "shapes"
