"""A chain of probes of a running server, each link with a verdict of its own.

A process that runs is not a server that works: /health may answer 200 while the engine is dead, and a model may be
listed that cannot generate. The chain ends with one real generation and with counters that moved.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from analyzer.errors import UserError
from analyzer.evidence.http import TOKEN_VARIABLE, Answer, address, ask
from analyzer.evidence.metrics import Snapshot, metric_facts, parse_metrics
from analyzer.run.facts import Fact, Where
from analyzer.run.vocabulary import spec_of

PROMPT = "Count from one to twenty:"
TOKENS = 48
WANTS_TOKEN = f"put the bearer token into ${TOKEN_VARIABLE}"
NOT_OFFERED = (400, 404, 405, 422)
"""How a server answers that has no completions of plain text, or none for this model."""
OWN_CHECK = 25.0
"""Seconds for SGLang's /health_generate, which itself gives up after 20."""


@dataclass(slots=True)
class Link:
    """One link of the chain. ``state``: ``ok``, ``broken`` or ``unknown`` (could not be asked)."""

    name: str
    state: str
    text: str


@dataclass(slots=True)
class Probe:
    """What the probes found: the chain, and the same as facts."""

    url: str
    links: list[Link] = field(default_factory=list)
    facts: list[Fact] = field(default_factory=list)

    def note(self, name: str, state: str, text: str) -> None:
        """Adds a link."""
        self.links.append(Link(name, state, text))

    def fact(self, name: str, value: Any, answer: Answer) -> None:
        """Adds a fact whose proof is ``answer``."""
        text = answer.error or f"{answer.status} in {answer.seconds:.2f} s"
        self.facts.append(Fact(name, value, spec_of(name).unit, (Where(answer.url, 0, text),), origin="http"))


def probe(url: str, *, timeout: float = 5.0, generate_timeout: float = 60.0) -> Probe:
    """Probes the server at ``url``: listening, healthy, lists the model, generates, metrics move.

    Raises ``UserError`` for an address that is none.
    """
    base = address(url).removesuffix("/v1")  # as clients are given it
    result = Probe(base)
    health = ask(f"{base}/health", timeout=timeout)
    result.fact("http.health", health.status, health)
    if health.status == 0:
        result.note("listening", "broken", health.error)
        result.fact("http.error", health.error, health)
        return result
    result.note("listening", "ok", f"{base} answers")
    result.note("healthy", "ok" if health.status == 200 else "broken", f"/health answers {health.status}")
    model = _models(base, result, timeout)
    before = _snapshot(base, timeout)
    generated = _generate(base, model, result, generate_timeout)
    _own_words(base, result, timeout, min(generate_timeout, OWN_CHECK))
    after = _snapshot(base, timeout)
    _metrics(before, after, generated, result)
    return result


def _models(base: str, result: Probe, timeout: float) -> str | None:
    answer = ask(f"{base}/v1/models", timeout=timeout)
    body = answer.json()
    data = body.get("data") if isinstance(body, dict) else None
    first = data[0] if isinstance(data, list) and data and isinstance(data[0], dict) else None
    if first is None or not isinstance(first.get("id"), str):
        if _refused(answer, result):
            result.note("lists the model", "unknown", f"/v1/models answers {answer.status}: {WANTS_TOKEN}")
            return None
        why = answer.error or f"answers {answer.status} without a model"
        result.note("lists the model", "broken", f"/v1/models {why}; is this an LLM server?")
        result.fact("http.lists_model", False, answer)
        return None
    result.fact("http.lists_model", True, answer)
    result.fact("http.model", first["id"], answer)
    text = f"/v1/models lists {first['id']}"
    if isinstance(context := first.get("max_model_len"), int):
        result.fact("http.context", context, answer)
        text += f", claims a context of {context:,} tokens"
    result.note("lists the model", "ok", text)
    model: str = first["id"]
    return model


def _generate(base: str, model: str | None, result: Probe, timeout: float) -> bool:
    if model is None:
        result.note("generates", "unknown", "no model to ask")
        return False
    request: dict[str, Any] = {"model": model, "prompt": PROMPT, "max_tokens": TOKENS, "temperature": 0}
    path = "/v1/completions"
    answer = ask(base + path, timeout=timeout, json=request, method="POST")
    if answer.status in NOT_OFFERED:
        path = "/v1/chat/completions"
        request["messages"] = [{"role": "user", "content": request.pop("prompt")}]
        answer = ask(base + path, timeout=timeout, json=request, method="POST")
    body = answer.json()
    choices = body.get("choices") if isinstance(body, dict) else None
    good = answer.status == 200 and bool(choices)
    if _refused(answer, result):
        result.note("generates", "unknown", f"{path} answers {answer.status}: {WANTS_TOKEN}")
    elif 400 <= answer.status < 500:  # an embedding model, a limit on requests: no sign of a dead engine
        result.note("generates", "unknown", f"{path} answers {answer.status}: it did not take the request")
    elif good:
        result.fact("http.generates", True, answer)
        result.note("generates", "ok", f"{TOKENS} tokens asked, answered in {answer.seconds:.1f} s")
    else:
        result.fact("http.generates", False, answer)
        why = answer.error or f"answers {answer.status}"
        result.fact("http.error", f"{path} {why}", answer)
        result.note("generates", "broken", f"{path}: {why}")
    return good


def _refused(answer: Answer, result: Probe) -> bool:
    """Whether the server wants a token; says so as a fact."""
    if answer.status not in (401, 403):
        return False
    result.fact("http.refused", answer.status, answer)
    return True


def _own_words(base: str, result: Probe, timeout: float, patience: float) -> None:
    """What only SGLang answers: its own generating health check, and the size of its pool. vLLM has neither."""
    for path in ("/server_info", "/get_server_info"):
        answer = ask(base + path, timeout=timeout)
        body = answer.json() if answer.status == 200 else None
        tokens = body.get("max_total_num_tokens") if isinstance(body, dict) else None
        if isinstance(tokens, int) and not isinstance(tokens, bool) and tokens > 0:
            text = f"max_total_num_tokens {tokens}"
            result.facts.append(
                Fact("metrics.pool_tokens", tokens, "tokens", (Where(answer.url, 0, text),), origin="http")
            )
            break
    check = ask(f"{base}/health_generate", timeout=patience)
    if check.status == 404:
        return
    result.fact("http.health_generate", check.status, check)
    state = "ok" if check.status == 200 else "unknown" if 300 <= check.status < 500 else "broken"
    result.note("checks itself", state, f"/health_generate {check.error or f'answers {check.status}'}")


def _snapshot(base: str, timeout: float) -> Snapshot | None:
    answer = ask(f"{base}/metrics", timeout=timeout)
    if answer.status != 200:
        return None
    try:
        return parse_metrics(answer.text, answer.url)
    except UserError:
        return None


def _metrics(before: Snapshot | None, after: Snapshot | None, generated: bool, result: Probe) -> None:
    if after is None:
        result.note("metrics move", "unknown", "/metrics gives nothing of this server (SGLang: --enable-metrics)")
        return
    facts = metric_facts([before, after] if before is not None else [after])
    result.facts += facts
    values = {f.name: f.value for f in facts}
    moved = values.get("metrics.moved")
    if moved:
        text = f"{values['metrics.generated']:g} tokens counted"
        if values.get("metrics.drafted"):
            text += f"; {values['metrics.accepted']:g} of {values['metrics.drafted']:g} draft tokens accepted"
        result.note("metrics move", "ok", text)
    else:
        state = "broken" if generated and moved is False else "unknown"
        result.note("metrics move", state, "the counter of generated tokens did not rise")
