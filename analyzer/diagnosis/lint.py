"""What is wrong between rule files, rather than in one: shared ids, names that nothing has, rules that are beaten."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from analyzer.diagnosis import testing
from analyzer.diagnosis.causes import CAUSES
from analyzer.diagnosis.decide import FIRES, decide
from analyzer.diagnosis.rule import Rule
from analyzer.diagnosis.ruleset import load_folder, twice
from analyzer.diagnosis.view import RunView
from analyzer.errors import UserError
from analyzer.resources import data_dir

_RULE_NAME = re.compile(r"^[?!]?([a-z]\w*)(?:\.\d+)?\s*:", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Examination:
    """Everything that was checked about rule folders."""

    rules: tuple[Rule, ...]
    complaints: tuple[str, ...]
    """What is wrong with or between the files; empty if nothing is."""
    results: tuple[testing.Result, ...]
    """The cases inside the files."""

    @property
    def passed(self) -> bool:
        """Whether nothing is wrong."""
        return not self.complaints and all(result.passed for result in self.results)


def examine(paths: Sequence[Path] = (), explain: testing.Explain | None = None) -> Examination:
    """Checks the rules under ``paths`` (without any: the shipped ones) and runs their cases.

    ``explain`` runs the whole program on a sample; without it cases on samples are skipped. Raises ``UserError`` for a
    folder that does not exist.
    """
    folders = [load_folder(path) for path in paths or [data_dir("rules")]]
    rules = [rule for folder in folders for rule in folder.rules]
    own = {rule.id for rule in rules}
    others = [rule for rule in load_folder(data_dir("rules")).rules if rule.id not in own]
    complaints = [text for folder in folders for text in folder.problems + folder.lint] + lint(rules, others)
    return Examination(tuple(rules), tuple(complaints), tuple(testing.run(rules, explain)))


def lint(rules: Sequence[Rule], others: Sequence[Rule] = ()) -> list[str]:
    """Sentences on ``rules``; ``others`` are rules that they may name and be beaten by."""
    known = kinds()
    everything = [*rules, *others]
    names = {r.id for r in everything} | set(CAUSES)
    wrong = twice(rules)
    for rule in rules:
        for kind in dict.fromkeys([*rule.proof_kinds, *(rule.benign or {}).get("events", ())]):
            if kind not in known:
                wrong.append(f"{rule.source}: no grammar has the kind {kind}")
        wrong += [f"{rule.source}: explains: there is no rule {name}" for name in rule.explains if name not in names]
    return wrong + beaten(rules, everything)


def kinds() -> set[str]:
    """The kinds (and fields) that the shipped grammars define."""
    texts = (path.read_text(encoding="utf-8") for path in data_dir("grammars").rglob("*.lark"))
    return {name for text in texts for name in _RULE_NAME.findall(text)}


def beaten(rules: Iterable[Rule], rivals: Sequence[Rule]) -> list[str]:
    """Failure rules that lose the case which they give themselves to a rule of another cause.

    Fall-backs (negative rank) may lose.
    """
    wrong = []
    for rule in rules:
        if rule.failure != "run" or rule.rank < 0:
            continue
        stronger = [r for r in rivals if r.failure == "run" and (-r.rank, r.id) < (-rule.rank, rule.id)]
        for number, case in enumerate(rule.tests.get("fires", ()), 1):
            if isinstance(case, str) or "sample" in case:
                continue
            try:
                view = RunView(testing.build_run(rule, case))
            except UserError:
                continue  # told by the case itself
            winner = next((r for r in stronger if r.cause != rule.cause and decide(r, view).status == FIRES), None)
            if winner is not None:
                wrong.append(f"{rule.source}: fires {number}: {winner.id} ({winner.cause}) wins over {rule.cause}")
    return wrong
