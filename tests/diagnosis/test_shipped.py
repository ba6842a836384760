"""Every shipped rule: sound, tested, and true to its tests."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from analyzer.diagnosis import testing
from analyzer.diagnosis.describe import describe
from analyzer.diagnosis.ruleset import Folder, RuleSet, load_folder, twice
from analyzer.resources import data_dir
from tests.diagnosis.support import make_run

FALLBACKS = 0
"""Failure rules below this rank may hold together with any other."""


@cache
def shipped() -> Folder:
    return load_folder(data_dir("rules"))


@cache
def kinds() -> set[str]:
    """The kinds that the shipped grammars can give."""
    text = "\n".join(p.read_text(encoding="utf-8") for p in data_dir("grammars").rglob("*.lark"))
    return set(re.findall(r"^[?!]?([a-z]\w*)(?:\.\d+)?\s*:", text, re.MULTILINE))


def test_there_are_rules() -> None:
    assert len(shipped().rules) > 20


def test_nothing_is_wrong() -> None:
    assert shipped().problems == []
    assert shipped().lint == []
    assert twice(shipped().rules) == []
    assert RuleSet.load().problems == ()


def test_every_case_on_facts_holds() -> None:
    assert testing.failed(testing.run(shipped().rules)) == []


def test_kinds_that_rules_name_exist() -> None:
    unknown = {
        f"{rule.source}: {kind}"
        for rule in shipped().rules
        for kind in [*rule.proof_kinds, *(rule.benign or {}).get("events", ())]
        if kind not in kinds()
    }
    assert unknown == set()


def test_explained_rules_and_causes_exist() -> None:
    known = {r.id for r in shipped().rules} | {r.cause for r in shipped().rules}
    assert {f"{r.source}: {name}" for r in shipped().rules for name in r.explains if name not in known} == set()


def test_a_failure_rule_wins_its_own_cases() -> None:
    """A specific failure rule must not be beaten by another cause in the case that it gives itself."""
    rules = RuleSet.load()
    beaten = []
    for rule in rules.rules:
        if rule.failure != "run":
            continue
        for case in rule.tests.get("fires", ()):
            if isinstance(case, str) or "sample" in case:
                continue
            winner = rules.get(rules.judge(testing.build_run(rule, case)).failure_rule or "")
            if winner is None or (winner.cause != rule.cause and rule.rank >= FALLBACKS):
                beaten.append(f"{rule.id} ({rule.cause}) by {winner and winner.id} ({winner and winner.cause})")
    assert beaten == []


def test_folders_fit_engines() -> None:
    for rule in shipped().rules:
        folder = Path(rule.source).parts[-2]
        assert folder == "common" or rule.engines == [folder], rule.source


def test_every_rule_can_be_described() -> None:
    for rule in shipped().rules:
        told = describe(rule)
        assert told.cause_meaning
        assert told.says or rule.benign


@pytest.mark.parametrize("engine", ["sglang", "vllm"])
def test_an_empty_run_has_no_findings(engine: str) -> None:
    result = RuleSet.load().judge(make_run(engine=engine))
    assert [f.rule for f in result.findings] == []
