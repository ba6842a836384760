"""Lines that look like errors: which a rule shows to be harmless, and which nobody knows.

Rules name event kinds, or patterns for third-party text that no grammar holds. A pattern is tried only on records
that look frightening or that no grammar recognised, and only where one of its plain texts turns up.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from analyzer.diagnosis.decide import meant_for
from analyzer.diagnosis.evaluate import Evaluator
from analyzer.diagnosis.judgement import BenignHit
from analyzer.diagnosis.patterns import Pattern, search
from analyzer.diagnosis.rule import Rule
from analyzer.diagnosis.view import RunView
from analyzer.events import Event
from analyzer.framing.record import Record
from analyzer.run.facts import Where
from analyzer.run.model import Failure

MAX_HITS = 2_000
"""Harmless lines that are named one by one."""
MAX_UNKNOWN = 200
MAX_RECORD_LINES = 400
TELLING = 30
"""Characters from which a line is the same message as a failure's, and not just a common word of it."""
_GRAVE = ("ERROR", "CRITICAL", "FATAL")
_WORDS = re.compile(
    r"error|exception|fail(?:ed|ure)|traceback|fatal|abort|panic|killed|cannot |could not", re.IGNORECASE
)

_SOURCE = re.compile(
    r"\s*(?:> +)?(?:#\s|(?:raise|return)\s+[\w.]+\s*(?:\(|from\b|$)"
    r"|(?:if|elif|for|while|with|def|async|class|try|except|else|finally)\b.*:\s*$|\w+=[\w.]+[,)]+\s*$)"
)
"""A line of a program's source, as test runners and tracebacks show it around the line that failed."""


class BenignRules:
    """The rules on harmless lines, indexed by the event kinds that they name."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self._by_kind: dict[str, list[Rule]] = {}
        self._by_line: list[tuple[Rule, Pattern]] = []
        for rule in sorted((r for r in rules if r.benign), key=lambda r: (-r.rank, r.id)):
            assert rule.benign is not None
            for kind in rule.benign["events"]:
                self._by_kind.setdefault(kind, []).append(rule)
            self._by_line += [(rule, pattern) for pattern in rule.benign["lines"]]

    def judge(self, view: RunView, proved: Iterable[Where] = ()) -> tuple[list[BenignHit], list[Where]]:
        """The harmless lines of a run, and the frightening ones that neither a rule nor a failure accounts for.

        ``proved`` are lines that a finding rests on: they are accounted for.
        """
        run = view.run
        hits: list[BenignHit] = []
        unknown: list[Where] = []
        covered = {(w.source, w.line) for w in proved}
        spans = [span for failure in run.failures for span in _spans(failure)]
        said = [" ".join(failure.message.split()) for failure in run.failures]
        for event in run.events:
            rule = self._of_event(event, view)
            record = event.record
            if rule is None and event.kind not in self._by_kind and looks_grave(record, recognised=True):
                rule = self._of_record(record, view)
                if rule is None and not _accounted(record, covered, spans, said):
                    unknown.append(Where.of(record))
            if rule is not None:
                hits.append(_hit(record, rule))
        for record in run.scary:
            rule = self._of_record(record, view)
            if rule is not None:
                hits.append(_hit(record, rule))
            elif looks_grave(record, recognised=False) and not _accounted(record, covered, spans, said):
                unknown.append(Where.of(record))
        hits.sort(key=lambda h: (h.source, h.line))
        return hits[:MAX_HITS], sorted(dict.fromkeys(unknown), key=lambda w: (w.source, w.line))[:MAX_UNKNOWN]

    def _of_event(self, event: Event, view: RunView) -> Rule | None:
        return next((r for r in self._by_kind.get(event.kind, ()) if self._holds(r, view, event)), None)

    def _of_record(self, record: Record, view: RunView) -> Rule | None:
        found = (rule for rule, pattern in self._by_line if search(pattern, record.text))
        return next((rule for rule in found if self._holds(rule, view, None)), None)

    @staticmethod
    def _holds(rule: Rule, view: RunView, event: Event | None) -> bool:
        """Whether the rule is for this run, and its ``when`` does not stand against it."""
        if meant_for(rule, view) is False:
            return False
        if rule.when is None and rule.only_if is None:
            return True
        bound = RunView(view.run, view.model, event=event) if event is not None else view
        evaluator = Evaluator(bound, rule.let)
        return all(evaluator.truth(node) is True for node in (rule.only_if, rule.when) if node is not None)


def looks_grave(record: Record, *, recognised: bool) -> bool:
    """Whether a record frightens: by its level, or by its words where it has none (or a warning's)."""
    if record.form == "bar":
        return False
    if record.level.upper() in _GRAVE:
        return True
    if recognised or record.level.upper() in ("INFO", "DEBUG"):
        return False
    if record.form in ("traceback", "stack"):
        return True
    return _WORDS.search(record.text) is not None and (bool(record.level) or _SOURCE.match(record.text) is None)


def _hit(record: Record, rule: Rule) -> BenignHit:
    place = Where.of(record)
    return BenignHit(place.line, rule.id, rule.why, place.source, place.text)


def _spans(failure: Failure) -> list[tuple[str, int, int]]:
    """Source, first and last line of everything that shows a failure."""
    lines = [w.line for w in failure.where if w.line]
    if failure.first_line:
        lines.append(failure.first_line)
    source = failure.where[0].source if failure.where else ""
    own = (source, min(lines, default=0), max(lines, default=0))
    return [own, *((source, first, last) for first, last in failure.spans)]


def _accounted(
    record: Record, covered: set[tuple[str, int]], spans: Sequence[tuple[str, int, int]], said: Sequence[str]
) -> bool:
    """Whether a finding rests on one of the record's lines, a failure spans them, or they say what one said."""
    text = " ".join(record.text.split())
    if len(text) >= TELLING and any(text in message for message in said):
        return True
    lines = range(record.line, min(record.last_line, record.line + MAX_RECORD_LINES) + 1)
    if any((record.source, line) in covered for line in lines):
        return True
    return any(
        source == record.source and first <= record.last_line and record.line <= last for source, first, last in spans
    )
