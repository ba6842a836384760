"""The verdict: one or two plain sentences that say the most important thing first, and nothing without proof."""

from __future__ import annotations

import re

from analyzer.report import view
from analyzer.report.model import Finding, RunReport
from analyzer.report.sheet import clip
from analyzer.run.model import headline, unprefixed

_STAGES = {
    "arguments": "after reading its arguments", "init": "while it set up its processes",
    "weights": "while it loaded weights", "pool": "while it sized or allocated the pool",
    "graphs": "while it captured CUDA graphs", "warm-up": "in its warm-up",
    "engine-up": "after its engine was up", "ready": "after it was ready",
    "serving": "while serving", "shutdown": "while shutting down",
}  # fmt: skip
SENTENCE = 180
_AT_ANY_TIME = frozenset({
    "fail-gpu-fault", "fail-engine-bug", "fail-hang", "fail-network", "fail-compile", "fail-kernel-unsupported",
    "fail-oom-after-pool", "cut-short", "elsewhere",
})  # fmt: skip
"""Causes of a start that failed which a server meets just as well while it serves, so that they tell no stage."""
_OF_POOL = frozenset({"fail-kv-below-context", "fail-no-kv-memory", "fail-oom-pool"})
_OF_LOADING = frozenset({
    "fail-oom-load", "fail-weights-missing", "fail-weights-mismatch", "fail-quantization-mismatch", "fail-download",
    "fail-disk", "fail-path", "crash-killed",
})  # fmt: skip
"""Causes that can only have struck while weights were read, or that say nothing of it."""
_WARMING = "in the last steps of the start-up (warm-up, graphs)"
_LOADING = "between the begin of loading and the sizing of the pool"
_CAPS = ("cap-", "context-exceeds-pool", "queueing-at-cap")


def verdict(run: RunReport, stage: str = "") -> str:
    """What is to be said of ``run`` first. ``stage`` is the furthest stage that it reached."""
    said = _failed(run, stage) if run.failure is not None else _lived(run, stage)
    return " ".join(s.rstrip(".") + "." for s in said if s)


def _failed(run: RunReport, stage: str) -> list[str]:
    failure = run.failure
    assert failure is not None
    reached = failure.stage or stage
    serving = reached in ("ready", "serving", "shutdown")
    where = _STAGES.get(reached, "") if serving == (run.outcome == "crashed at runtime") else ""
    when = {"crashed at startup": "The server did not start", "crashed at runtime": "The server died"}
    head = when.get(run.outcome, "Something failed") + (f": it failed {where}" if where else "")
    finding = view.blamed(run)
    cause = finding.cause if finding is not None else failure.cause
    frames = str(view.value_of(run, "failure.frames") or "")
    if where == _STAGES["weights"] and cause not in _OF_LOADING and ":load_" not in frames:
        head = when.get(run.outcome, head)  # the profiling run has no stage of its own
    if cause in _OF_POOL and reached in ("arguments", "init", "weights"):
        head = when.get(run.outcome, head)  # it failed later than any line before it shows
    if reached == "pool" and cause not in _OF_POOL and view.number_of(run, "pool.tokens") and "oom" not in cause:
        head = head.replace(_STAGES["pool"], "after its pool was sized")
    any_time = not cause or cause in _AT_ANY_TIME or cause.startswith("crash-") or "lora" in failure.message.lower()
    any_time = any_time or (finding is not None and finding.confidence == "possible")
    if any_time and view.value_of(run, "failure.assumed") and run.outcome == "crashed at startup":
        head = "Something failed, most likely before the server served"
    if failure.cause == "elsewhere":
        return [
            head,
            finding.summary if finding else "The cause is not in this log; it is in another process or stream",
        ]
    if finding is not None:
        return [head, _hedged(finding), _reason(finding.summary, unprefixed(failure.message) if failure.lines else "")]
    what = failure.exception or "the last error"
    message = failure.message.split("\n", 1)[0][:160]
    text = f"{what} is the first error" + (f": {message}" if message else "")
    return [head, text, "No rule knows its cause"]


