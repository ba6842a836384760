"""What is wrong between rule files."""

from __future__ import annotations

from analyzer.diagnosis.lint import lint
from tests.diagnosis.support import rule

CASE = "tests: {fires: [{failure: {exception: E, message: a b}}], quiet: [{}]}"
WIDE = "id: SF901\ncause: fail-path\nfailure: true\nwhen: failure.message ~ 'a'\n" + CASE
NARROW = "id: SF902\ncause: fail-port\nfailure: true\nwhen: failure.message ~ 'a b'\n" + CASE


def test_names_that_nothing_has() -> None:
    text = "when: seen(no_such_kind)\nexplains: [KV999, pool-left-unused]"
    assert lint([rule(text)]) == [
        "test.yaml: no grammar has the kind no_such_kind",
        "test.yaml: explains: there is no rule KV999",
    ]
    benign = "cause: benign-other\nwhy: x\nbenign: {events: [no_such_kind]}"
    assert lint([rule(benign)]) == ["test.yaml: no grammar has the kind no_such_kind"]


def test_a_rule_that_loses_its_own_case() -> None:
    wide, narrow = rule(WIDE), rule(NARROW)
    assert lint([narrow], [wide]) == ["test.yaml: fires 1: SF901 (fail-path) wins over fail-port"]
    assert lint([rule(NARROW + "\nrank: 1")], [wide]) == []
    assert lint([rule(NARROW + "\nrank: -1")], [wide]) == []
    assert lint([wide], [narrow]) == []
