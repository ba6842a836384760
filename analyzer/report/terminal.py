"""The page for a terminal, a pipe or a text file: verdict first, then where the memory went, why, and what to do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from analyzer.report import styles, view
from analyzer.report.charts import charts_of, figure
from analyzer.report.model import Evidence, Finding, Report, RunReport
from analyzer.report.overview import write_inputs, write_table
from analyzer.report.sheet import Piece, Sheet, bar, cells, clip, clip_path, fitted, sparkline, wrap
from analyzer.report.titles import ledger_title
from analyzer.units import GIB

if TYPE_CHECKING:
    from rich.console import Console

MAX_WIDTH = 110
PROOFS = 4
QUOTED = 3
"""Rows of one quote."""
MESSAGE_ROWS = 6
"""Rows of a failure's message that no finding quotes."""
UNKNOWN = 6
CHOICES = 5
"""Findings that are mere information, more of which are only counted."""
MARGIN = 10
SPARKS = 8
"""Fewer points than this are figures, not a curve."""


def to_terminal(report: Report, console: Console, *, noise: bool = False) -> None:
    """Prints ``report`` on ``console``. ``noise`` lists the harmless lines instead of counting them."""
    encoding = (console.encoding or "").lower().replace("-", "")
    sheet = Sheet(max(40, min(console.width, MAX_WIDTH)), blocks=encoding.startswith("utf"))
    write(report, sheet, noise=noise)
    sheet.print(console)


def write(report: Report, sheet: Sheet, *, noise: bool = False) -> None:
    """Lays ``report`` out on ``sheet``."""
    write_inputs(report, sheet)
    if not report.runs:
        sheet.gap()
        sheet.text("Nothing in the input was recognised as the output of an SGLang or vLLM server.", 2, "bold")
    if len(report.runs) > 1:
        write_table(report, sheet)
    told: dict[tuple[str, str], int] = {}
    for run in report.runs:
        sheet.gap()
        if len(report.runs) > 1:
            lines = f"lines {run.first_line}-{run.last_line}"
            name = clip_path(run.source, sheet.width - len(lines) - 12)
            sheet.add((f"RUN {run.id}   {name}   {lines}", "bold reverse"))
        first = told.setdefault((run.outcome, run.verdict), run.id)
        if run.failure and first != run.id:
            _again(run, first, sheet)
        else:
            _run(run, sheet, noise=noise)
    for note in report.notes:
        sheet.gap()
        sheet.text(note, 2, "dim", first=("* ", "dim"))


def _run(run: RunReport, sheet: Sheet, *, noise: bool) -> None:
    parts = [view.engine_of(run), view.model_of(run), view.ranks_said(run)]
    parts = [part for part in parts if part]
    if cells(line := "   ".join(parts)) <= sheet.width:
        sheet.add(line)
    else:
        sheet.text(parts[0])
        sheet.text(", ".join(parts[1:]))
    where = view.lines_text([e.line for e in run.outcome_basis], 3)
    sheet.ends([(run.outcome, styles.OUTCOMES.get(run.outcome, "bold"))], [(where, "dim")] if where else [])
    sheet.gap()
    sheet.text(run.verdict or "Nothing can be said of this run.", 2, "bold")
    sheet.gap()
    blamed = _failure(run, sheet)
    _pool(run, sheet)
    _ledger(run, sheet)
    _why(run, sheet, blamed)
    _series(run, sheet)
    _chain(run, sheet)
    _undecided(run, sheet)
    _unknown(run, sheet)
    _noise(run, sheet, noise=noise)
    for note in run.notes:
        sheet.gap()
        sheet.text(note, 2, "dim", first=("* ", "dim"))


def _chain(run: RunReport, sheet: Sheet) -> None:
    """What the running server said for itself when it was probed."""
    if not run.chain:
        return
    sheet.gap()
    sheet.add(("PROBED", "bold"))
    colours = {"ok": "green", "broken": "bold red"}
    for link in run.chain:
        first = (f"  {link.name:<17}{link.state:<9}", colours.get(link.state, "dim"))
        sheet.text(link.text, cells(first[0]), first=first)
    sheet.gap()


