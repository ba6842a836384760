"""What is wrong between rule files."""

from __future__ import annotations

from pathlib import Path

import pytest

from analyzer.diagnosis.lint import examine, lint
from analyzer.errors import UserError
from tests.diagnosis.support import BASE, rule

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


def test_a_folder_is_examined_whole(tmp_path: Path) -> None:
    (tmp_path / "KV901.yaml").write_text(BASE.replace("KV900", "KV901") + "when: pool.bites > 1\n")
    (tmp_path / "KV902.yaml").write_text(BASE.replace("KV900", "KV902") + "when: pool.tokens > 1\nexplains: [KV999]\n")
    found = examine([tmp_path])
    assert [rule.id for rule in found.rules] == ["KV902"]
    assert len(found.complaints) == 2
    assert [result.passed for result in found.results] == [False, True]
    assert not found.passed
    with pytest.raises(UserError, match="no such folder"):
        examine([tmp_path / "nowhere"])


def test_a_rule_that_loses_its_own_case() -> None:
    wide, narrow = rule(WIDE), rule(NARROW)
    assert lint([narrow], [wide]) == ["test.yaml: fires 1: SF901 (fail-path) wins over fail-port"]
    assert lint([rule(NARROW + "\nrank: 1")], [wide]) == []
    assert lint([rule(NARROW + "\nrank: -1")], [wide]) == []
    assert lint([wide], [narrow]) == []
