"""Every shipped rule: sound, tested, and true to its tests."""

from __future__ import annotations

import time
from functools import cache
from pathlib import Path

import pytest

from analyzer.diagnosis import testing
from analyzer.diagnosis.describe import describe
from analyzer.diagnosis.lint import lint
from analyzer.diagnosis.ruleset import Folder, RuleSet, load_folder
from analyzer.framing.record import Record
from analyzer.resources import data_dir
from analyzer.run.facts import Where
from analyzer.run.model import Failure
from tests.diagnosis.support import make_run


@cache
def shipped() -> Folder:
    return load_folder(data_dir("rules"))


def test_there_are_rules() -> None:
    assert len(shipped().rules) > 20


def test_nothing_is_wrong() -> None:
    assert shipped().problems == []
    assert shipped().lint == []
    assert RuleSet.load().problems == ()


def test_every_case_on_facts_holds() -> None:
    assert testing.failed(testing.run(shipped().rules)) == []


def test_names_exist_and_failure_rules_win_their_own_cases() -> None:
    assert lint(shipped().rules) == []


def test_folders_fit_engines() -> None:
    for rule in shipped().rules:
        folder = Path(rule.source).parts[-2]
        assert folder == "common" or rule.engines == [folder], rule.source


def test_every_rule_can_be_described() -> None:
    for rule in shipped().rules:
        told = describe(rule)
        assert told.cause_meaning
        assert told.says or rule.benign


@pytest.mark.parametrize("unit", ["1", "a", " ", "\n", "error ", "[rank0]: ", "x=1, ", "ValueError: ", "CUDA error: "])
def test_a_hostile_text_is_judged_in_time(unit: str) -> None:
    text = (unit * 20_000)[:20_000]
    run = make_run(failures=[Failure(text, text, (Where("log", 1),), text=text, stage="serving")])
    run.scary = [Record("log", n, n, text) for n in range(2, 5)]
    rules = RuleSet.load()
    started = time.process_time()
    rules.judge(run)
    assert time.process_time() - started < 3


@pytest.mark.parametrize("engine", ["sglang", "vllm"])
def test_an_empty_run_has_no_findings(engine: str) -> None:
    result = RuleSet.load().judge(make_run(engine=engine))
    assert [f.rule for f in result.findings] == []