def _lived(run: RunReport, stage: str) -> list[str]:
    said = []
    tokens = view.number_of(run, "pool.tokens")
    causes = [f for f in run.findings if f.severity != "info" and not f.explained_by]
    if tokens is not None:
        said.append(_pool(run, tokens))
    top = next((f for f in causes if f.lost_tokens), None) or next(
        (f for f in causes if f.cause.startswith("pool-")), None
    )
    if top is not None:
        said.append(_hedged(top))
    cap = next((f for f in causes if f.cause.startswith(_CAPS)), None)
    said.append(_cap(run, cap))
    first = next((f for f in causes if f not in (top, cap)), None)
    if top is None and cap is None and first is not None:
        said.append(_hedged(first))
    if tokens is None and (blocks := view.number_of(run, "pool.blocks")) is not None:
        said.insert(0, f"The pool holds {blocks:,.0f} blocks; how many tokens a block has is not in the log")
    elif tokens is None:
        said.insert(0, _without_pool(run, stage))
    elif top is None and cap is None and first is None:
        said.append("No rule found anything wrong with it")
    return said


def _pool(run: RunReport, tokens: float) -> str:
    text = f"The pool holds {tokens:,.0f} tokens"
    better = view.would_hold(run)
    if better is not None and better[0] > 1.005 * tokens:
        pool, exact = better
        text += f"; it would hold {pool:,.0f}" if exact else f"; it would hold about {float(f'{pool:.3g}'):,.0f}"
    return text


def _hedged(finding: Finding) -> str:
    """The title, as sure as the finding is."""
    hedge = {"possible": "Possibly: ", "likely": "Likely: "}.get(finding.confidence, "")
    return hedge + finding.title


def _lowered(text: str) -> str:
    """``text`` to stand after a colon: an acronym or a flag keeps its first letter."""
    return text[:1].lower() + text[1:] if text[1:2].islower() or text[1:2] == " " else text


def _reason(summary: str, message: str) -> str:
    """What the failure consists in: the finding's first sentence if it has figures, else the log's own words.

    ``message`` is empty if no line of the log says it.
    """
    first, quoted = _sentence(" ".join(summary.split())), headline(message)
    if not quoted or (first and any(c.isdigit() for c in first) and quoted[:40] not in first):
        return first
    said = _sentence(quoted) or clip(quoted, SENTENCE)
    return f'The log says: "{said}"' if len(said.split()) > 1 else first


def _sentence(text: str) -> str:
    """The first sentence of ``text`` if it is short enough to be said at once."""
    end = next((m.start() for m in re.finditer(r"[.!?](?=\s|$)", text)), len(text))
    return text[:end] if end <= SENTENCE else ""


def _cap(run: RunReport, cap: Finding | None) -> str:
    running = view.number_of(run, "limit.running")
    if cap is not None and running is not None and cap.cause.startswith("cap-") and cap.confidence == "proved":
        return f"{_at_most(running)}: {_lowered(cap.title)}"
    if cap is not None:
        return _hedged(cap)
    if running is None:
        return ""
    bound = view.BOUND.get(str(view.value_of(run, "limit.bound_by") or ""), "")
    return _at_most(running) + (f", a limit set by {bound}" if bound else "")


def _at_most(running: float) -> str:
    """The scheduler's limit: how many requests the pool holds is another matter."""
    return "At most 1 request runs at a time" if running == 1 else f"At most {running:,.0f} requests run at once"


def _without_pool(run: RunReport, stage: str) -> str:
    where = {"graphs": _WARMING, "weights": _LOADING}.get(stage) or _STAGES.get(stage, "")
    if stage == "graphs" and view.number_of(run, "engine.init_seconds") is not None:
        where = "after the engine was up"
    if stage == "pool" and view.number_of(run, "free.after_pool") is not None:
        return "The log ends after the pool was made; its size is not in it"
    if run.outcome in ("serving", "degraded"):
        return "The server serves; the log does not show its pool"
    if run.outcome == "stopped":
        where = "" if stage == "shutdown" else where
        return "The server was stopped" + (f" {where}" if where else "") + "; the log does not show its pool"
    if not where and not run.engine and run.outcome == "unknown":
        return "No line was recognised as the output of an SGLang or vLLM server"
    ends = f"The log ends {where}" if where else "The log shows no stage of a start-up"
    return f"{ends}: it holds neither a pool nor a failure"
