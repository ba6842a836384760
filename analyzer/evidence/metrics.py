"""The witness /metrics: a Prometheus text, saved or fetched, as facts in the common vocabulary.

Two snapshots of the same server give rises of its counters instead of their values since the start.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from analyzer.errors import UserError
from analyzer.run.facts import Fact, Where
from analyzer.run.vocabulary import spec_of

MAX_BYTES = 64 << 20
GAUGES: dict[str, tuple[str, ...]] = {
    "metrics.running": ("vllm:num_requests_running", "sglang:num_running_reqs"),
    "metrics.waiting": ("vllm:num_requests_waiting", "sglang:num_queue_reqs"),
    "metrics.pool_tokens": ("sglang:max_total_num_tokens",),
    "metrics.context": ("sglang:context_len",),
    "metrics.accept_length": ("sglang:spec_accept_length",),
}
"""Summed over data-parallel engines where they are loads, else the smallest: see ``_SMALLEST``."""
USAGES: dict[str, tuple[str, ...]] = {
    # vLLM renamed the gauge at 0.9.2; both exist up to 0.11.2 and say the same.
    "metrics.kv_usage": ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc", "sglang:token_usage"),
    "metrics.state_usage": ("sglang:mamba_usage",),
    "metrics.prefix_hit": ("sglang:cache_hit_rate",),
}
COUNTERS: dict[str, tuple[str, ...]] = {
    # SGLang's num_retracted_reqs (0.5.2 and later) is a gauge that falls again: it counts nothing.
    "metrics.preemptions": ("vllm:num_preemptions_total", "sglang:num_retracted_requests_total"),
    "metrics.generated": ("vllm:generation_tokens_total", "sglang:generation_tokens_total"),
    "metrics.drafts": ("vllm:spec_decode_num_drafts_total", "sglang:spec_verify_calls_total"),
    "metrics.drafted": ("vllm:spec_decode_num_draft_tokens_total",),
    "metrics.accepted": ("vllm:spec_decode_num_accepted_tokens_total",),
}  # fmt: skip
_SMALLEST = {"metrics.pool_tokens", "metrics.context"}


@dataclass(slots=True)
class Snapshot:
    """One /metrics text: sample name -> its samples as (labels, value)."""

    source: str
    samples: dict[str, list[tuple[dict[str, str], float]]] = field(default_factory=dict)

    @property
    def engine(self) -> str | None:
        """``sglang`` or ``vllm``, by the names' prefix; None for another program's metrics."""
        for engine in ("vllm", "sglang"):
            if any(name.startswith(f"{engine}:") for name in self.samples):
                return engine
        return None

    def total(self, names: Iterable[str]) -> float | None:
        """The sum over all label sets of the first of ``names`` that exists."""
        values = self._values(names)
        return sum(values) if values else None

    def largest(self, names: Iterable[str]) -> float | None:
        """The largest over all label sets of the first of ``names`` that exists."""
        return max(self._values(names), default=None)

    def smallest(self, names: Iterable[str]) -> float | None:
        """The smallest over all label sets of the first of ``names`` that exists."""
        return min(self._values(names), default=None)

    def _values(self, names: Iterable[str]) -> list[float]:
        for name in names:
            if samples := self.samples.get(name):
                return [value for _, value in samples]
        return []


def parse_metrics(text: str, source: str) -> Snapshot:
    """A snapshot from a Prometheus text. Raises ``UserError`` (status 3) for what is none, or another program's."""
    from prometheus_client.parser import text_string_to_metric_families

    snapshot = Snapshot(source)
    try:
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                if sample.name.startswith(("vllm:", "sglang:", "DCGM_FI_")):
                    snapshot.samples.setdefault(sample.name, []).append((dict(sample.labels), float(sample.value)))
    except (ValueError, KeyError, IndexError) as error:
        raise UserError(f"{source} is no Prometheus text: {error}", status=3) from None
    if not snapshot.samples:
        raise UserError(
            f"{source} holds no metric of vLLM or SGLang: is it this server's /metrics? "
            "(SGLang needs --enable-metrics)",
            status=3,
        )
    return snapshot


