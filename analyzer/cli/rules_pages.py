"""The rules as pages: the list, one rule in words, and the results of their own cases."""

from __future__ import annotations

import difflib
import json
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from analyzer.errors import UserError
from analyzer.redact import clean
from analyzer.units import several

if TYPE_CHECKING:
    from analyzer.diagnosis import RuleSet
    from analyzer.diagnosis.describe import Description

WIDTH = 88


def _print(text: str = "") -> None:
    typer.echo(clean(text))


def _as_json(value: Any) -> None:
    typer.echo(json.dumps(value, indent=1, ensure_ascii=False))


def show_list(known: RuleSet, format: str) -> int:
    """One line a rule, by topic."""
    from analyzer.diagnosis.describe import describe, listing

    if format == "json":
        _as_json(listing(known.rules))
        return 0
    topic = ""
    for rule in known.rules:
        about = describe(rule)
        if about.topic != topic:
            topic = about.topic
            _print(f"\n{rule.id[:2]}  {topic}")
        engines = "both" if len(about.engines) != 1 else about.engines[0]
        _print(f"  {about.id}  {engines:6}  {about.severity.split()[0].strip(','):8}  {about.title}")
    _print(f"\n{len(known.rules)} rules; kvautopsy rules ID describes one, kvautopsy rules test runs their cases")
    return 0


def show(known: RuleSet, names: Sequence[str], format: str) -> int:
    """Each named rule in words. Raises ``UserError`` for a name that no rule has."""
    from analyzer.diagnosis.describe import describe

    found = []
    for name in names:
        rule = known.get(name)
        if rule is None:
            close = difflib.get_close_matches(name.upper(), [r.id for r in known.rules], 3)
            hint = f": did you mean {' or '.join(close)}?" if close else ": kvautopsy rules lists them"
            raise UserError(f"there is no rule {name}{hint}")
        found.append(describe(rule))
    if format == "json":
        _as_json([about.to_json() for about in found])
    else:
        for about in found:
            _page(about)
    return 0


def _page(about: Description) -> None:
    _print(f"\n{about.id}  {about.title}")
    _print(f"{about.topic}\n")
    for title, text in about.rows():
        _print(_column(title, text))
    _print()


def _column(title: str, text: str) -> str:
    lines = [wrapped for line in text.splitlines() for wrapped in textwrap.wrap(line, WIDTH - 14) or [""]]
    return "\n".join(f"  {title if i == 0 else '':11} {line}" for i, line in enumerate(lines))


def run_tests(folders: Sequence[Path], format: str) -> int:
    """Runs the cases inside rule files; 0 if all pass, 1 if one fails."""
    from analyzer.diagnosis.lint import examine

    outcome = examine(folders, fired)
    failed = [r for r in outcome.results if not r.passed and not r.skipped]
    skipped = sum(r.skipped for r in outcome.results)
    passed = len(outcome.results) - len(failed) - skipped
    if format == "json":
        results = [{"rule": r.rule, "case": r.case, "message": r.message} for r in failed]
        _as_json({"passed": passed, "skipped": skipped, "failed": results, "complaints": list(outcome.complaints)})
    else:
        for complaint in outcome.complaints:
            _print(complaint)
        for result in failed:
            _print(f"{result.rule} {result.case}: {result.message}")
        rest = f", {skipped} skipped" if skipped else ""
        _print(f"{several(len(outcome.rules), 'rule')}: {passed} passed, {len(failed)} failed{rest}")
    return 0 if outcome.passed else 1


def fired(path: Path) -> Iterable[str]:
    """The ids of all rules that fire on a sample log, those on harmless lines included."""
    from analyzer.pipeline import explain

    report = explain([str(path)])
    return {name for run in report.runs for name in _ids(run)}


def _ids(run: Any) -> set[str]:
    ids = {f.rule for f in run.findings} | {b.rule for b in run.benign}
    return ids | ({run.failure.rule} if run.failure and run.failure.rule else set())
