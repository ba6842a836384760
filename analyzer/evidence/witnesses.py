"""The witnesses that the command line names, gathered into one reader of facts for a run.

Files are read at once: what is wrong with one is told before a long log is read, or a pipe that can be read only once.
What has to be asked for over the network may not answer; that costs its facts and never the report.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from analyzer.errors import UserError
from analyzer.run.facts import Fact
from analyzer.run.model import Run

if TYPE_CHECKING:
    from analyzer.evidence.metrics import Snapshot

IN_ALL = 60.0
"""Seconds that a Prometheus may take for all runs of a log together."""
_MEND = (
    "What rests on metrics is left open here; ask again once it answers, or give a saved /metrics with --metrics FILE."
)


@dataclass(slots=True)
class Witnesses:
    """Gives the facts of the witnesses for a run; each is asked at its first call, and once."""

    snapshots: list[Snapshot | str]
    """Saved /metrics as read, and addresses that are still to be asked."""
    files: list[Fact]
    prometheus: str | None = None
    url: str | None = None
    missing: list[str] = field(default_factory=list)
    """A sentence on each witness that could not be had: why, and what to do."""
    _asked: list[Fact] | None = None
    _ranged: dict[int, list[Fact]] = field(default_factory=dict)
    _left: float = field(default_factory=lambda: IN_ALL)
    _failed: bool = False

    def __call__(self, run: Run) -> list[Fact]:
        if self._asked is None:
            self._asked = self._ask()
        if self.prometheus is not None and run.id not in self._ranged:
            self._ranged[run.id] = self._of_range(run, self.prometheus)
        return [*self.files, *self._asked, *self._ranged.get(run.id, ())]

    def _ask(self) -> list[Fact]:
        """What the server itself says now."""
        from analyzer.evidence.metrics import metric_facts, read_metrics

        facts: list[Fact] = []
        known: list[Snapshot] = []
        for snapshot in self.snapshots:
            try:
                known.append(read_metrics(snapshot) if isinstance(snapshot, str) else snapshot)
            except UserError as error:
                self.missing.append(f"The metrics could not be had: {error}. {_MEND}")
        if known:
            facts += metric_facts(known)
        if self.url is not None:
            from analyzer.evidence.probes import probe

            facts += probe(self.url)
        return facts

    def _of_range(self, run: Run, address: str) -> list[Fact]:
        """What a Prometheus recorded in the time of ``run``. One that failed to answer is not asked again."""
        from analyzer.evidence.prometheus import PATIENCE, Silent, prometheus_facts

        begun = time.monotonic()
        try:
            if self._left <= 0:
                raise Silent(
                    f"the Prometheus at {address} took more than {IN_ALL:.0f} s for the runs before run {run.id}"
                )
            return prometheus_facts(address, run, seconds=min(PATIENCE, self._left))
        except UserError as error:
            if not self._failed:
                self.missing.append(f"The metrics could not be had: {error}. {_MEND}")
            self._failed = True
            self._left = 0 if isinstance(error, Silent) else self._left
            return []
        finally:
            self._left -= time.monotonic() - begun


def reader_of(
    *,
    metrics: Sequence[str] = (),
    nvidia_smi: Path | None = None,
    prometheus: str | None = None,
    url: str | None = None,
) -> Witnesses:
    """A function that gives the facts of these witnesses for a run.

    Raises ``UserError`` (status 3) at once for a file that cannot be read or is none of its kind.
    """
    from analyzer.evidence.metrics import is_address, read_metrics

    files: list[Fact] = []
    if nvidia_smi is not None:
        from analyzer.evidence.nvidia_smi import nvidia_smi_facts

        files += nvidia_smi_facts(nvidia_smi)
    snapshots = [place if is_address(place) else read_metrics(place) for place in metrics]
    return Witnesses(snapshots, files, prometheus, url)
