"""Runs the test cases that rule files carry: on facts given in the case, or on a sample log.

A case builds a run; the rule is decided on it alone. A sample goes through the whole program, which the caller
passes in (``explain``), because this package must not know the steps after it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from analyzer.diagnosis.benign import BenignRules
from analyzer.diagnosis.decide import FIRES, UNDECIDED, decide
from analyzer.diagnosis.rule import Rule
from analyzer.diagnosis.view import RunView
from analyzer.errors import UserError
from analyzer.events import Event
from analyzer.framing.record import Record
from analyzer.resources import data_dir
from analyzer.run.facts import Fact, Facts, Where
from analyzer.run.model import STAGES, Failure, Frame, Run
from analyzer.run.vocabulary import spec_of

Explain: TypeAlias = Callable[[Path], Iterable[str]]
"""From a log to the ids of all rules that fired on it, those on harmless lines included."""

SOURCE = "test"


@dataclass(frozen=True, slots=True)
class Result:
    """One test case of one rule. ``skipped``: a sample without a way to explain it."""

    rule: str
    case: str
    passed: bool
    message: str = ""
    skipped: bool = False


def run(rules: Iterable[Rule], explain: Explain | None = None, samples: Path | None = None) -> list[Result]:
    """The results of all cases of ``rules``. ``samples`` is the folder that sample names are relative to."""
    known: dict[Path, set[str]] = {}
    results = []
    for rule in rules:
        for wanted in ("fires", "quiet"):
            for number, case in enumerate(rule.tests.get(wanted, ()), 1):
                given = {"sample": case} if isinstance(case, str) else case
                name = f"{wanted} {number}" + (f" ({given['note']})" if given.get("note") else "")
                if "sample" in given:
                    results.append(_on_sample(rule, name, wanted, given["sample"], explain, samples, known))
                else:
                    results.append(_on_facts(rule, name, wanted, given))
    return results


def _on_facts(rule: Rule, name: str, wanted: str, case: Mapping[str, Any]) -> Result:
    try:
        made = build_run(rule, case)
    except UserError as error:
        return Result(rule.id, name, False, str(error))
    if rule.benign is not None:
        fires = bool(BenignRules([rule]).judge(RunView(made))[0])
        passed = fires is (wanted == "fires")
        return Result(rule.id, name, passed, "" if passed else _said(wanted, "no line matches"))
    failure = next(iter(made.failures), None) if rule.failure == "request" else None
    if rule.failure == "run" and made.failure is None:
        status, why = "quiet", "the case has no failure"
    else:
        decision = decide(rule, RunView(made, failure=failure))
        status = decision.status
        why = f"it is {status}"
        if status == UNDECIDED:
            why = f"undecided for want of {', '.join(sorted(decision.missing)) or decision.why}"
    passed = (status == FIRES) is (wanted == "fires")
    return Result(rule.id, name, passed, "" if passed else _said(wanted, why))


def _said(wanted: str, why: str) -> str:
    return f"must fire and does not: {why}" if wanted == "fires" else "must stay quiet and fires"


def _on_sample(
    rule: Rule, name: str, wanted: str, sample: str,
    explain: Explain | None, samples: Path | None, known: dict[Path, set[str]],
) -> Result:  # fmt: skip
    try:
        folder = samples or data_dir("samples")
    except FileNotFoundError as error:
        return Result(rule.id, name, False, str(error))
    path = (folder / sample.removeprefix("samples/")).resolve()
    if not path.is_relative_to(folder.resolve()) or not path.is_file():
        return Result(rule.id, name, False, f"there is no sample {sample}")
    if explain is None:
        return Result(rule.id, name, True, skipped=True)
    if path not in known:
        known[path] = set(explain(path))
    passed = (rule.id in known[path]) is (wanted == "fires")
    return Result(rule.id, name, passed, "" if passed else f"{sample}: {_said(wanted, 'the rules do not name it')}")


# building a run


def build_run(rule: Rule, case: Mapping[str, Any]) -> Run:
    """The run that a case describes. Raises ``UserError`` where it describes nothing that can be."""
    made = Run(id=1, source=SOURCE, engine=case.get("engine") or rule.engines[0], version=case.get("version"))
    if bracket := case.get("version_range"):
        made.version_range = (str(bracket[0]), str(bracket[-1]) if len(bracket) > 1 else "")
    made.facts = Facts(fact(name, value) for name, value in case.get("facts", {}).items())
    made.outcome = case.get("outcome") or "unknown"
    made.series = dict(case.get("series", {}))
    made.events = [_event(item, number, made.engine or "") for number, item in enumerate(case.get("events", ()), 1)]
    made.scary = [_record(text, number) for number, text in enumerate(case.get("lines", ()), 1001)]
    if case.get("failure") is not None:
        made.failures = [_failure(case["failure"], request=rule.failure == "request")]
    stage = case.get("stage") or (made.failures[0].stage if made.failures else "")
    if stage:
        if stage not in STAGES:
            raise UserError(f"{stage!r} is no stage (there are: {', '.join(STAGES)})")
        reached = STAGES[: STAGES.index(stage) + 1]
        made.stages = {name: Where(SOURCE, 1) for name in reached}
    return made


def fact(name: str, value: Any) -> Fact:
    """The fact ``name`` with a value as a case gives it: ``14161``, ``"0.44 GiB"``, or one value for each rank."""
    try:
        spec = spec_of(name)
    except KeyError:
        raise UserError(f"facts: {name!r} is not in the vocabulary") from None
    where = (Where(SOURCE, 1, f"{name} = {value}"),)
    if isinstance(value, Mapping) and spec.unit not in ("any", "dict"):
        ranks = {str(rank): quantity(name, v, spec.unit) for rank, v in value.items()}
        if not ranks:
            raise UserError(f"facts: {name} has no value")
        return Fact(name, spec.reduced(list(ranks.values())), spec.unit, where, ranks)
    known = quantity(name, value, spec.unit)
    return Fact(name, known, spec.unit, where, {"": known})


def quantity(name: str, value: Any, unit: str) -> Any:
    """``value`` in base units: a text such as ``0.44 GiB`` is read, and must be of the fact's unit.

    Raises ``UserError``.
    """
    from analyzer.diagnosis.expression import ExpressionError, parse
    from analyzer.diagnosis.units import UnitError, describe, number_literal, type_of, unify

    wanted = type_of(unit)
    if wanted.kind == "bool" and not isinstance(value, bool):
        raise UserError(f"facts: {name} is true or false, not {value!r}")
    if wanted.kind != "number":
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    try:
        node = parse(str(value))
        sign = 1
        if node[0] == "neg":
            sign, node = -1, node[1]
        if node[0] != "n":
            raise ExpressionError(f"{value!r} is no quantity")
        given = type_of(node[2]) if node[2] else number_literal(node[1])
        if not (given.label == "bytes" and wanted.label.startswith("bytes_per_")):  # "40 MiB" for a slot's bytes
            unify(given, wanted, f"gives for {describe(wanted)}:")
    except (ExpressionError, UnitError) as error:
        raise UserError(f"facts: {name}: {error}") from None
    return sign * node[1]


def _event(item: str | Mapping[str, Any], number: int, engine: str) -> Event:
    if isinstance(item, str):
        return Event(item, engine, _record(item, number))
    fields = dict(item)
    kind = str(fields.pop("kind", ""))
    if not kind:
        raise UserError("events: an event needs its kind")
    record = _record(str(fields.pop("text", kind)), number)
    record.level = str(fields.pop("level", ""))
    return Event(kind, engine, record, fields)


def _record(text: str, number: int) -> Record:
    return Record(SOURCE, number, number + text.count("\n"), text)


_FAILURE_FIELDS = {"exception", "message", "stage", "process", "origin", "rank", "kind", "text", "frames", "cut"}


def _failure(given: Mapping[str, Any], *, request: bool) -> Failure:
    unknown = sorted(set(given) - _FAILURE_FIELDS)
    if unknown:
        raise UserError(f"failure: there is no field {', '.join(unknown)}")
    exception, message = str(given.get("exception", "")), str(given.get("message", ""))
    shown = f"{exception}: {message}"
    frames = given.get("frames", ())
    return Failure(
        exception,
        message,
        (Where(SOURCE, 900, shown),),
        first_line=900,
        frames=tuple(_frame(f) for f in ([frames] if isinstance(frames, str) else frames)),
        process=str(given.get("process", given.get("origin", ""))),
        rank=str(given.get("rank", "")),
        stage=str(given.get("stage", "")),
        kind=str(given.get("kind", "exception")),
        cut=bool(given.get("cut", False)),
        request_level=request,
        text=str(given.get("text", shown)),
    )


def _frame(text: object) -> Frame:
    """``file:function``, as ``failure.frames`` shows it."""
    file, _, function = str(text).rpartition(":")
    return Frame(file or str(text), 1, function if file else "")


def failed(results: Sequence[Result]) -> list[str]:
    """One sentence for each case that did not pass."""
    return [f"{r.rule}: {r.case}: {r.message}" for r in results if not r.passed]
