"""Facts that no server can have (no ranks, a pool of nothing) give a report or a gap, never a fall."""

from __future__ import annotations

import dataclasses
import random
from pathlib import Path

import pytest

from analyzer.diagnosis import RuleSet
from analyzer.pipeline import read_runs
from analyzer.report import render
from analyzer.report.build import build
from analyzer.resources import data_dir
from analyzer.run.model import Run
from analyzer.sizing import check, model_for

LOGS = sorted(data_dir("samples").rglob("*.log"))
ODD = (0, -1, 1, 1e-9, 1e19)


def judged(run: Run, rules: RuleSet | None) -> None:
    model = model_for(run)
    outcome = None if model is None else check(model, run)
    if model is not None:
        model.solve()
        for name in model.inputs:
            model.solve({name: 0.0})
    if rules is not None:
        report = build([(run, model, outcome, rules.judge(run, model))], [], seconds=0.0)
        render(report, "text")
        render(report, "html")


@pytest.mark.parametrize("log", LOGS, ids=[log.stem for log in LOGS])
def test_odd_facts(log: Path) -> None:
    """Each number of each run replaced by odd ones, alone; then several at once, judged and rendered."""
    chance = random.Random(log.name)
    rules = RuleSet.load(())
    for run in read_runs([str(log)]):
        whole = {
            fact.name: fact
            for fact in run.facts
            if isinstance(fact.value, int | float) and not isinstance(fact.value, bool)
        }
        for fact in whole.values():
            for value in ODD:
                run.facts.put(dataclasses.replace(fact, value=value, ranks={}))
                judged(run, None)
            run.facts.put(fact)
        for _ in range(15):
            names = chance.sample(sorted(whole), min(len(whole), chance.randrange(2, 8)))
            for name in names:
                run.facts.put(dataclasses.replace(whole[name], value=chance.choice(ODD), ranks={}))
            judged(run, rules)
            for name in names:
                run.facts.put(whole[name])
