"""The chain of a probed server: log and server beside each other, each link with its own verdict."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from analyzer.report.chain import chain
from analyzer.report.html import to_html
from analyzer.report.jsonform import from_json, to_json
from analyzer.report.markdown import to_markdown
from analyzer.report.model import FactRow, InputSummary, Report, RunReport

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


def probed(**changed: Any) -> RunReport:
    values = {**GOOD, **{name.replace("__", "."): value for name, value in changed.items()}}
    facts = {name: FactRow(value, "", [], {}, "log") for name, value in values.items() if value is not None}
    run = RunReport(1, "x.log", 1, 9, engine="sglang", version="0.5.17", facts=facts)
    run.chain = chain(run)
    return run


def states(**changed: Any) -> dict[str, str]:
    return {link.name: link.state for link in probed(**changed).chain}


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
        ({"weights__loaded": None}, "loaded", "ok"),
        ({"weights__loaded": None, "pool__tokens": None}, "loaded", "unknown"),
    ],
)
def test_one_link(changed: dict[str, Any], link: str, state: str) -> None:
    assert states(**changed)[link] == state


def test_nothing_listens_ends_the_chain() -> None:
    found = states(http__health=0)
    assert found["listening"] == "broken"
    assert "healthy" not in found


HOSTILE = "<img src=x onerror=alert(1)> | *b* [a](http://evil.example) `c`"


def page_of(run: RunReport) -> Report:
    return Report([InputSummary("x.log", 9, 9, 9, 0)], [run], {"name": "kvautopsy", "version": "0"})


def test_every_form_of_the_report_has_the_chain() -> None:
    report = page_of(probed(http__generates=False))
    page, markdown = to_html(report), to_markdown(report)
    assert '<th scope="row">generates</th><td><b class="bad">broken</b></td>' in page
    assert '<th scope="row">healthy</th><td><b class="good">ok</b></td><td>/health answers 200</td>' in page
    assert "| generates | **broken** | one short generation failed |" in markdown
    assert "| healthy | ok | /health answers 200 |" in markdown
    links = to_json(report)["runs"][0]["chain"]
    assert links[4] == {"name": "healthy", "state": "ok", "text": "/health answers 200"}
    assert from_json(json.dumps(to_json(report))).runs[0].chain == report.runs[0].chain


def test_without_a_probe_no_form_speaks_of_one() -> None:
    report = page_of(probed(http__health=None))
    assert "Probed" not in to_html(report) + to_markdown(report)
    assert to_json(report)["runs"][0]["chain"] == []


def test_what_a_server_answers_cannot_become_markup() -> None:
    report = page_of(probed(http__model=HOSTILE))
    page, markdown = to_html(report), to_markdown(report)
    assert "<img" not in page
    assert "&lt;img src=x onerror=alert(1)&gt;" in page
    (row,) = [line for line in markdown.splitlines() if line.startswith("| lists the model")]
    assert len(re.findall(r"(?<!\\)\|", row)) == 4
    assert "<img" not in row.replace(r"\<", "")
    assert not re.search(r"(?<!\\)[*`\[]", row)


def test_a_report_saved_before_there_was_a_chain_is_read() -> None:
    document = to_json(page_of(probed()))
    del document["runs"][0]["chain"]
    assert from_json(json.dumps(document)).runs[0].chain == []
