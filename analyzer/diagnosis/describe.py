"""Rules as documentation: the list, and one rule with what it says, why, an example, the fix and its versions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from analyzer.diagnosis.causes import CAUSES, TOPICS
from analyzer.diagnosis.expression import render
from analyzer.diagnosis.rule import Rule
from analyzer.diagnosis.templates import plain


@dataclass(frozen=True, slots=True)
class Description:
    """One rule in words. Conditions are given as they were written, holes in texts as ``{expression}``."""

    id: str
    topic: str
    cause: str
    cause_meaning: str
    title: str
    engines: tuple[str, ...]
    versions: str
    severity: str
    confidence: str
    needs: tuple[str, ...]
    how: dict[str, str]
    only_if: str
    let: dict[str, str]
    when: str
    healthy: dict[str, str]
    says: str
    fix: str
    why: str
    example: str
    see: tuple[str, ...]
    explains: tuple[str, ...]
    failure: str
    rank: int
    benign_events: tuple[str, ...]
    benign_lines: tuple[str, ...]
    source: str

    def rows(self) -> list[tuple[str, str]]:
        """Title and text of everything that a page on the rule shows, in order; empty texts are left out."""
        rows = [
            ("cause", f"{self.cause}: {self.cause_meaning}"),
            ("engines", f"{' and '.join(self.engines) or 'sglang and vllm'} {self.versions}".strip()),
            ("severity", self.severity),
            ("confidence", self.confidence),
            ("why", self.why),
            ("only if", self.only_if),
            ("fires when", self.when),
            ("where", "; ".join(f"{name} = {text}" for name, text in self.let.items())),
            ("healthy", "; ".join(f"{name} = {text}" for name, text in self.healthy.items())),
            ("needs", ", ".join(self.needs)),
            ("how to get", "; ".join(f"{name}: {text}" for name, text in self.how.items())),
            ("says", self.says),
            ("fix", self.fix),
            ("example", self.example),
            ("harmless", ", ".join((*self.benign_events, *self.benign_lines))),
            ("explains", ", ".join(self.explains)),
            ("see", " ".join(self.see)),
            ("file", self.source),
        ]
        return [(title, text) for title, text in rows if text]

    def to_json(self) -> dict[str, Any]:
        """The description as a JSON object."""
        return asdict(self)


def describe(rule: Rule) -> Description:
    """``rule`` in words."""
    benign = rule.benign or {}
    return Description(
        id=rule.id,
        topic=TOPICS.get(rule.id[:2], ""),
        cause=rule.cause,
        cause_meaning=CAUSES.get(rule.cause, ""),
        title=rule.plain_title,
        engines=tuple(rule.engines),
        versions=_versions(rule.versions_text),
        severity=_cases(rule.severity),
        confidence=_cases(rule.confidence),
        needs=tuple(rule.needs),
        how=dict(rule.how),
        only_if=render(rule.only_if) if rule.only_if else "",
        let={name: render(node) for name, node in rule.let.items()},
        when=render(rule.when) if rule.when else "",
        healthy={name: render(node) for name, node in rule.healthy.items()},
        says=_texts(rule.says),
        fix=_texts(rule.fix),
        why=rule.why,
        example=rule.example or _first_lines(rule),
        see=tuple(rule.see),
        explains=tuple(rule.explains),
        failure=rule.failure,
        rank=rule.rank,
        benign_events=tuple(benign.get("events", ())),
        benign_lines=tuple(benign.get("lines_text", ())),
        source=rule.source,
    )


def listing(rules: Iterable[Rule]) -> list[dict[str, Any]]:
    """One JSON object for each rule: what a list shows."""
    return [
        {
            "id": rule.id,
            "cause": rule.cause,
            "title": rule.plain_title,
            "engines": list(rule.engines),
            "versions": _versions(rule.versions_text),
            "severity": _cases(rule.severity),
            "source": rule.source,
        }
        for rule in rules
    ]


def _versions(given: str | dict[str, str] | None) -> str:
    if isinstance(given, dict):
        return "; ".join(f"{engine} {text}" for engine, text in given.items())
    return given or ""


def _cases(pairs: list[list[Any]]) -> str:
    if len(pairs) == 1:
        return str(pairs[0][1])
    return ", ".join(f"{value} if {render(condition)}" if condition else f"else {value}" for condition, value in pairs)


def _texts(pairs: list[list[Any]]) -> str:
    return "\n".join(
        f"[if {render(condition)}] {plain(parts)}" if condition else plain(parts) for condition, parts in pairs
    )


def _first_lines(rule: Rule) -> str:
    """An example taken from the rule's own tests, where it gives none."""
    for case in rule.tests.get("fires", ()):
        if isinstance(case, dict):
            if case.get("lines"):
                return str(case["lines"][0])
            failure = case.get("failure")
            if failure:
                return f"{failure.get('exception', '')}: {failure.get('message', '')}"
    return ""
