"""The forecast as one page: pool with its range, limits, ledger, what the rules say, and what is estimated."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analyzer.planning.forecast import Forecast, beyond_model
from analyzer.report.ledger import ledger
from analyzer.report.sheet import Sheet, bar
from analyzer.report.styles import SEVERITIES
from analyzer.units import GIB, several, show_bytes

if TYPE_CHECKING:
    from analyzer.diagnosis import Judgement
    from analyzer.planning.search import Answer, Target

_ESTIMATED = frozenset({"activation peak", "outside torch", "CUDA graphs"})
_ROOM = 20
"""Columns that a note needs to stand beside its figure."""


def write(found: Forecast, judgement: Judgement, sheet: Sheet) -> None:
    """Puts the forecast on ``sheet``."""
    launch = found.launch
    version = launch.version or "of the newest known version"
    ranks = f"TP {launch.tp} PP {launch.pp}"
    sheet.add((f"PLAN  {launch.engine} {version}", "bold"))
    sheet.text(f"{launch.folder.config.architecture}, {show_bytes(launch.total)} device, {ranks}", 6)
    sheet.gap()
    _trouble(found, sheet)
    if found.model is None:
        return
    _pool(found, sheet)
    _limits(found, sheet)
    _ledger(found, sheet)
    _findings(judgement, sheet)
    _basis(found, sheet)


def _trouble(found: Forecast, sheet: Sheet) -> None:
    """Whether the launch will serve, no more certain than the estimates are."""
    if found.trouble and (found.at_best or found.model is None):
        sheet.text(f"This launch will not serve: {found.trouble}.", 2, "bold red")
    elif found.trouble:
        sheet.text(f"This launch will hardly serve: {found.trouble}.", 2, "bold red")
        sheet.text("With every estimate at its best it would.", 2, "bold red")
    elif found.at_worst:
        sheet.text(f"With every estimate at its worst this launch will not serve: {found.at_worst}.", 2, "yellow")
    else:
        return
    sheet.gap()


def _pool(found: Forecast, sheet: Sheet) -> None:
    spread = f"   ({found.low:,.0f} .. {found.high:,.0f})" if found.low != found.high else "   (exact)"
    sheet.add(("POOL", "bold"), f"      {found.tokens:,.0f} tokens", (spread if found.high else "", "dim"))
    for step in found.steps:
        sheet.text(step, 10, "dim")
    sheet.gap()


def _limits(found: Forecast, sheet: Sheet) -> None:
    bound = found.run.facts.value("limit.bound_by")
    by = f" (bound by {bound})" if bound else ""
    sheet.add(("LIMITS", "bold"), f"    {found.running:,.0f} running{by}")
    if found.context:
        full = f"{found.concurrency:,.2f} requests of the full context at once"
        sheet.text(f"context {found.context:,.0f}: {full}", 10)
        if beyond := beyond_model(found):
            sheet.text(beyond, 10, "yellow")
    sheet.gap()


def _ledger(found: Forecast, sheet: Sheet) -> None:
    rows = ledger(found.run)
    if not rows:
        return
    most = max(row.bytes for row in rows)
    sheet.add((f"WHERE {show_bytes(found.launch.total)} WILL GO", "bold"))
    for row in rows:
        line = f"  {row.item:<22}{row.bytes / GIB:>9.2f}  {bar(row.bytes, most, 16, blocks=sheet.blocks):<16}  "
        _noted(line, "estimate" if row.item in _ESTIMATED else row.note, sheet)
    sheet.gap()


def _noted(line: str, note: str, sheet: Sheet) -> None:
    """``line`` with ``note`` behind it, in as many lines as it needs; below it where too little room is left."""
    if not note or sheet.width - len(line) >= _ROOM:
        sheet.text(note, len(line), "dim", first=(line, ""))
    else:
        sheet.add(line)
        sheet.text(note, 10, "dim")


def _findings(judgement: Judgement, sheet: Sheet) -> None:
    if not judgement.findings:
        sheet.add(("RULES", "bold"), "     nothing to say against this launch")
        sheet.gap()
        return
    sheet.add(("RULES", "bold"), f"     {several(len(judgement.findings), 'finding')} before the fact")
    for finding in judgement.findings:
        cost = f", {finding.lost_tokens:,.0f} tokens" if finding.lost_tokens else ""
        follows = f", follows from {finding.explained_by}" if finding.explained_by else ""
        sheet.text(f"{finding.title} ({finding.severity}, {finding.cause}{cost}{follows})", 10,
                   first=(f"  {finding.rule}", SEVERITIES.get(finding.severity, "")))  # fmt: skip
        if finding.explained_by:
            continue
        sheet.text(finding.summary, 10)
        if finding.fix:
            sheet.text(f"Fix: {finding.fix}", 10, "green")
    sheet.gap()


def _basis(found: Forecast, sheet: Sheet) -> None:
    sheet.add(("ESTIMATED", "bold"), " (give --like LOG of the same set-up to replace these)")
    for estimate in found.estimates:
        spread = f"{estimate.low / GIB:.2f} .. {estimate.high / GIB:.2f}"
        _noted(f"  {estimate.name:<11}{estimate.value / GIB:>7.2f} GiB  ({spread})  ", estimate.basis, sheet)
    for note in found.notes:
        sheet.text(note, 2)
    if found.launch.other:
        sheet.text(f"Without effect here: {' '.join(found.launch.other)}", 2, "dim")


def write_answer(answer: Answer | None, target: Target, sheet: Sheet) -> None:
    """Puts the result of a search for ``target`` on ``sheet``."""
    wanted = f"{several(target.concurrency, 'request')} of {target.context:,} tokens"
    sheet.gap()
    if answer is None:
        tried = "fraction, chunk, KV and state type, ranks"
        sheet.text(f"TARGET    {wanted}: none of the tried changes ({tried}) reaches it in the worst case of the "
                   "estimates.", 0, "bold")  # fmt: skip
        return
    found = answer.found
    changes = ", ".join(f"{name} = {value}" for name, value in answer.changes.items()) or "nothing has to change"
    sheet.add((f"TARGET    {wanted}: reached", "bold"))
    sheet.text(f"with {changes}: {found.tokens:,.0f} tokens ({found.low:,.0f} .. {found.high:,.0f}), "
               f"{found.running:,.0f} running", 10)  # fmt: skip
    sheet.text(answer.command, 10, "green")
    if beyond := beyond_model(found):
        sheet.text(beyond, 10, "yellow")