def _again(run: RunReport, first: int, sheet: Sheet) -> None:
    """A run of a restart loop that failed as an earlier one did: said in a few lines."""
    where = view.lines_text(run.failure.lines) if run.failure else ""
    sheet.ends([(run.outcome, styles.OUTCOMES.get(run.outcome, "bold"))], [(where, "dim")] if where else [])
    sheet.gap()
    sheet.text(f"As run {first}: {run.verdict}", 2)
    for note in run.notes:
        sheet.gap()
        sheet.text(note, 2, "dim", first=("* ", "dim"))


def _failure(run: RunReport, sheet: Sheet) -> Finding | None:
    """What died and why; returns the finding that says so, which WHY then leaves out."""
    failure = run.failure
    if failure is None:
        return None
    sheet.add(("WHAT FAILED", "bold red"))
    place = view.place_of_failure(failure, 2)
    head, lines = clip(failure.exception or failure.cause, sheet.width - 24), view.lines_text(failure.lines)
    room = max(sheet.width - cells(head) - cells(lines) - 7, 20)
    left: list[Piece] = [("  " + head, "bold"), (f"   {clip(place, room)}" if place else "", "dim")]
    sheet.ends(left, [(lines, "dim")])
    for row in fitted(view.message_of(run), sheet.width - 4, MESSAGE_ROWS):
        sheet.add("    ", row)
    if failure.frame:
        sheet.text(f"at {failure.frame}", 4, "dim")
    finding = view.blamed(run)
    if finding is not None:
        sheet.gap()
        _finding(finding, sheet, "", run)
    sheet.gap()
    return finding


def _pool(run: RunReport, sheet: Sheet) -> None:
    _said(sheet, "POOL", view.pool_said(run))
    if sizing := view.sizing_said(run):
        sheet.text(sizing, MARGIN, "dim")
    _said(sheet, "LIMITS", view.limits_said(run))
    sheet.gap()


def _said(sheet: Sheet, title: str, said: Sequence[view.Said]) -> None:
    """Statements on as few lines as they need, their line numbers at the right."""
    first = title
    row: list[view.Said] = []
    room = sheet.width - MARGIN - 19

    def flush() -> None:
        nonlocal first
        if row:
            text = "   ".join(s.text for s in row)
            lines = view.lines_text([n for s in row for n in s.lines])
            *above, last = [text] if cells(text) <= sheet.width - MARGIN else wrap(text, sheet.width - MARGIN)
            for part in above:
                sheet.add((f"{first:<{MARGIN}}", "bold"), part)
                first = ""
            sheet.ends([(f"{first:<{MARGIN}}", "bold"), (last, "")], [(lines, "dim")] if lines else [])
            first = ""
            row.clear()

    for one in said:
        if row and sum(cells(s.text) + 3 for s in row) + cells(one.text) > room:
            flush()
        row.append(one)
    flush()


