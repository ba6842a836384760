"""The head of a page: what was read, and a table where it holds several runs."""

from __future__ import annotations

from collections.abc import Sequence

from analyzer.report import styles, view
from analyzer.report.model import InputSummary, Report
from analyzer.report.sheet import Piece, Sheet, cells, clip, clip_path
from analyzer.units import several

FEW = 12
"""So many inputs are listed one by one, whatever they hold."""
MOST = 60
_NAME = 15
"""Columns that the name of an input needs beside its counts."""
_ENGINE = 22


def listed(inputs: Sequence[InputSummary]) -> tuple[list[InputSummary], str]:
    """The inputs that deserve a row, and a sentence on the others.

    Of many, those without a recognised line are only counted, unless there is something to say of them.
    """
    if len(inputs) <= FEW:
        return list(inputs), ""
    telling = [item for item in inputs if item.recognised_lines or item.note] or list(inputs)
    shown = telling[:MOST]
    kept = {id(item) for item in shown}
    rest = [item for item in inputs if id(item) not in kept]
    if not rest:
        return shown, ""
    lines, known = sum(item.lines for item in rest), sum(item.recognised_lines for item in rest)
    held = f"{known:,} of them recognised" if known else "none of them recognised"
    return shown, f"and {several(len(rest), 'more file')} with {several(lines, 'line')}, {held}"


def name_of(inputs: Sequence[InputSummary]) -> str:
    """What a page of ``inputs`` is called."""
    more = f" and {several(len(inputs) - 3, 'more file')}" if len(inputs) > 3 else ""
    return ", ".join(item.source for item in inputs[:3]) + more or "no input"


def write_inputs(report: Report, sheet: Sheet) -> None:
    """Puts what was read on ``sheet``."""
    shown, rest = listed(report.inputs)
    for number, item in enumerate(shown):
        said = item.counts + (f"   {report.seconds:.2f} s" if report.seconds and number == 0 else "")
        if sheet.width - len(said) >= _NAME:
            sheet.add((clip_path(item.source, sheet.width - len(said) - 3), "bold"), ("   " + said, "dim"))
        else:
            sheet.add((clip_path(item.source, sheet.width), "bold"))
            sheet.text(said, 2, "dim")
        if item.note:
            sheet.text(item.note, 2, "dim")
    if rest:
        sheet.text(rest, 0, "dim")


def write_table(report: Report, sheet: Sheet) -> None:
    """Puts a row for each run on ``sheet``, with the name of its log where there are several."""
    sheet.gap()
    sheet.text(view.counted(report), 0, "bold")
    named = len({run.source for run in report.runs}) > 1
    for run in report.runs:
        left: list[Piece] = [(f"  {run.id:>3}  ", "dim"), (f"{run.outcome:<19}", styles.OUTCOMES.get(run.outcome, ""))]
        engine = clip(view.engine_of(run).split(" (")[0].removesuffix(", version unknown"), _ENGINE)
        cause = next((f.cause for f in run.findings if f.severity != "info"), "")
        rest = view.headline(run) + (f"  {cause}" if cause and not run.failure else "")
        left += [(f"{engine:<{_ENGINE + 1}}", ""), (clip(rest, max(10, sheet.width - 27 - _ENGINE)), "")]
        room = sheet.width - sum(cells(text) for text, _ in left) - 2
        name = run.source.rsplit("/", 1)[-1]
        sheet.ends(left, [(name, "dim")] if named and cells(name) <= room else [])
