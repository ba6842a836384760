"""The report: one model, many pages.

Every page module is imported when it is first asked for: a terminal page must not pay for HTML.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rich.console import Console

    from analyzer.report.build import Judged
    from analyzer.report.model import InputSummary, Report

Format: TypeAlias = Literal["text", "json", "markdown", "html", "sarif", "junit"]
FORMATS: tuple[Format, ...] = get_args(Format)


def build(judged: Sequence[Judged], inputs: Sequence[InputSummary], *, seconds: float = 0.0) -> Report:
    """The report on judged runs; see `analyzer.report.build`."""
    from analyzer.report.build import build as build_report

    return build_report(judged, inputs, seconds=seconds)


def to_terminal(report: Report, console: Console, *, noise: bool = False) -> None:
    """Prints the page for a terminal or a pipe on ``console``."""
    from analyzer.report.terminal import to_terminal as print_page

    print_page(report, console, noise=noise)


def to_json(report: Report) -> dict[str, Any]:
    """The report as the JSON document of contract.md."""
    from analyzer.report.jsonform import to_json as as_json

    return as_json(report)


def from_json(document: str | bytes) -> Report:
    """The report that a saved JSON document holds. Raises ``UserError`` if it is not one."""
    from analyzer.report.jsonform import from_json as read

    return read(document)


def render(report: Report, format: str, *, noise: bool = False) -> str:
    """The report as text in one of ``FORMATS``."""
    from analyzer.report.write import render as render_as

    return render_as(report, format, noise=noise)


def print_report(report: Report, format: str = "text", *, noise: bool = False) -> None:
    """Prints the report on standard output in one of ``FORMATS``."""
    from analyzer.report.write import print_report as print_as

    print_as(report, format, noise=noise)


def write_report(report: Report, path: Path) -> None:
    """Writes the report to ``path`` in the format that its extension names, whole or not at all."""
    from analyzer.report.write import write_report as write_to

    write_to(report, path)
