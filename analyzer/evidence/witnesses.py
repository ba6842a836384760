"""The witnesses that the command line names, gathered into one reader of facts for a run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from analyzer.run.facts import Fact
from analyzer.run.model import Run


def reader_of(
    *,
    metrics: Sequence[str] = (),
    nvidia_smi: Path | None = None,
    prometheus: str | None = None,
    url: str | None = None,
) -> Callable[[Run], Iterable[Fact]]:
    """A function that gives the facts of these witnesses for a run; each is read once, at the first call.

    Raises ``UserError`` from that call if a witness cannot be read.
    """
    fixed: list[Fact] | None = None
    ranged: dict[int, list[Fact]] = {}

    def read(run: Run) -> Iterable[Fact]:
        nonlocal fixed
        if fixed is None:
            fixed = _fixed(metrics, nvidia_smi, url)
        if prometheus is not None and run.id not in ranged:
            from analyzer.evidence.prometheus import prometheus_facts

            ranged[run.id] = prometheus_facts(prometheus, run)
        return [*fixed, *ranged.get(run.id, ())]

    return read


def _fixed(metrics: Sequence[str], nvidia_smi: Path | None, url: str | None) -> list[Fact]:
    facts: list[Fact] = []
    if nvidia_smi is not None:
        from analyzer.evidence.nvidia_smi import nvidia_smi_facts

        facts += nvidia_smi_facts(nvidia_smi)
    if metrics:
        from analyzer.evidence.metrics import metric_facts, read_metrics

        facts += metric_facts([read_metrics(place) for place in metrics])
    if url is not None:
        from analyzer.evidence.probes import probe

        facts += probe(url).facts
    return facts
