"""Expressions that are compiled when they are first needed: a short command needs few of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache


def on_demand(expressions: Mapping[str, str]) -> Callable[[str], re.Pattern[str]]:
    """What gives the compiled expression of a name; each is compiled once."""

    @cache
    def pattern(name: str) -> re.Pattern[str]:
        return re.compile(expressions[name])

    return pattern
