"""Probes of a running server, one after the other, as facts: what answers, what is listed, generated and counted.

A process that runs is not a server that works: /health may answer 200 while the engine is dead, and a model may be
listed that cannot generate. So the probes end with one real generation and with counters that moved. What they come
to, link by link, is the report's to say (``analyzer/report/chain.py``).
"""

from __future__ import annotations

from typing import Any

from analyzer.errors import UserError
from analyzer.evidence.http import Answer, address, ask
from analyzer.evidence.metrics import Snapshot, metric_facts, parse_metrics
from analyzer.run.facts import Fact, Where
from analyzer.run.vocabulary import spec_of

PROMPT = "Count from one to twenty:"
TOKENS = 48
NOT_OFFERED = (400, 404, 405, 422)
"""How a server answers that has no completions of plain text, or none for this model."""
OWN_CHECK = 25.0
"""Seconds for SGLang's /health_generate, which itself gives up after 20."""


class _Found(list[Fact]):
    """The facts found so far."""

    def note(self, name: str, value: Any, answer: Answer, text: str = "") -> None:
        """Adds a fact whose proof is ``answer``; ``text`` stands for what it said."""
        text = text or answer.error or f"{answer.status} in {answer.seconds:.2f} s"
        self.append(Fact(name, value, spec_of(name).unit, (Where(answer.url, 0, text),), origin="http"))


def probe(url: str, *, timeout: float = 5.0, generate_timeout: float = 60.0) -> list[Fact]:
    """What the server at ``url`` answers, as facts ``http.*`` and ``metrics.*``; the waits are in seconds.

    Raises ``UserError`` for an address that is none.
    """
    base = address(url).removesuffix("/v1")  # as clients are given it
    found = _Found()
    health = ask(f"{base}/health", timeout=timeout)
    found.note("http.health", health.status, health)
    if health.status == 0:
        found.note("http.error", health.error, health)
        return found
    model = _models(base, found, timeout)
    before = _snapshot(base, timeout)
    if model is not None:
        _generate(base, model, found, generate_timeout)
    _own_words(base, found, timeout, min(generate_timeout, OWN_CHECK))
    if (after := _snapshot(base, timeout)) is not None:
        found += metric_facts([before, after] if before is not None else [after])
    return found


def _models(base: str, found: _Found, timeout: float) -> str | None:
    answer = ask(f"{base}/v1/models", timeout=timeout)
    body = answer.json()
    data = body.get("data") if isinstance(body, dict) else None
    first = data[0] if isinstance(data, list) and data and isinstance(data[0], dict) else None
    if first is None or not isinstance(first.get("id"), str):
        if not _refused(answer, found):
            found.note("http.lists_model", False, answer)
        return None
    found.note("http.lists_model", True, answer)
    found.note("http.model", first["id"], answer)
    if isinstance(context := first.get("max_model_len"), int):
        found.note("http.context", context, answer)
    model: str = first["id"]
    return model


def _generate(base: str, model: str, found: _Found, timeout: float) -> None:
    request: dict[str, Any] = {"model": model, "prompt": PROMPT, "max_tokens": TOKENS, "temperature": 0}
    path = "/v1/completions"
    answer = ask(base + path, timeout=timeout, json=request, method="POST")
    if answer.status in NOT_OFFERED:
        path = "/v1/chat/completions"
        request["messages"] = [{"role": "user", "content": request.pop("prompt")}]
        answer = ask(base + path, timeout=timeout, json=request, method="POST")
    body = answer.json()
    choices = body.get("choices") if isinstance(body, dict) else None
    if _refused(answer, found) or 400 <= answer.status < 500:
        return  # an embedding model, a limit on requests: no sign of a dead engine
    good = answer.status == 200 and bool(choices)
    found.note("http.generates", good, answer)
    if not good:
        found.note("http.error", f"{path} {answer.error or f'answers {answer.status}'}", answer)


def _refused(answer: Answer, found: _Found) -> bool:
    """Whether the server wants a token; says so as a fact."""
    if answer.status not in (401, 403):
        return False
    found.note("http.refused", answer.status, answer)
    return True


def _own_words(base: str, found: _Found, timeout: float, patience: float) -> None:
    """What only SGLang answers: its own generating health check, and the size of its pool. vLLM has neither."""
    for path in ("/server_info", "/get_server_info"):
        answer = ask(base + path, timeout=timeout)
        body = answer.json() if answer.status == 200 else None
        tokens = body.get("max_total_num_tokens") if isinstance(body, dict) else None
        if isinstance(tokens, int) and not isinstance(tokens, bool) and tokens > 0:
            found.note("metrics.pool_tokens", tokens, answer, f"max_total_num_tokens {tokens}")
            break
    check = ask(f"{base}/health_generate", timeout=patience)
    if check.status != 404:
        found.note("http.health_generate", check.status, check)


def _snapshot(base: str, timeout: float) -> Snapshot | None:
    answer = ask(f"{base}/metrics", timeout=timeout)
    if answer.status != 200:
        return None
    try:
        return parse_metrics(answer.text, answer.url)
    except UserError:
        return None
