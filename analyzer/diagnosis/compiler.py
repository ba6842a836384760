"""Compiles one rule file: reads it, parses its expressions, checks types, units and names, and gives JSON.

``compile_file`` gives ``{"rule": … | None, "problems": […], "lint": […]}``. A *problem* keeps the rule from being
used; *lint* is what a careful author mends (a missing test, a fact that ``needs`` forgot).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, get_args

from analyzer.diagnosis.causes import BENIGN, CAUSES, RUNTIME, STARTUP, TOPICS
from analyzer.diagnosis.check import Scope, boolean, infer, unguarded
from analyzer.diagnosis.expression import ExpressionError, parse
from analyzer.diagnosis.judgement import Confidence, Severity
from analyzer.diagnosis.model import Choice, RuleFile, validate
from analyzer.diagnosis.nodes import Node, children, walk
from analyzer.diagnosis.patterns import PatternError, compile_pattern
from analyzer.diagnosis.templates import compile_template
from analyzer.diagnosis.units import Type, describe, type_of, unify
from analyzer.diagnosis.versions import parse_constraint
from analyzer.diagnosis.yamlfile import FileError, load_yaml, read_bytes
from analyzer.run.vocabulary import spec_of

_EVENT_PROOF = re.compile(r"(?:seen|count|field)\((\w+)(?:,.*)?\)$")
_ALWAYS_THERE = ("failure.", "engine.", "event.", "outcome", "stage")
"""Facts that ``needs`` does not have to name: a run without them is decided, too."""
_FAILURE_CAUSES = {*STARTUP, *RUNTIME, "elsewhere", "cut-short", "request-refused", "request-transfer-failed"}


def compile_file(path: Path, shown: str) -> dict[str, Any]:
    """The compiled form of the rule file at ``path``, which messages call ``shown``."""
    try:
        value = load_yaml(read_bytes(path))
    except FileError as error:
        return {"rule": None, "problems": [f"{shown}: {error}"], "lint": []}
    return compile_value(value, shown, stem=path.stem)


def compile_value(value: Any, shown: str, *, stem: str | None = None) -> dict[str, Any]:
    """The compiled form of an already read rule file."""
    model, sentences = validate(value)
    if model is None:
        return {"rule": None, "problems": [f"{shown}: {s}" for s in sentences], "lint": []}
    compiler = _Compiler(model)
    rule = compiler.compile()
    if stem is not None and stem != model.id:
        compiler.problems.append(f"id: the file must be called {model.id}.yaml")
    rule["source"] = shown
    return {
        "rule": None if compiler.problems else rule,
        "problems": [f"{shown}: {p}" for p in compiler.problems],
        "lint": [f"{shown}: {p}" for p in compiler.lint],
    }


class _Compiler:
    """Compiles one rule and collects everything that is wrong with it, rather than stopping at the first."""

    def __init__(self, model: RuleFile) -> None:
        self.model = model
        self.problems: list[str] = []
        self.lint: list[str] = []
        self.lets: dict[str, Type] = {}
        self.let_nodes: dict[str, Node] = {}
        self.scope = Scope(self.lets, ("event.",) if model.benign is not None and model.benign.events else ())

    def compile(self) -> dict[str, Any]:
        m = self.model
        self._names()
        for name, text in m.let.items():
            self._let(name, text)
        only_if = self._condition("only_if", m.only_if)
        when = self._condition("when", m.when)
        healthy = {name: self._healthy(name, text) for name, text in m.healthy.items()}
        failure = m.failure if isinstance(m.failure, str) else "run" if m.failure else ""
        severity = m.severity or ("critical" if failure else "info" if m.benign else "warning")
        needs = [n for n in m.needs if self._fact("needs", n)]
        rule = {
            "id": m.id, "cause": m.cause, "title": self._template("title", m.title), "plain_title": m.title,
            "engines": list(m.engines), "versions": self._versions(), "versions_text": m.versions, "needs": needs,
            "how": {n: text for n, text in m.how.items() if self._fact("how", n)}, "only_if": only_if,
            "let": self.let_nodes, "when": when, "healthy": {k: v for k, v in healthy.items() if v is not None},
            "severity": self._choices("severity", severity),
            "confidence": self._choices("confidence", m.confidence), "explains": list(m.explains),
            "says": self._texts("says", m.says), "fix": self._texts("fix", m.fix), "why": m.why.strip(),
            "example": m.example, "see": list(m.see), "rank": m.rank, "failure": failure, "benign": self._benign(),
            "tests": m.tests.model_dump(exclude_defaults=True),
        }  # fmt: skip
        used = set(self._used(when)) | set(self._used(only_if))
        rule["proof"], rule["proof_kinds"] = self._proof(needs, when)
        self._needs(needs, when)
        self._shape(failure)
        rule["facts"] = sorted(used)
        return rule

    # names and identity

    def _names(self) -> None:
        m = self.model
        if m.id[:2] not in TOPICS:
            self.problems.append(f"id: {m.id[:2]!r} is no topic (there are: {', '.join(TOPICS)})")
        if m.cause not in CAUSES:
            from difflib import get_close_matches

            near = get_close_matches(m.cause, CAUSES, 2, 0.6)
            hint = f" (near: {', '.join(near)})" if near else ""
            self.problems.append(f"cause: {m.cause!r} is no cause code{hint}")
        if not m.engines:
            self.problems.append("engines: is empty")

    def _fact(self, place: str, name: str) -> bool:
        try:
            self.scope.fact(name)
        except ExpressionError as error:
            self.problems.append(f"{place}: {error}")
            return False
        return True

    def _versions(self) -> dict[str, Any]:
        given = self.model.versions
        if given is None:
            return {}
        by_engine = dict(given) if isinstance(given, dict) else dict.fromkeys(self.model.engines, given)
        result: dict[str, Any] = {}
        for engine, text in by_engine.items():
            try:
                result[engine] = parse_constraint(text)
            except ValueError as error:
                self.problems.append(f"versions: {error}")
        return result

    # expressions

    def _parse(self, place: str, text: str | None) -> Node | None:
        if text is None:
            return None
        try:
            return parse(text, frozenset(self.lets))
        except ExpressionError as error:
            self.problems.append(f"{place}: {error}")
            return None

    def _let(self, name: str, text: str) -> None:
        if not re.fullmatch(r"[a-z]\w*", name) or name in ("version", "outcome", "stage", "true", "false", "none"):
            self.problems.append(f"let: {name!r} cannot be a name (a small letter, then letters, digits, _)")
            return
        node = self._parse(f"let.{name}", text)
        if node is None:
            self.lets[name] = Type("any")  # so that its uses are not reported, too
            return
        try:
            self.lets[name] = infer(node, self.scope)
        except ExpressionError as error:
            self.problems.append(f"let.{name}: {error}")
            self.lets[name] = Type("any")
            return
        self.let_nodes[name] = node

    def _condition(self, place: str, text: str | None) -> Node | None:
        node = self._parse(place, text)
        if node is not None:
            try:
                boolean(node, self.scope)
            except ExpressionError as error:
                self.problems.append(f"{place}: {error}")
                return None  # nothing further can rely on its shape
        return node

    def _healthy(self, name: str, text: str) -> Node | None:
        if not self._fact("healthy", name):
            return None
        node = self._parse(f"healthy.{name}", text)
        if node is None:
            return None
        try:
            kind, wanted = infer(node, self.scope), type_of(spec_of(name).unit)
            unify(kind, wanted, f"sets {name} ({describe(wanted)}) to {describe(kind)}:")
        except (ExpressionError, ValueError, KeyError) as error:
            self.problems.append(f"healthy.{name}: {error}")
        return node

    def _choices(self, place: str, given: Any) -> list[list[Any]]:
        """``[condition or None, value]`` pairs; the first that holds counts."""
        allowed = get_args({"severity": Severity, "confidence": Confidence}[place])
        pairs = self._pairs(place, given)
        for _, value in pairs:
            if value not in allowed:
                self.problems.append(f"{place}: {value!r} is none of {', '.join(allowed)}")
        if pairs and pairs[-1][0] is not None:
            pairs.append([None, allowed[-1]])
        return pairs

    def _texts(self, place: str, given: Any) -> list[list[Any]]:
        """``[condition or None, template]`` pairs; all that hold are put together."""
        return [[condition, self._template(place, text.strip())] for condition, text in self._pairs(place, given)]

    def _pairs(self, place: str, given: Any) -> list[list[Any]]:
        if isinstance(given, str):
            return [[None, given]] if given else []
        pairs: list[list[Any]] = []
        for item in given:
            if not isinstance(item, Choice):
                pairs.append([None, item])
            elif item.otherwise is not None and item.then is None and item.condition is None:
                pairs.append([None, item.otherwise])
            elif item.condition is not None and item.then is not None:
                node = self._condition(place, item.condition)
                if node is None:
                    continue
                pairs.append([node, item.then])
                if item.otherwise is not None:
                    pairs.append([["not", node], item.otherwise])
            else:
                self.problems.append(f"{place}: a case is {{if: …, then: …}} or {{else: …}}")
        return pairs

    def _template(self, place: str, text: str) -> list[Any]:
        try:
            return compile_template(text, self.scope)
        except ExpressionError as error:
            self.problems.append(f"{place}: {error}")
            return [text]

    # what the parts must be to each other

    def _used(self, node: Node | None) -> Iterable[str]:
        """Facts that ``node`` reads, through ``let`` names too."""
        for part in walk(node) if node else ():
            if part[0] == "f":
                yield part[1]
            elif part[0] == "l" and part[1] in self.let_nodes:
                yield from self._used(self.let_nodes[part[1]])

    def _kinds(self, node: Node | None) -> Iterable[str]:
        for part in walk(node) if node else ():
            if part[0] == "call" and part[1] in ("seen", "count", "field") and part[2]:
                yield part[2][0][1]
            elif part[0] == "l" and part[1] in self.let_nodes:
                yield from self._kinds(self.let_nodes[part[1]])

    def _proof(self, needs: list[str], when: Node | None) -> tuple[list[str], list[str]]:
        if self.model.proof is None:
            return list(dict.fromkeys([*needs, *self._used(when)])), list(dict.fromkeys(self._kinds(when)))
        facts, kinds = [], []
        for entry in self.model.proof:
            if match := _EVENT_PROOF.match(entry):
                kinds.append(match[1])
            elif self._fact("proof", entry):
                facts.append(entry)
        return facts, kinds

    def _needs(self, needs: list[str], when: Node | None) -> None:
        if when is None or not needs:
            return
        wanted = set(unguarded(when))
        for part in walk(when):
            if part[0] == "l" and part[1] in self.let_nodes and part[1] in self._unguarded_lets(when):
                wanted |= set(unguarded(self.let_nodes[part[1]]))
        forgotten = sorted(n for n in wanted - set(needs) if not n.startswith(_ALWAYS_THERE))
        if forgotten:
            self.lint.append(f"needs: forgets {', '.join(forgotten)}, which when uses without default()")

    def _unguarded_lets(self, node: Node) -> set[str]:
        if node[0] == "l":
            return {node[1]}
        if node[0] in ("known", "unknown") or (node[0] == "call" and node[1] == "known"):
            return set()
        if node[0] == "call" and node[1] == "default":
            return self._unguarded_lets(node[2][1])
        return {name for child in children(node) for name in self._unguarded_lets(child)}

    def _benign(self) -> dict[str, Any] | None:
        m = self.model
        if m.benign is None:
            return None
        lines = []
        for text in m.benign.lines:
            try:
                lines.append(compile_pattern(text))
            except PatternError as error:
                self.problems.append(f"benign.lines: {error}")
        return {"events": list(m.benign.events), "lines": lines, "lines_text": list(m.benign.lines)}

    def _shape(self, failure: str) -> None:
        m = self.model
        if m.benign is not None:
            if m.cause not in BENIGN:
                self.problems.append("cause: a benign rule names a benign-… cause")
            if not m.benign.events and not m.benign.lines:
                self.problems.append("benign: names neither events nor lines")
            if not m.why.strip():
                self.problems.append("why: a benign rule must say why the line is harmless")
        elif m.when is None:
            self.problems.append("when: is missing")
        elif m.cause in BENIGN:
            self.problems.append("benign: a rule with a benign-… cause says which events or lines are harmless")
        if failure and m.cause not in _FAILURE_CAUSES:
            self.problems.append(f"cause: {m.cause!r} is not the cause of a failure, but failure is set")
        if m.benign is None and not m.says:
            self.problems.append("says: is missing")
        if m.benign is None and not m.fix and m.cause != "no-finding":
            self.lint.append("fix: is missing")
        if not m.tests.fires:
            self.lint.append("tests.fires: has no case in which the rule must fire")
        if not m.tests.quiet:
            self.lint.append("tests.quiet: has no case in which the rule must stay quiet")
