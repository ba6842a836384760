"""How many requests SGLang lets run at once, and which bound decides (reference 3.4, SGLang 0.4.0 .. 0.5.23)."""

from __future__ import annotations

from dataclasses import dataclass

from analyzer.sizing.sglang_versions import Span


@dataclass(frozen=True, slots=True)
class RunningInputs:
    """``requested`` counts over all DP-attention ranks; None without a request."""

    tokens: float
    context: float
    requested: float | None
    attention_dp: float = 1
    default: bool = False
    slots: float | None = None
    per_request: float | None = None


@dataclass(frozen=True, slots=True)
class Running:
    """Requests at once of one DP worker, and what bounds them (vocabulary of ``limit.bound_by``)."""

    requests: int
    bound_by: str
    step: str


def running_requests(inputs: RunningInputs, span: Span) -> Running:
    """The number that the summary line prints."""
    estimate = _estimate(inputs)
    half = int(inputs.tokens // 2)
    bounds: list[tuple[int, str, str]] = []
    if inputs.requested is not None:
        share = int(inputs.requested // inputs.attention_dp)
        if span.likely("0.5.17"):
            share = max(1, share)
        name = "default" if inputs.default else "request"
        bounds.append((share, name, f"{inputs.requested:,.0f} // {inputs.attention_dp:.0f}"))
        if span.likely("0.5.14"):
            bounds.append((half, "tokens", f"{inputs.tokens:,.0f} // 2"))
        elif span.likely("0.5.10"):
            bounds.append((estimate, "default", "estimate from the context length"))
    else:
        bounds.append((half, "tokens", f"{inputs.tokens:,.0f} // 2"))
        more = 1 if span.known and span.before("0.4.9") else 0
        bounds.append((estimate + more, "default", "estimate from the context length, 2048 .. 4096"))
    if inputs.slots is not None and inputs.per_request:
        by_slots = int(inputs.slots // inputs.per_request)
        bounds.append((by_slots, "state-slots", f"{inputs.slots:,.0f} // {inputs.per_request:.0f} state slots"))
    requests, name, step = min(bounds, key=lambda bound: bound[0])
    return Running(requests, name, f"running = {step} = {requests:,}")


def _estimate(inputs: RunningInputs) -> int:
    if not inputs.context:
        return 4096
    return int(min(max(inputs.tokens / inputs.context * 512, 2048), 4096))