def metric_facts(snapshots: list[Snapshot]) -> list[Fact]:
    """Facts of one snapshot, or of the first and last of several (counters then as rises between them)."""
    first, last = snapshots[0], snapshots[-1]
    values: dict[str, tuple[float | bool, str]] = {}
    for name, names in GAUGES.items():
        value = last.smallest(names) if name in _SMALLEST else last.total(names)
        _set(values, name, value, names, last)
    for name, names in USAGES.items():
        seen = [v for s in snapshots if (v := s.largest(names)) is not None]
        _set(values, name, max(seen, default=None), names, last)
    for name, names in COUNTERS.items():
        end = last.total(names)
        start = first.total(names) if len(snapshots) > 1 else 0.0
        if end is not None:
            _set(values, name, end - (start or 0.0), names, last)
    if not values.get("metrics.accept_length", (1.0, ""))[0]:  # SGLang exports 0 when speculation is off
        del values["metrics.accept_length"]
    values |= _cache_config(last)
    values |= _acceptance(values, last)
    if len(snapshots) > 1 and "metrics.generated" in values:
        values["metrics.moved"] = (values["metrics.generated"][0] > 0, f"{first.source} .. {last.source}")
    return [
        Fact(name, value, spec_of(name).unit, (Where(last.source, 0, text),), origin="metrics")
        for name, (value, text) in values.items()
    ]


def _set(
    values: dict[str, tuple[float | bool, str]], name: str, value: float | None, names: Iterable[str], last: Snapshot
) -> None:
    if value is not None and value == value and value >= 0:  # nan and -1 mean "off"
        used = next((n for n in names if n in last.samples), name)
        values[name] = (value, f"{used} {value:g}")


def _cache_config(snapshot: Snapshot) -> Mapping[str, tuple[float, str]]:
    """vLLM's ``cache_config_info``: one sample an engine, its labels are the configuration as text."""
    found: dict[str, tuple[float, str]] = {}
    labels_of = {
        "metrics.blocks": "num_gpu_blocks",
        "metrics.block_tokens": "block_size",
        "metrics.pool_tokens": "kv_cache_size_tokens",
    }
    for labels, _ in snapshot.samples.get("vllm:cache_config_info", ()):
        for name, label in labels_of.items():
            try:
                value = float(labels.get(label, ""))
            except ValueError:  # unset labels hold the text "None"
                continue
            if name not in found or value < found[name][0]:
                found[name] = (value, f'vllm:cache_config_info{{{label}="{value:g}"}}')
    return found


def _acceptance(values: Mapping[str, tuple[float | bool, str]], snapshot: Snapshot) -> dict[str, tuple[float, str]]:
    def number(name: str) -> float:
        return float(values.get(name, (0.0, ""))[0])

    found: dict[str, tuple[float, str]] = {}
    drafts, drafted, accepted = number("metrics.drafts"), number("metrics.drafted"), number("metrics.accepted")
    if drafted > 0:
        found["metrics.acceptance"] = (accepted / drafted, f"{accepted:g} accepted of {drafted:g} drafted")
        if drafts > 0:
            found["metrics.accept_length"] = (1 + accepted / drafts, f"1 + {accepted:g} / {drafts:g} drafts")
    elif drafts > 0 and "sglang:spec_verify_calls_total" in snapshot.samples:
        generated = number("metrics.generated")
        if generated > 0 and "metrics.accept_length" not in values:
            found["metrics.accept_length"] = (generated / drafts, f"{generated:g} tokens in {drafts:g} verify steps")
    return found


def is_address(place: str) -> bool:
    """Whether ``place`` is asked over the network, and is no file."""
    return place.startswith(("http://", "https://"))


def read_metrics(place: str, timeout: float = 5.0) -> Snapshot:
    """The snapshot at ``place``: a file, or a URL. Raises ``UserError`` with what to do."""
    if is_address(place):
        from analyzer.evidence.http import fetch_text

        url = place if "/metrics" in place else place.rstrip("/") + "/metrics"
        return parse_metrics(fetch_text(url, timeout=timeout, limit=MAX_BYTES), url)
    from pathlib import Path

    try:
        with Path(place).open("rb") as file:
            data = file.read(MAX_BYTES)
    except OSError as error:
        raise UserError(f"cannot read the metrics {place}: {error.strerror or error}", status=3) from None
    return parse_metrics(data.decode("utf-8", "replace"), place)
