"""Probes of a server: each link of the chain has a verdict of its own."""

from __future__ import annotations

import itertools
import json
import time

import pytest

from analyzer.errors import UserError
from analyzer.evidence.http import address, ask, fetch_text, reason
from analyzer.evidence.probes import probe
from analyzer.report.chain import chain
from analyzer.report.model import FactRow, RunReport
from analyzer.run.facts import Fact
from tests.evidence.test_metrics import AFTER, BEFORE
from tests.support.server import Answer, serve

MODELS = json.dumps({"object": "list", "data": [{"id": "tiny", "max_model_len": 2048}]})
COMPLETION = json.dumps({"choices": [{"text": " two three"}]})


def healthy() -> dict[str, Answer]:
    texts = itertools.chain([BEFORE], itertools.repeat(AFTER))
    return {
        "/health": (200, ""),
        "/v1/models": (200, MODELS),
        "/v1/completions": (200, COMPLETION),
        "/metrics": lambda: (200, next(texts)),
    }


def states(found: list[Fact]) -> dict[str, str]:
    """The links of the chain that the probes came to, as the report tells them."""
    run = RunReport(1, "x.log", 1, 1, facts={f.name: FactRow(f.value, f.unit) for f in found})
    return {link.name: link.state for link in chain(run) if link.name not in ("parsed", "loaded", "pool")}


def test_a_working_server() -> None:
    with serve(healthy()) as url:
        result = probe(url)
    assert set(states(result).values()) == {"ok"}
    facts = {f.name: f.value for f in result}
    assert facts["http.generates"] is True
    assert facts["http.context"] == 2048
    assert facts["metrics.accepted"] == 41


def test_a_dead_engine_whose_health_still_answers() -> None:
    routes = {**healthy(), "/v1/completions": (500, "EngineDeadError"), "/metrics": (200, BEFORE)}
    with serve(routes) as url:
        result = probe(url)
    assert states(result)["healthy"] == "ok"
    assert states(result)["generates"] == "broken"
    assert states(result)["metrics move"] == "unknown"


def test_nothing_listens() -> None:
    result = probe("http://127.0.0.1:9", timeout=1)
    assert states(result) == {"listening": "broken"}
    assert {f.name: f.value for f in result}["http.health"] == 0


def test_not_an_llm_server() -> None:
    with serve({"/health": (200, "ok"), "/v1/models": (200, "<html>")}) as url:
        result = probe(url)
    assert states(result)["lists the model"] == "broken"
    assert states(result)["generates"] == "unknown"


def test_an_address_that_is_none() -> None:
    with pytest.raises(UserError, match="not an address"):
        probe("localhost:8000")


def test_slow_and_endless_answers_end() -> None:
    with serve({"/slow": "slow", "/endless": "endless"}) as url:
        started = time.monotonic()
        assert "no answer in" in ask(f"{url}/slow", timeout=0.5).error
        assert "larger than" in ask(f"{url}/endless", timeout=5, limit=1 << 20).error
        assert time.monotonic() - started < 4


def test_errors_are_sentences() -> None:
    with serve({"/metrics": (401, "")}) as url:
        with pytest.raises(UserError, match="bearer token"):
            fetch_text(f"{url}/metrics")
        with pytest.raises(UserError, match="answers 404"):
            fetch_text(f"{url}/other")


def test_sglang_speaks_for_itself() -> None:
    info = json.dumps({"version": "0.5.17", "max_total_num_tokens": 774081})
    with serve({**healthy(), "/get_server_info": (200, info), "/health_generate": (503, "")}) as url:
        result = probe(url)
    facts = {f.name: f.value for f in result}
    assert facts["http.health_generate"] == 503
    assert ("metrics.pool_tokens", 774081) in {(f.name, f.value) for f in result}
    assert states(result)["generates"] == "broken"


def test_vllm_has_no_such_check() -> None:
    with serve(healthy()) as url:
        result = probe(url)
    assert not [f for f in result if f.name == "http.health_generate"]


@pytest.mark.parametrize(
    "url", ["localhost:8000", "http://", "http://[::1", "http://h:99999", "http://h:x", "ftp://h/"]
)
def test_addresses_that_are_none(url: str) -> None:
    with pytest.raises(UserError, match="is not an address") as error:
        address(url)
    assert error.value.status == 2


def test_the_address_that_clients_are_given() -> None:
    with serve(healthy()) as url:
        assert set(states(probe(f"{url}/v1/")).values()) == {"ok"}


@pytest.mark.parametrize("status", [401, 403])
def test_a_token_that_is_missing_is_no_dead_engine(status: int) -> None:
    with serve({**healthy(), "/v1/completions": (status, "")}) as url:
        result = probe(url)
    facts = {f.name: f.value for f in result}
    assert "http.generates" not in facts
    assert facts["http.refused"] == status
    assert states(result)["generates"] == "unknown"


@pytest.mark.parametrize(("status", "state"), [(429, "unknown"), (500, "broken"), (503, "broken")])
def test_what_a_refusal_of_the_request_means(status: int, state: str) -> None:
    with serve({**healthy(), "/v1/completions": (status, "")}) as url:
        result = probe(url)
    assert states(result)["generates"] == state
    assert ("http.generates" in {f.name for f in result}) == (state == "broken")


def test_a_server_of_chats_alone() -> None:
    routes = {**healthy(), "/v1/completions": (404, ""), "/v1/chat/completions": (200, COMPLETION)}
    with serve(routes) as url:
        assert states(probe(url))["generates"] == "ok"
    with serve({**healthy(), "/v1/completions": (400, "embedding model")}) as url:
        assert states(probe(url))["generates"] == "unknown"


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError("[Errno -2] Name or service not known"), "no host has that name"),
        (OSError("[SSL: WRONG_VERSION_NUMBER] wrong version number"), "speaks no TLS"),
        (OSError("[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed"), "certificate is not trusted"),
        (OSError("[Errno 113] No route to host"), "no way leads"),
        (OSError("[Errno 111] Connection refused"), "nothing listens"),
        (OSError("Server disconnected without sending a response."), "closed without an answer"),
        (ValueError("something new"), "ValueError: something new"),
    ],
)
def test_each_failure_has_its_words(error: Exception, said: str) -> None:
    assert said in reason(error)


def test_no_tls_and_no_name() -> None:
    with serve({}) as url:
        assert "speaks no TLS" in ask(url.replace("http:", "https:")).error
    assert "no host has that name" in ask("http://no-such-host.invalid:8000").error
