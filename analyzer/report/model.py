"""The report: everything that any output shows, and nothing that only one of them knows (contract.md)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from analyzer.diagnosis.judgement import SEVERITIES
from analyzer.units import several

SCHEMA = "kvautopsy.report/1"


@dataclass(slots=True)
class Evidence:
    """One line (or other witness) that proves something."""

    source: str
    line: int
    text: str
    context: list[tuple[int, str]] = field(default_factory=list)
    """Lines around it, itself included, as (line number, text); empty where they are not at hand."""


@dataclass(slots=True)
class InputSummary:
    """What was read, and how much of it was understood."""

    source: str
    bytes: int = 0
    lines: int = 0
    recognised_lines: int = 0
    unrecognised_lines: int = 0
    note: str = ""

    @property
    def counts(self) -> str:
        """``104 lines: 97 recognised, 7 not``."""
        return f"{several(self.lines, 'line')}: {self.recognised_lines:,} recognised, {self.unrecognised_lines:,} not"


@dataclass(slots=True)
class FactRow:
    """One fact as reported."""

    value: Any
    unit: str
    lines: list[int] = field(default_factory=list)
    ranks: dict[str, Any] = field(default_factory=dict)
    origin: str = "log"


@dataclass(slots=True)
class LedgerRow:
    """One part of the device's memory, of one rank.

    ``kind``: used, unknown (not itemised), kept (on purpose), unused, outside (the budget).
    ``freed`` is what of ``bytes`` was given back after the pool was sized: it is inside a later row as well, so the
    parts of a rank add up to its memory less the freed bytes.
    """

    rank: str
    item: str
    bytes: float
    lines: list[int] = field(default_factory=list)
    note: str = ""
    kind: str = "used"
    freed: float = 0.0


@dataclass(slots=True)
class SizingRow:
    """Predicted against observed."""

    predicted_tokens: float | None
    observed_tokens: float | None
    error: float | None
    formula: str
    missing: list[str] = field(default_factory=list)
    calibrated: list[str] = field(default_factory=list)
    margin: float = 0.0
    steps: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Finding:
    """One cause, with what it costs, what proves it, and what to do."""

    rule: str
    cause: str
    severity: str
    confidence: str
    title: str
    summary: str
    fix: str = ""
    see: list[str] = field(default_factory=list)
    evidence: list[Evidence] = field(default_factory=list)
    lost_tokens: float | None = None
    lost_bytes: float | None = None
    pool_if_fixed: float | None = None
    explained_by: str = ""
    """Id of the finding that causes this one, if one does."""
    note: str = ""
    """Why a cost is missing, or what the finding rests on."""


@dataclass(slots=True)
class FailureRow:
    """The first cause of a failed run."""

    cause: str
    exception: str
    message: str
    lines: list[int] = field(default_factory=list)
    first_line: int = 0
    process: str = ""
    ranks: list[str] = field(default_factory=list)
    stage: str = ""
    frame: str = ""
    rule: str = ""


@dataclass(slots=True)
class BenignRow:
    """A line that looks like an error and is not."""

    line: int
    rule: str
    why: str
    source: str = ""
    text: str = ""


@dataclass(slots=True)
class UndecidedRow:
    """A rule that could not be decided, and what would decide it."""

    rule: str
    needs: list[str]
    how: str
    title: str = ""


@dataclass(slots=True)
class Link:
    """One link of the chain from a parsed log to a moving counter (see ``chain``).

    ``state``: ``ok``, ``broken``, or ``unknown`` where nobody could be asked.
    """

    name: str
    state: str
    text: str


@dataclass(slots=True)
class RunReport:
    """What is said of one run."""

    id: int
    source: str
    first_line: int
    last_line: int
    engine: str | None = None
    version: str | None = None
    version_range: list[str] | None = None
    version_basis: str | None = None
    outcome: str = "unknown"
    outcome_basis: list[Evidence] = field(default_factory=list)
    verdict: str = ""
    facts: dict[str, FactRow] = field(default_factory=dict)
    ledger: list[LedgerRow] = field(default_factory=list)
    sizing: SizingRow | None = None
    findings: list[Finding] = field(default_factory=list)
    failure: FailureRow | None = None
    benign: list[BenignRow] = field(default_factory=list)
    undecided: list[UndecidedRow] = field(default_factory=list)
    series: dict[str, Any] = field(default_factory=dict)
    unknown_scary: list[Evidence] = field(default_factory=list)
    """Frightening lines that no rule knows: not shown to be fatal, not shown to be harmless."""
    unexplained_tokens: float | None = None
    chain: list[Link] = field(default_factory=list)
    """What the running server said for itself when it was probed, link by link; empty if it was not."""
    notes: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Report:
    """The whole report."""

    inputs: list[InputSummary] = field(default_factory=list)
    runs: list[RunReport] = field(default_factory=list)
    tool: dict[str, str] = field(default_factory=dict)
    schema: str = SCHEMA
    seconds: float = 0.0
    notes: list[str] = field(default_factory=list)

    def worst(self) -> str | None:
        """The gravest severity of all findings and failures, or None."""
        found = {f.severity for run in self.runs for f in run.findings}
        if any(run.failure for run in self.runs):
            found.add("critical")
        return next((s for s in SEVERITIES if s in found), None)
