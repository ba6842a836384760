"""Proof lines in their surroundings: reads the inputs a second time, only as far as the last line that is needed.

``build`` shows the recognised records around a proof, which costs nothing. A page to send on is read by somebody who
does not have the log, so there the true neighbours are worth a second look at the files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from analyzer.errors import UserError
from analyzer.redact import clean
from analyzer.report.model import Evidence, Report
from analyzer.sources import open_sources

AROUND = 4
MAX_CHARS = 400
"""Of one line; a longer one is cut, as proof lines are."""


def add_context(report: Report, paths: Sequence[str]) -> None:
    """Gives every proof in ``report`` the lines around it, read from ``paths`` as they were given to ``explain``.

    Standard input cannot be read twice: such proofs keep what they have, and so do those of an input that cannot be
    read any more. Never call it for a report that was not made from ``paths``.
    """
    wanted: dict[str, set[int]] = {}
    proofs = [proof for proof in _proofs(report) if proof.line]
    for proof in proofs:
        around = range(max(1, proof.line - AROUND), proof.line + AROUND + 1)
        wanted.setdefault(proof.source, set()).update(around)
    found: dict[str, dict[int, str]] = {}
    try:
        for source in open_sources([path for path in paths if path != "-"]):
            if source.name in wanted:
                found[source.name] = _lines(source.chunks(), wanted.pop(source.name))
            if not wanted:
                break
    except (OSError, UserError):
        pass  # what was read before is good; the rest keeps its own context
    for proof in proofs:
        lines = found.get(proof.source, {})
        if proof.line in lines:
            numbers = range(max(1, proof.line - AROUND), proof.line + AROUND + 1)
            proof.context = [(n, lines[n]) for n in numbers if n in lines]


def _proofs(report: Report) -> Iterator[Evidence]:
    for run in report.runs:
        for finding in run.findings:
            yield from finding.evidence
        yield from run.unknown_scary


def _lines(chunks: Iterable[bytes], numbers: set[int]) -> dict[int, str]:
    """The lines ``numbers`` (LF count from 1) of a stream, cleaned and cut; memory does not grow with a line."""
    last = max(numbers)
    lines: dict[int, str] = {}
    number, kept = 1, b""
    for chunk in chunks:
        passed = chunk.count(b"\n")
        if not kept and number not in numbers and numbers.isdisjoint(range(number, number + passed + 1)):
            number += passed
            continue
        *ended, rest = chunk.split(b"\n")
        for part in ended:
            if number in numbers:
                lines[number] = _text(kept + part)
            number, kept = number + 1, b""
            if number > last:
                return lines
        if number in numbers and len(kept) < 8 * MAX_CHARS:
            kept += rest[: 8 * MAX_CHARS]
    if number in numbers and kept:
        lines[number] = _text(kept)
    return lines


def _text(line: bytes) -> str:
    return clean(line[: 8 * MAX_CHARS].decode("utf-8", "replace").rstrip("\r"))[:MAX_CHARS]
