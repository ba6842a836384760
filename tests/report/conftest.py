"""Fixtures: the hand-made report, and one whose every text is hostile."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

import pytest

from analyzer.report.model import Report
from tests.report import examples

HOSTILE = "<script>alert(1)</script> `x` **b** | [l](http://evil) & \"q\" 'r' ]]> {} @me #12 \\ --> </pre>"
_KEPT = ("schema", "severity", "confidence", "kind", "outcome", "engine")


@pytest.fixture
def report() -> Report:
    """A healthy run and a failed one."""
    return examples.report()


@pytest.fixture
def hostile(report: Report) -> Report:
    """The same report with markup of every kind added to each of its texts."""
    poison(report)
    return report


def poison(value: Any) -> Any:
    """Adds ``HOSTILE`` to every text in ``value``, in place where that can be done."""
    if isinstance(value, str):
        return value + HOSTILE
    if is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            if field.name not in _KEPT:
                setattr(value, field.name, poison(getattr(value, field.name)))
        return value
    if isinstance(value, dict):
        return {key: poison(item) for key, item in value.items()}
    if isinstance(value, list):
        return [poison(item) for item in value]
    if isinstance(value, tuple):
        return tuple(poison(item) for item in value)
    return value
