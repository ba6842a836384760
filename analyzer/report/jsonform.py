"""The report as JSON (contract.md), and back."""

from __future__ import annotations

import json
import math
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

from analyzer.errors import UserError
from analyzer.report.model import SCHEMA, Report

if TYPE_CHECKING:
    from pydantic import TypeAdapter


def to_json(report: Report) -> dict[str, Any]:
    """``report`` as plain dicts and lists, keys in the order of the model (see `plain`)."""
    document = plain(report)
    return {"schema": document.pop("schema"), "tool": document.pop("tool"), **document}


def dumps(report: Report) -> str:
    """``report`` as an indented JSON text with a final line feed."""
    return json.dumps(to_json(report), ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def plain(value: Any) -> Any:
    """``value`` in the types of JSON: whole numbers without a fraction, figures that JSON lacks as null."""
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    if isinstance(value, float):
        if not math.isfinite(value):
            return None
        return int(value) if value.is_integer() and abs(value) < 1 << 53 else value
    if value is None or isinstance(value, str | int | bool):
        return value
    return str(value)


def from_json(document: str | bytes) -> Report:
    """The report in ``document``. Its texts are cleaned again: a saved report is input like any other.

    Raises ``UserError`` (status 3) if it is not a report of this schema.
    """
    from pydantic import ValidationError

    from analyzer.report.scrub import scrub

    try:
        plain = json.loads(document)
    except (ValueError, RecursionError) as error:
        raise UserError(f"not a saved report: it is not JSON ({error})", status=3) from None
    schema = plain.get("schema") if isinstance(plain, dict) else None
    if schema != SCHEMA:
        raise UserError(f"not a saved report: its schema is {schema!r}, this program reads {SCHEMA!r}", status=3)
    try:
        return scrub(_adapter().validate_python(plain))
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise UserError(f"not a saved report: {place}: {first['msg']}", status=3) from None


def _adapter() -> TypeAdapter[Report]:
    from pydantic import TypeAdapter

    return TypeAdapter(Report)
