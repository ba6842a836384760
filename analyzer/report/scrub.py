"""Cleans every text of a report: the one gate between what a log said and what a page shows."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

from analyzer.redact import clean, clean_value
from analyzer.report.model import FactRow, Report


def scrub(report: Report) -> Report:
    """``report`` itself, with all its texts cleaned in place (see `analyzer.redact`)."""
    _scrub(report)
    return report


def _scrub(value: Any, name: str = "") -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, FactRow):
        value.value = clean_value(value.value, name)
        value.ranks = {clean(rank): clean_value(item, name) for rank, item in value.ranks.items()}
        return value
    if is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            setattr(value, field.name, _scrub(getattr(value, field.name)))
        return value
    if isinstance(value, dict):
        return {clean(str(key)): _scrub(item, str(key)) for key, item in value.items()}
    if isinstance(value, list):
        return [_scrub(item) for item in value]
    if isinstance(value, tuple):
        return tuple(_scrub(item) for item in value)
    return value
