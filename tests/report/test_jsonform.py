"""The JSON document: the keys of contract.md, whole figures, and back again."""

from __future__ import annotations

import json

import pytest

from analyzer.errors import UserError
from analyzer.report.jsonform import dumps, from_json, to_json
from analyzer.report.model import Report

RUN_KEYS = {
    "id", "source", "first_line", "last_line", "engine", "version", "version_range", "version_basis", "outcome",
    "outcome_basis", "verdict", "facts", "ledger", "sizing", "findings", "failure", "benign", "undecided", "series",
}  # fmt: skip
FINDING_KEYS = {
    "rule", "cause", "severity", "confidence", "title", "summary", "fix", "see", "evidence", "lost_tokens",
    "lost_bytes", "pool_if_fixed",
}  # fmt: skip


def test_the_document_has_the_keys_of_the_contract(report: Report) -> None:
    document = to_json(report)
    assert list(document)[:2] == ["schema", "tool"] and document["schema"] == "kvautopsy.report/1"
    assert set(document["inputs"][0]) >= {"source", "bytes", "lines", "recognised_lines", "unrecognised_lines"}
    first, second = document["runs"]
    assert set(first) >= RUN_KEYS and set(second) >= RUN_KEYS
    assert set(first["facts"]["pool.tokens"]) >= {"value", "unit", "lines", "ranks"}
    assert set(first["ledger"][0]) >= {"rank", "item", "bytes", "lines"}
    assert set(first["sizing"]) >= {"predicted_tokens", "observed_tokens", "error", "formula", "missing"}
    assert set(first["findings"][0]) >= FINDING_KEYS
    assert set(first["findings"][0]["evidence"][0]) >= {"source", "line", "text"}
    assert set(first["benign"][0]) >= {"line", "rule", "why"} and set(first["undecided"][0]) >= {"rule", "needs", "how"}
    assert first["failure"] is None
    assert set(second["failure"]) >= {"cause", "exception", "message", "lines", "first_line"}


def test_a_saved_report_comes_back_the_same(report: Report) -> None:
    text = dumps(report)
    assert dumps(from_json(text)) == text
    assert from_json(text) == report


def test_figures_that_json_lacks_become_null(report: Report) -> None:
    report.runs[0].findings[0].lost_tokens = float("nan")
    report.runs[0].series["odd"] = float("inf")
    document = json.loads(dumps(report), parse_constant=lambda name: pytest.fail(name))
    assert document["runs"][0]["findings"][0]["lost_tokens"] is None


def test_a_saved_report_is_cleaned_like_any_input(report: Report) -> None:
    report.runs[0].verdict = "api_key='hunter2' \x1b[2J"
    again = from_json(dumps(report))
    assert again.runs[0].verdict == "api_key='[redacted]' \\x1b[2J"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("no json", "not JSON"),
        ("[]", "schema is None"),
        ('{"schema": "kvautopsy.report/9"}', "kvautopsy.report/9"),
        ('{"schema": "kvautopsy.report/1", "runs": [{"id": "x"}]}', "runs.0"),
        ("[" * 100_000, "not JSON"),
    ],
)
def test_what_is_no_report_is_refused_in_one_sentence(text: str, said: str) -> None:
    with pytest.raises(UserError, match="not a saved report") as error:
        from_json(text)
    assert said in str(error.value) and error.value.status == 3
