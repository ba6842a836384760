"""All rules together: found, compiled once, cached by content, and put in order.

A normal start reads the files' bytes and one JSON file; YAML, Lark and pydantic are imported only when a file changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analyzer.cache import cached, fingerprint
from analyzer.diagnosis.benign import BenignRules
from analyzer.diagnosis.judge import judge
from analyzer.diagnosis.judgement import Judgement
from analyzer.diagnosis.rule import Rule
from analyzer.errors import UserError
from analyzer.resources import data_dir
from analyzer.run.model import Run
from analyzer.run.vocabulary import OPEN_PREFIXES, VOCABULARY
from analyzer.sizing.base import SizingModel

if TYPE_CHECKING:
    from analyzer.diagnosis.why import WhyNot

MAX_FILES = 5_000
_COMPILER = (
    "causes", "check", "compiler", "expression", "linear", "model", "nodes", "patterns", "rule", "syntax", "templates",
    "units", "versions", "yamlfile",
)  # fmt: skip
"""Modules whose change makes every compiled rule stale."""


@dataclass(slots=True)
class Folder:
    """The compiled rules of one folder, and what is wrong in it."""

    path: Path
    rules: list[Rule] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    """Sentences with file and field; the rules meant are left out."""
    lint: list[str] = field(default_factory=list)
    """What a careful author mends; the rules meant are in use."""


@dataclass(frozen=True)
class RuleSet:
    """The rules that judge a run."""

    rules: Sequence[Rule]
    problems: tuple[str, ...] = ()
    """What is wrong with the shipped rules: empty, unless a build went wrong."""

    @classmethod
    def load(cls, extra_dirs: Iterable[Path] = ()) -> RuleSet:
        """The shipped rules and those of ``extra_dirs``. Raises ``UserError`` if one of the latter is wrong.

        A rule of ``extra_dirs`` with the id of a shipped one takes its place.
        """
        shipped = load_folder(data_dir("rules"))
        rules = {rule.id: rule for rule in shipped.rules}
        problems = list(shipped.problems)
        own: dict[str, Rule] = {}
        for path in extra_dirs:
            folder = load_folder(path)
            wrong = folder.problems + twice([*own.values(), *folder.rules])
            if wrong:
                raise UserError("\n".join(wrong[:20]))
            own.update((rule.id, rule) for rule in folder.rules)
        problems += twice(shipped.rules)
        rules.update(own)
        return cls(tuple(rules[name] for name in sorted(rules)), tuple(problems))

    def judge(self, run: Run, model: SizingModel | None = None) -> Judgement:
        """What the rules say of ``run``; findings are priced where ``model`` reproduces the observed pool."""
        return judge(self._causes, self._benign, run, model)

    def get(self, rule_id: str) -> Rule | None:
        """The rule called ``rule_id`` (in any case), or None."""
        wanted = rule_id.strip().upper()
        return next((rule for rule in self.rules if rule.id == wanted), None)

    def why_not(self, rule_id: str, run: Run, model: SizingModel | None = None) -> WhyNot:
        """How the rule called ``rule_id`` was decided on ``run``. Raises ``UserError`` if there is none."""
        from analyzer.diagnosis.why import why_not

        rule = self.get(rule_id)
        if rule is None:
            raise UserError(f"there is no rule {rule_id}: see kvautopsy rules")
        return why_not(rule, self._causes, run, model)

    @cached_property
    def _causes(self) -> list[Rule]:
        return [rule for rule in self.rules if rule.benign is None]

    @cached_property
    def _benign(self) -> BenignRules:
        return BenignRules(rule for rule in self.rules if rule.benign is not None)


def load_folder(path: Path) -> Folder:
    """The rules under ``path`` (a folder, or one file). Raises ``UserError`` if there is nothing to read."""
    files = rule_files(path)
    contents = [_content(file) for _, file in files]
    names = "\0".join(name for name, _ in files)
    value = cached("rules", fingerprint([names.encode(), *contents], salt=_salt()), lambda: _compile(files))
    return Folder(path, [Rule.from_json(item) for item in value["rules"]], value["problems"], value["lint"])


def rule_files(path: Path) -> list[tuple[str, Path]]:
    """Shown name and path of every rule file under ``path``, in order. Raises ``UserError``."""
    if path.is_file():
        return [(path.name, path)]
    if not path.is_dir():
        raise UserError(f"{path}: there is no such folder of rules")
    found = [(f"{path.name}/{f.relative_to(path).as_posix()}", f) for f in path.rglob("*.yaml") if f.is_file()]
    if not found:
        raise UserError(f"{path}: holds no rule (*.yaml)")
    if len(found) > MAX_FILES:
        raise UserError(f"{path}: holds more than {MAX_FILES:,} rule files")
    return sorted(found)


def twice(rules: Iterable[Rule]) -> list[str]:
    """Sentences on ids that two files use."""
    seen: dict[str, str] = {}
    wrong = []
    for rule in rules:
        if (other := seen.setdefault(rule.id, rule.source)) != rule.source:
            wrong.append(f"{rule.source}: id: {rule.id} is used by {other}, too")
    return wrong


def _content(path: Path) -> bytes:
    """A file's bytes for the cache key; one that is too large or unreadable is reported when it is compiled."""
    from analyzer.diagnosis.yamlfile import MAX_BYTES

    try:
        with path.open("rb") as file:
            return file.read(MAX_BYTES + 1)
    except OSError as error:
        return f"unreadable: {error.errno}".encode()


def _salt() -> str:
    """Everything beside the rule files that a compiled rule depends on."""
    here = Path(__file__).parent
    sources = [(here / f"{name}.py").read_bytes() for name in _COMPILER]
    facts = "\n".join(f"{name} {spec.unit}" for name, spec in sorted({**VOCABULARY, **OPEN_PREFIXES}.items()))
    return fingerprint([*sources, (data_dir("grammars") / "rules.lark").read_bytes(), facts.encode()])


def _compile(files: Sequence[tuple[str, Path]]) -> dict[str, Any]:
    from analyzer.diagnosis.compiler import compile_file

    compiled = [compile_file(path, shown) for shown, path in files]
    return {
        "rules": [c["rule"] for c in compiled if c["rule"] is not None],
        "problems": [p for c in compiled for p in c["problems"]],
        "lint": [p for c in compiled for p in c["lint"]],
    }
