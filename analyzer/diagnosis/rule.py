"""One compiled rule, as it is kept in the cache and used at run time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from analyzer.diagnosis.nodes import Node


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule whose file was checked. Trees and templates are those of ``expression`` and ``templates``."""

    id: str
    cause: str
    title: list[Any]
    plain_title: str
    engines: list[str]
    versions: Mapping[str, list[list[list[str]]]]
    """Engine -> parsed version constraint; an engine that is absent has none."""
    versions_text: str | dict[str, str] | None
    needs: list[str]
    how: Mapping[str, str]
    only_if: Node | None
    let: Mapping[str, Node]
    when: Node | None
    healthy: Mapping[str, Node]
    severity: list[list[Any]]
    confidence: list[list[Any]]
    explains: list[str]
    says: list[list[Any]]
    fix: list[list[Any]]
    why: str
    example: str
    see: list[str]
    rank: int
    failure: str
    """``run`` (names the cause of the run's failure), ``request`` (of a failed request), or ``""``."""
    benign: Mapping[str, Any] | None
    tests: Mapping[str, Any]
    proof: list[str]
    proof_kinds: list[str]
    facts: list[str] = field(default_factory=list)
    """Facts that ``when`` and ``only_if`` read."""
    source: str = ""
    """The rule's file as messages show it."""

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Rule:
        """The rule in ``value``, which ``compiler.compile_file`` made."""
        return cls(**value)
