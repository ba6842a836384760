"""The chain of a probed server: log and server beside each other, each link with its own verdict."""

from __future__ import annotations

from typing import Any

import pytest

from analyzer.report.chain import chain
from analyzer.report.model import FactRow, RunReport

GOOD: dict[str, Any] = {
    "weights.loaded": 5 << 30,
    "pool.tokens": 14161,
    "http.health": 200,
    "http.lists_model": True,
    "http.model": "tiny",
    "http.context": 8192,
    "http.generates": True,
    "metrics.moved": True,
    "metrics.generated": 48,
    "metrics.drafted": 54,
    "metrics.accepted": 41,
}


def states(**changed: Any) -> dict[str, str]:
    values = {**GOOD, **{name.replace("__", "."): value for name, value in changed.items()}}
    facts = {name: FactRow(value, "", [], {}, "log") for name, value in values.items() if value is not None}
    run = RunReport(1, "x.log", 1, 9, engine="sglang", version="0.5.17", facts=facts)
    return {link.name: link.state for link in chain(run)}


def test_all_links_hold() -> None:
    assert list(states().items()) == [
        (name, "ok")
        for name in (
            "parsed", "loaded", "pool", "listening", "healthy", "lists the model", "generates", "metrics move",
        )
    ]  # fmt: skip


def test_no_probe_no_chain() -> None:
    assert states(http__health=None) == {}


@pytest.mark.parametrize(
    ("changed", "link", "state"),
    [
        ({"http__generates": False}, "generates", "broken"),
        ({"http__health_generate": 503}, "generates", "broken"),
        ({"http__health_generate": 200}, "generates", "ok"),
        ({"http__context": 262144}, "lists the model", "broken"),
        ({"http__health": 503}, "healthy", "broken"),
        ({"metrics__moved": False}, "metrics move", "broken"),
        ({"metrics__moved": False, "http__generates": False}, "metrics move", "unknown"),
        ({"metrics__moved": None}, "metrics move", "unknown"),
        ({"pool__tokens": None}, "pool", "unknown"),
    ],
)
def test_one_link(changed: dict[str, Any], link: str, state: str) -> None:
    assert states(**changed)[link] == state


def test_nothing_listens_ends_the_chain() -> None:
    found = states(http__health=0)
    assert found["listening"] == "broken"
    assert "healthy" not in found
