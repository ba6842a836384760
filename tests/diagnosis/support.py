"""Helpers of the diagnosis tests: runs from facts, rules from YAML text, a sizing model of one line."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from analyzer.diagnosis.compiler import compile_value
from analyzer.diagnosis.rule import Rule
from analyzer.diagnosis.ruleset import RuleSet
from analyzer.diagnosis.testing import fact
from analyzer.diagnosis.yamlfile import load_yaml
from analyzer.run.facts import Facts
from analyzer.run.model import Run
from analyzer.sizing.base import Solution

BASE = """
id: KV900
cause: pool-left-unused
title: A rule of the tests
says: Something holds.
fix: Mend it.
tests: {fires: [{facts: {}}], quiet: [{facts: {}}]}
"""


def make_run(facts: Mapping[str, Any] | None = None, **fields: Any) -> Run:
    """A run of SGLang with ``facts`` as rule tests write them."""
    run = Run(id=1, source="test", **{"engine": "sglang", **fields})
    run.facts = Facts(fact(name, value) for name, value in (facts or {}).items())
    return run


def compiled(text: str) -> dict[str, Any]:
    """The compiler's answer to a rule given as YAML; ``BASE`` fills in what the text leaves out."""
    value = load_yaml(textwrap.dedent(text).encode())
    return compile_value({**load_yaml(BASE.encode()), **value}, "test.yaml")


def rule(text: str) -> Rule:
    """The rule in ``text``, which must have nothing wrong with it."""
    result = compiled(text)
    assert result["problems"] == []
    return Rule.from_json(result["rule"])


def problems(text: str) -> str:
    """The compiler's complaints about ``text``, one a line."""
    return "\n".join(compiled(text)["problems"])


def rules(*texts: str) -> RuleSet:
    """The rules in ``texts`` as a set."""
    return RuleSet(tuple(sorted((rule(text) for text in texts), key=lambda r: r.id)))


@dataclass
class Model:
    """A sizing model with the formula ``tokens`` over ``inputs``."""

    tokens: Callable[[Mapping[str, float]], float | None]
    inputs: Mapping[str, float]
    margin: float = 0.001
    formula: str = "test"
    missing: tuple[str, ...] = ()
    calibrated: tuple[str, ...] = ()
    solved: list[dict[str, float]] = field(default_factory=list)

    def solve(self, overrides: Mapping[str, float] | None = None) -> Solution:
        for name in overrides or {}:
            if name not in self.inputs:
                raise KeyError(name)
        self.solved.append(dict(overrides or {}))
        return Solution(self.tokens({**self.inputs, **(overrides or {})}))