def _ledger(run: RunReport, sheet: Sheet) -> None:
    rows = run.ledger
    if not rows:
        return
    rank = f" ({who})" if (who := view.rank_said(run)) else ""
    title = ledger_title(run).upper().replace("GIB", "GiB")
    sheet.add((title, "bold"), (rank, "dim"))
    label = min(max(cells(row.item) for row in rows), 28)
    width = max(10, min(26, (sheet.width - label - 14) // 2))
    full = max(row.bytes for row in rows)
    styles = {"kept": "dim", "unused": "yellow", "outside": "dim", "unknown": "magenta"}
    for row in rows:
        drawn = bar(row.bytes, full, width, blocks=sheet.blocks, freed=row.freed)
        left: list[Piece] = [
            (f"  {clip(row.item, label):<{label}} {row.bytes / GIB:8.2f}  ", ""),
            (drawn, styles.get(row.kind, "cyan")),
        ]
        used = label + 13 + cells(drawn)
        lines = view.lines_text(row.lines)
        start = label + 13 + width + 2
        if not row.note:
            sheet.ends(left, [(lines, "dim")])
        elif start + cells(row.note) + 2 + len(lines) <= sheet.width:
            sheet.ends([*left, (" " * (start - used) + row.note, "dim")], [(lines, "dim")])
        elif used + 2 + cells(row.note) + 2 + len(lines) <= sheet.width:
            sheet.ends([*left, ("  " + row.note, "dim")], [(lines, "dim")])
        else:
            sheet.ends(left, [(lines, "dim")])
            sheet.text(row.note, label + 13, "dim")
    sheet.gap()


def _why(run: RunReport, sheet: Sheet, blamed: Finding | None) -> None:
    findings = [f for f in view.main_findings(run) if f is not blamed]
    if not findings:
        return
    gap = view.gap_of(run)
    priced = any(f.lost_tokens for f in findings)
    choices = [f for f in findings if f.severity == "info"][CHOICES:]
    findings = [f for f in findings if not any(f is choice for choice in choices)]
    title = "WHY" if blamed is None else "ALSO"
    heads = "tokens   of the gap" if gap else f"{'tokens':>10}{'':13}"
    sheet.ends([(title, "bold")], [(heads, "dim")] if priced else [])
    for number, finding in enumerate(findings, 1):
        if number > 1:
            sheet.gap()
        _finding(finding, sheet, str(number), run)
    if choices:
        sheet.gap()
        names = ", ".join(f.rule for f in choices)
        sheet.text(f"and {len(choices)} more for information: {names} (-o report.html shows them)", 5, "dim")
    rest = run.unexplained_tokens
    if gap and rest is not None:
        sheet.gap()
        share = view.share_text(rest, gap) if rest > 0 else ""
        sheet.ends([("     not explained by any of these", "dim")], [(f"{rest:>10,.0f}   {share:>10}", "dim")])
    if steps := view.what_if(run):
        sheet.gap()
        sheet.text(steps, MARGIN, first=("WHAT IF", "bold"))
    sheet.gap()


def _finding(finding: Finding, sheet: Sheet, number: str, run: RunReport) -> None:
    style = styles.SEVERITIES.get(finding.severity, "")
    head: list[Piece] = [(f"{number:>3}  ", "dim"), (finding.rule, style), ("  ", "")]
    tail: list[Piece] = []
    if finding.lost_tokens:
        tail = [(f"{finding.lost_tokens:>10,.0f}   {view.share_of(run, finding):>10}", "bold")]
    used, need = cells(finding.rule) + 7, sum(cells(t) for t, _ in tail)
    titles = list(_wrapped(finding.title, sheet.width - used - need - 2))
    sheet.ends([*head, (titles[0], "bold")], tail)
    for more in titles[1:]:
        sheet.add(" " * used, (more, "bold"))
    words = [finding.severity, finding.confidence, finding.cause]
    if finding.explained_by:
        words.append(f"follows from {finding.explained_by}")
    if finding.lost_bytes and not finding.lost_tokens:
        words.append(f"{finding.lost_bytes / GIB:.2f} GiB")
    left = [("     ", ""), (", ".join(w for w in words if w), style if finding.severity == "critical" else "dim")]
    quoted = finding.severity != "info" and not finding.explained_by
    lines = "" if quoted else view.lines_text([e.line for e in finding.evidence])
    sheet.ends(left, [(lines, "dim")] if lines else [])
    if finding.summary:
        sheet.text(finding.summary, 5)
    if finding.note:
        sheet.text(f"({finding.note})", 5, "dim")
    if finding.explained_by:
        return  # one story: the finding that it follows from has the proof and the fix
    if finding.severity != "info":
        _proofs(finding, sheet, run)
    if finding.fix:
        sheet.text(finding.fix, 10, "green", first=("     Fix: ", "bold green"))
    for link in finding.see[:3]:
        sheet.text(link, 10, "dim", first=("     See: ", "dim"))


def _wrapped(text: str, width: int) -> list[str]:
    return list(wrap(text, max(width, 20))) or [""]


def _proofs(finding: Finding, sheet: Sheet, run: RunReport) -> None:
    """The lines that prove ``finding``, quoted; dumps of arguments and what is too much are named by number."""
    telling, rest = view.proofs_of(finding)
    for proof, lines in telling[:PROOFS]:
        _proof(proof, lines, sheet, run)
    rest = [*telling[PROOFS:], *rest]
    if lines_left := view.lines_text([n for _, lines in rest for n in lines], 8):
        sheet.add("     ", (f"and {lines_left}", "dim"))
    elif rest:
        sheet.add("     ", (f"and {', '.join(dict.fromkeys(proof.source for proof, _ in rest))}", "dim"))


def _proof(proof: Evidence, lines: Sequence[int], sheet: Sheet, run: RunReport) -> None:
    """One quote: its lines, its source where that is another one, and some rows of its text."""
    place = clip_path(view.place_of(proof, lines, run), max(12, sheet.width // 2))
    quote = "│" if sheet.blocks else "|"
    head = f"     {quote} {place}  "
    room = max(sheet.width - cells(head), 20)
    text = " ".join(proof.text.split())
    rows = fitted(text, room, 1 if view.is_dump(text) else QUOTED)
    sheet.add((head, "dim"), (rows[0], "italic"))
    for more in rows[1:]:
        sheet.add((f"     {quote}{' ' * (cells(head) - 6)}", "dim"), (more, "italic"))


def _series(run: RunReport, sheet: Sheet) -> None:
    charts = charts_of(run)
    if not charts:
        return
    count = run.series.get("samples")
    lines = f"   {count:,} runtime line{'s' * (count > 1)}" if isinstance(count, int) else ""
    sheet.add(("WHILE SERVING", "bold"), (lines, "dim"))
    width = min(40, sheet.width - 48)
    for chart in charts:
        drawn = (
            sparkline(chart.values, max(width, 12), blocks=sheet.blocks, low=1.0 if chart.unit == "ratio" else 0.0)
            if len(chart.values) >= SPARKS
            else ""
        )
        low, high, last = (figure(v, chart.unit) for v in (chart.low, chart.high, chart.last))
        span, end = (f"{low} .. {high}", f", last {last}") if low != high else (low, "")
        sheet.add(f"  {chart.label:<14}", (f"{drawn:<{max(width, 12)}}  " if drawn else "", "cyan"), span, (end, "dim"))
    retractions = run.series.get("retractions")
    if isinstance(retractions, dict):
        sheet.add(f"  {retractions.get('requests', 0):,.0f} requests retracted or preempted")
    sheet.gap()


def _undecided(run: RunReport, sheet: Sheet) -> None:
    if not run.undecided:
        return
    answerable, others = view.undecided_parts(run)
    head = "NOT DECIDED"
    if answerable:
        sheet.add((head, "bold"))
    for row in answerable:
        what = row.title or "needs " + ", ".join(row.needs)
        sheet.text(f"{what}: {row.how}", MARGIN, first=(f"  {row.rule}  ", "dim"))
    if others:
        more = ("more " if answerable else "") + ("rules need" if others > 1 else "rule needs")
        text = f"{others} {more} lines that this log does not hold"
        sheet.text(text, MARGIN if answerable else 13, "dim", first=None if answerable else (head, "bold"))
    sheet.gap()


def _unknown(run: RunReport, sheet: Sheet) -> None:
    if not run.unknown_scary:
        return
    sheet.add(("NOT KNOWN", "bold"), ("   alarming lines that no rule knows; nothing shows that they are fatal", "dim"))
    groups = view.grouped(run.unknown_scary)
    for proof, lines in groups[:UNKNOWN]:
        _proof(proof, lines, sheet, run)
    if len(groups) > UNKNOWN:
        sheet.add("     ", (f"and {len(groups) - UNKNOWN} more", "dim"))
    sheet.gap()


def _noise(run: RunReport, sheet: Sheet, *, noise: bool) -> None:
    if not run.benign:
        return
    if not noise:
        plural = (
            "lines that look like errors and are" if len(run.benign) > 1 else "line that looks like an error and is"
        )
        hint = "--noise lists them" if len(run.benign) > 1 else "--noise shows it"
        sheet.text(f"{len(run.benign)} {plural} not ({hint})", MARGIN, "dim", first=("NOISE", "bold"))
        return
    sheet.add(("NOISE", "bold"), ("   lines that look like errors and are not", "dim"))
    for row in run.benign:
        _proof(Evidence(row.source or run.source, row.line, row.text or "(not kept)"), [row.line], sheet, run)
        sheet.text(f"{row.rule}: {row.why}", 7, "dim")
