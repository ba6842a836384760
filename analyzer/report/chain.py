"""The chain from a parsed log to a moving counter: one link after the other, each with a verdict of its own.

A link that holds proves nothing of the next one: a process that listens may have a dead engine behind it. Shown for a
run whose server was probed (``--url``); what the log and what the server said stand beside each other.
"""

from __future__ import annotations

from typing import Any

from analyzer.evidence.http import TOKEN_VARIABLE
from analyzer.report.model import Link, RunReport
from analyzer.report.view import engine_of

OK, BROKEN, UNKNOWN = "ok", "broken", "unknown"


def chain(run: RunReport) -> list[Link]:
    """The links of ``run``, in order; none if no server was probed."""

    def value(name: str) -> Any:
        return run.facts[name].value if name in run.facts else None

    health = value("http.health")
    if health is None:
        return []
    loaded = value("weights.loaded")
    pool = value("pool.tokens")
    links = [
        _link("parsed", run.engine, f"a log of {engine_of(run)}", "no engine's lines"),
        _loaded(loaded, pool),
        _link("pool", pool, f"{pool or 0:,.0f} tokens", "no line on the pool"),
    ]
    if health == 0:
        return [*links, Link("listening", BROKEN, str(value("http.error") or "nothing answers"))]
    links += [
        Link("listening", OK, "the address answers"),
        Link("healthy", OK if health == 200 else BROKEN, f"/health answers {health}"),
        _listed(value, pool),
        _generates(value),
        _moved(value),
    ]
    return links


def _link(name: str, known: object, text: str, otherwise: str) -> Link:
    return Link(name, OK, text) if known else Link(name, UNKNOWN, otherwise)


def _loaded(weights: float | None, pool: float | None) -> Link:
    if weights:
        return Link("loaded", OK, f"{weights / (1 << 30):.2f} GiB of weights")
    if pool:
        return Link("loaded", OK, "no line says how much, but the pool was allocated behind the weights")
    return Link("loaded", UNKNOWN, "no line on weights")


def _listed(value: Any, pool: float | None) -> Link:
    name = "lists the model"
    lists, context = value("http.lists_model"), value("http.context")
    if lists is None and (refused := value("http.refused")):
        return Link(name, UNKNOWN, f"/v1/models answers {refused}: it wants a token (${TOKEN_VARIABLE})")
    if not lists:
        text = "/v1/models names no model: is this an LLM server?"
        return Link(name, UNKNOWN if lists is None else BROKEN, text)
    text = f"{value('http.model')}" + (f", context {context:,.0f} tokens" if context else "")
    if context and pool and context > pool:
        return Link(name, BROKEN, f"{text}, more than the pool holds")
    return Link(name, OK, text)


def _generates(value: Any) -> Link:
    name = "generates"
    generates, own = value("http.generates"), value("http.health_generate")
    text = f"; /health_generate answers {own}" if own is not None else ""
    dead = own is not None and (own == 0 or own >= 500)
    if generates is False:
        return Link(name, BROKEN, f"{value('http.error') or 'one short generation failed'}{text}")
    if generates:
        return Link(name, BROKEN if dead else OK, f"one short generation succeeded{text}")
    if refused := value("http.refused"):
        why = f"the request was answered {refused}: it wants a token (${TOKEN_VARIABLE})"
    elif value("http.lists_model"):
        why = "the server did not take the request"
    else:
        why = "no model to ask"
    return Link(name, BROKEN if dead else UNKNOWN, why + text)


def _moved(value: Any) -> Link:
    name = "metrics move"
    moved, generated = value("metrics.moved"), value("metrics.generated")
    if moved is None:
        return Link(name, UNKNOWN, "/metrics gives no counter of this server (SGLang: --enable-metrics)")
    if not moved:
        state = BROKEN if value("http.generates") else UNKNOWN
        return Link(name, state, "the counter of generated tokens did not rise")
    text = f"{generated:,.0f} tokens counted"
    if drafted := value("metrics.drafted"):
        text += f"; {value('metrics.accepted') or 0:,.0f} of {drafted:,.0f} draft tokens accepted"
    return Link(name, OK, text)
