"""What a rule file may say, as pydantic models. Imported only when a rule is compiled, never at a normal start."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from analyzer.diagnosis.judgement import Confidence, Severity


def _to_text(value: Any) -> Any:
    """Expressions such as ``when: true`` or ``healthy: {x: 0.9}`` may be written as bare YAML values."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value) if isinstance(value, int | float) else value


Expression = Annotated[str, BeforeValidator(_to_text), Field(max_length=4_000)]
Text = Annotated[str, Field(max_length=4_000)]


class Strict(BaseModel):
    """Unknown fields are errors: a misspelt field must not be ignored."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Choice(Strict):
    """One case of a list: ``then`` holds if ``if`` does; ``else`` (or a plain value) always holds."""

    condition: Expression | None = Field(None, alias="if")
    then: Text | None = None
    otherwise: Text | None = Field(None, alias="else")


class Benign(Strict):
    """Which records the rule shows to be harmless."""

    events: list[str] = []
    lines: list[Text] = []


class Case(Strict):
    """One test case. ``facts`` are given in base units or with a unit (``0.44 GiB``); a mapping gives ranks."""

    note: str = ""
    facts: dict[str, Any] = {}
    engine: Literal["sglang", "vllm"] | None = None
    version: str | None = None
    version_range: list[str] | None = None
    events: list[str | dict[str, Any]] = []
    failure: dict[str, Any] | None = None
    series: dict[str, Any] = {}
    outcome: str | None = None
    stage: str | None = None
    lines: list[str] = []
    sample: str | None = None


class Tests(Strict):
    """When the rule must fire, and when it must not (a rule that cannot be decided does not fire)."""

    fires: list[Case | str] = []
    quiet: list[Case | str] = []


class RuleFile(Strict):
    """One rule file."""

    id: Annotated[str, Field(pattern=r"^[A-Z]{2}\d{3}$")]
    cause: str
    title: Annotated[str, Field(min_length=3, max_length=300)]
    engines: list[Literal["sglang", "vllm"]] = ["sglang", "vllm"]
    versions: str | dict[Literal["sglang", "vllm"], str] | None = None
    needs: list[str] = []
    how: dict[str, Text] = {}
    only_if: Expression | None = None
    let: dict[str, Expression] = {}
    when: Expression | None = None
    healthy: dict[str, Expression] = {}
    severity: Severity | list[Severity | Choice] | None = None
    confidence: Confidence | list[Confidence | Choice] = "likely"
    proof: list[str] | None = None
    explains: list[str] = []
    says: Text | list[Text | Choice] = ""
    fix: Text | list[Text | Choice] = ""
    why: Text = ""
    example: Text = ""
    see: list[str] = []
    rank: Annotated[int, Field(ge=-1000, le=1000)] = 0
    failure: bool | Literal["run", "request"] = False
    benign: Benign | None = None
    tests: Tests = Tests()


def validate(value: Any) -> tuple[RuleFile | None, list[str]]:
    """The rule file in ``value``, or None with sentences that say which field is wrong and why."""
    if not isinstance(value, dict):
        return None, ["is no mapping of fields to values"]
    try:
        return RuleFile.model_validate(value), []
    except ValidationError as error:
        errors = error.errors(include_url=False)
        cases = {e["loc"][0] for e in errors if "Choice" in e["loc"]}  # the other branches of the union only confuse
        told = [e for e in errors if e["loc"][0] not in cases or "Choice" in e["loc"]]
        return None, list(dict.fromkeys(map(_sentence, told)))[:12]


def _sentence(error: Any) -> str:
    parts = [str(part) for part in error["loc"]]
    if "Choice" in parts:
        return f"{parts[0]}: a case is {{if: …, then: …}} or {{else: …}}; put an expression with a comma in quotes"
    place = ".".join(part for part in parts if not part.startswith(("literal", "list[", "union", "function-")))
    kind, given = error["type"], error.get("input")
    if "(" in place or ")" in place:
        return f"{parts[0]}: an expression with a comma inside {{…}} must be in quotes (near {place[:60]!r})"
    shown = repr(given) if len(repr(given)) <= 60 else repr(given)[:57] + "..."
    if kind == "extra_forbidden":
        return f"{place}: there is no such field"
    if kind == "missing":
        return f"{place}: is missing"
    if kind == "string_pattern_mismatch":
        return f"{place}: {shown} is not two capital letters and three digits"
    if kind == "literal_error":
        return f"{place}: {shown} is none of {error['ctx']['expected']}"
    return f"{place}: {error['msg'][0].lower()}{error['msg'][1:]}, not {shown}"
