"""What the rules say of one run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, get_args

from analyzer.run.facts import Where

Severity: TypeAlias = Literal["critical", "warning", "info"]
Confidence: TypeAlias = Literal["proved", "likely", "possible"]
SEVERITIES: tuple[Severity, ...] = get_args(Severity)
"""The gravest first."""


def reaches(severities: Iterable[str], limit: str) -> bool:
    """Whether one of ``severities`` is at least as grave as ``limit``; none reaches ``never``."""
    return limit != "never" and not set(SEVERITIES[: SEVERITIES.index(limit) + 1]).isdisjoint(severities)


@dataclass(slots=True)
class Finding:
    """One cause, with what proves it, what it costs and what to do. Costs are None where they are not priced."""

    rule: str
    cause: str
    severity: str
    confidence: str
    title: str
    summary: str
    fix: str = ""
    see: tuple[str, ...] = ()
    evidence: tuple[Where, ...] = ()
    lost_tokens: float | None = None
    lost_bytes: float | None = None
    pool_if_fixed: float | None = None
    """The pool when this finding and those that cost more are mended."""
    explained_by: str = ""
    """Id of the finding that causes this one, if one does."""
    failure: bool = False
    """It names the cause of the run's failure."""
    rank: int = 0
    note: str = ""
    """Why a cost is missing, or what it rests on."""


@dataclass(frozen=True, slots=True)
class Undecided:
    """A rule that could not be decided. ``how`` is empty where nothing that the user can give would decide it."""

    rule: str
    needs: tuple[str, ...]
    how: str
    title: str = ""


@dataclass(frozen=True, slots=True)
class BenignHit:
    """A record that looks like an error and is not."""

    line: int
    rule: str
    why: str
    source: str = ""
    text: str = ""


@dataclass(slots=True)
class Judgement:
    """Everything that the rules say of one run."""

    findings: list[Finding] = field(default_factory=list)
    undecided: list[Undecided] = field(default_factory=list)
    benign: list[BenignHit] = field(default_factory=list)
    failure_rule: str | None = None
    """Id of the rule that names the cause of the run's failure."""
    unknown_scary: list[Where] = field(default_factory=list)
    """Frightening lines that no rule knows: not shown to be fatal, not shown to be harmless."""
    unexplained_tokens: float | None = None
    notes: list[str] = field(default_factory=list)
