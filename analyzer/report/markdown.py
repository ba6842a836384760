"""The report as Markdown for an issue tracker: renders on GitHub and GitLab, and reads as plain text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from analyzer.report import view
from analyzer.report.charts import charts_of, figure
from analyzer.report.model import Evidence, Finding, Report, RunReport
from analyzer.report.overview import listed
from analyzer.report.sheet import bar, clip
from analyzer.report.titles import ledger_title
from analyzer.units import GIB

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>|~&$])")
_START = re.compile(r"^(?=#)|^(?=[-+=]+(?:\s|$))|(?<=^\d)(?=[.)]\s)|(?<=^\d\d)(?=[.)]\s)")
"""Where a line would begin a heading, a list or a rule."""
_LINKED = re.compile(r"(?<=@)(?=\w)|(?<=#)(?=\d)|(?<=:)(?=//)|(?<=\bwww)(?=\.)", re.IGNORECASE)
"""Where a tracker would make a link or notify somebody of it."""
BAR = 24
PROOFS = 8


def to_markdown(report: Report) -> str:
    """``report`` as Markdown text."""
    parts = [_head(report)]
    if not report.runs:
        parts.append("Nothing in the input was recognised as the output of an SGLang or vLLM server.")
    if len(report.runs) > 1:
        parts.append(_table(report))
    parts += [_run(run, alone=len(report.runs) == 1) for run in report.runs]
    parts += [plain(note) for note in report.notes]
    tool = f"{report.tool.get('name', 'kvautopsy')} {report.tool.get('version', '')}".strip()
    parts.append(f"<sub>{plain(tool)}. Sizes are GiB; l. N is a line of the log.</sub>")
    return "\n\n".join(part for part in parts if part) + "\n"


def plain(text: str) -> str:
    """``text`` in a way that Markdown shows it letter by letter: no markup, link, mention or HTML comes of it."""
    text = _START.sub(r"\\", _SPECIAL.sub(r"\\\1", " ".join(text.split())))
    return _LINKED.sub("\u200b", text)


def code(text: str) -> str:
    """``text`` as a code span, whatever backticks it holds."""
    text = " ".join(text.split()) or " "
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def block(lines: Iterable[str]) -> str:
    """``lines`` as a fenced block, whatever backticks they hold."""
    body = "\n".join(lines)
    longest = max((len(run) for run in re.findall(r"`+", body)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{body}\n{fence}"


def _head(report: Report) -> str:
    shown, rest = listed(report.inputs)
    rows = [f"{code(i.source)}: {i.counts}" for i in shown] + [rest] * bool(rest)
    return "\n".join(f"- {row}" for row in rows) if len(rows) > 1 else "".join(rows)


def _table(report: Report) -> str:
    head = "| run | outcome | engine | pool or failure | causes | lines |\n| --: | --- | --- | --- | --- | --- |"
    rows = []
    for run in report.runs:
        causes = ", ".join(dict.fromkeys(f.cause for f in run.findings if f.severity != "info"))
        lines = f"{run.source} {run.first_line}-{run.last_line}"
        texts = (str(run.id), run.outcome, view.engine_of(run), view.headline(run), causes, lines)
        rows.append("| " + " | ".join(plain(text) for text in texts) + " |")
    return f"**{plain(view.counted(report))}**\n\n{head}\n" + "\n".join(rows)


def _run(run: RunReport, *, alone: bool) -> str:
    title = view.engine_of(run) if alone else f"Run {run.id}: {view.engine_of(run)}"
    about = [
        view.model_of(run),
        view.ranks_said(run),
        f"lines {run.first_line} to {run.last_line}",
    ]
    blamed = view.blamed(run)
    unknown = [_quote(e, lines, run) for e, lines in view.grouped(run.unknown_scary)]
    parts = [
        f"## {plain(title)}: {plain(run.outcome)}",
        plain(", ".join(a for a in about if a)),
        "> **" + plain(run.verdict or "Nothing can be said of this run.") + "**",
        _failure(run, blamed),
        _figures(run),
        _ledger(run),
        _findings(run, blamed),
        _series(run),
        _chain(run),
        _undecided(run),
        _folded("Lines that no rule knows; nothing shows that they are fatal", unknown),
        _noise(run),
        _arguments(run),
        *[plain(note) for note in run.notes],
    ]
    return "\n\n".join(part for part in parts if part)


def _failure(run: RunReport, blamed: Finding | None) -> str:
    failure = run.failure
    if failure is None:
        return ""
    place = view.place_of_failure(failure, 8)
    head = f"### What failed\n\n**{plain(failure.exception or failure.cause)}** {plain(place)}{_lines(failure.lines)}"
    said = view.message_of(run)
    message = block([line[:300] for line in said.splitlines()[:12]]) if said else ""
    frame = f"at {code(failure.frame)}" if failure.frame else ""
    found = _finding(blamed, run) if blamed else ""
    return "\n\n".join(part for part in (head, message, frame, found) if part)


def _lines(lines: Iterable[int]) -> str:
    text = view.lines_text(lines, 6)
    return f" ({text})" if text else ""


def _figures(run: RunReport) -> str:
    rows = [f"- Pool: {plain(s.text)}{_lines(s.lines)}" for s in view.pool_said(run)]
    if sizing := view.sizing_said(run):
        rows.append(f"- Check: {plain(sizing)}")
    rows += [f"- Limit: {plain(s.text)}{_lines(s.lines)}" for s in view.limits_said(run)]
    return "### Pool and limits\n\n" + "\n".join(rows) if rows else ""


def _ledger(run: RunReport) -> str:
    rows = run.ledger
    if not rows:
        return ""
    label, full = max(len(row.item) for row in rows), max(row.bytes for row in rows)
    lines = []
    for row in rows:
        drawn = bar(row.bytes, full, BAR, freed=row.freed)
        tail = "  ".join(t for t in (row.note, view.lines_text(row.lines)) if t)
        lines.append(f"{row.item:<{label}} {row.bytes / GIB:8.2f}  {drawn:<{BAR}}  {tail}".rstrip())
    rank = f" ({who})" if (who := view.rank_said(run)) else ""
    return f"### {ledger_title(run)}{plain(rank)}\n\n" + block(lines)


def _findings(run: RunReport, blamed: Finding | None) -> str:
    findings = [f for f in view.main_findings(run) if f is not blamed]
    if not findings:
        return ""
    gap = view.gap_of(run)
    parts = [f"### {'Why' if blamed is None else 'Also'}", *[_finding(f, run) for f in findings]]
    if run.unexplained_tokens is not None and gap:
        parts.append(f"Not explained by any of these: {run.unexplained_tokens:,.0f} tokens.")
    if steps := view.what_if(run):
        parts.append("**What if:** " + plain(steps))
    return "\n\n".join(parts)


def _finding(finding: Finding, run: RunReport) -> str:
    cost = ""
    if finding.lost_tokens:
        cost = f": **{finding.lost_tokens:,.0f} tokens**" + view.share_said(run, finding)
    tags = [plain(finding.severity), plain(finding.confidence), code(finding.cause)]
    if finding.explained_by:
        tags.append(f"follows from {code(finding.explained_by)}")
    parts = [
        f"**{plain(finding.rule)}** {plain(finding.title)}{cost}",
        ", ".join(t for t in tags if t),
        plain(finding.summary),
    ]
    if finding.note:
        parts.append(f"({plain(finding.note)})")
    if finding.evidence:
        telling, rest = view.proofs_of(finding)
        parts.append(block(_quote(e, lines, run) for e, lines in [*telling, *rest][:PROOFS]))
    if finding.fix:
        parts.append(f"**Fix:** {plain(finding.fix)}")
    parts += [f"See <{url}>" for url in finding.see if re.fullmatch(r"https?://[^\s<>]{3,300}", url)]
    return "\n\n".join(part for part in parts if part)


def _quote(proof: Evidence, lines: Sequence[int], run: RunReport) -> str:
    return f"{view.place_of(proof, lines, run)}  {clip(proof.text, 200)}"


def _series(run: RunReport) -> str:
    rows = ["| metric | low | mean | high | last |", "| --- | --: | --: | --: | --: |"]
    for chart in charts_of(run):
        figures = [figure(v, chart.unit) for v in (chart.low, chart.mean, chart.high, chart.last)]
        rows.append(f"| {plain(chart.label)} | " + " | ".join(figures) + " |")
    return "### While serving\n\n" + "\n".join(rows) if len(rows) > 2 else ""


def _chain(run: RunReport) -> str:
    if not run.chain:
        return ""
    rows = [f"| {plain(link.name)} | {_state(link.state)} | {plain(link.text)} |" for link in run.chain]
    return "### Probed\n\n| link | state | what was seen |\n| --- | --- | --- |\n" + "\n".join(rows)


def _state(state: str) -> str:
    return f"**{plain(state)}**" if state == "broken" else plain(state)


def _undecided(run: RunReport) -> str:
    answerable, others = view.undecided_parts(run)
    rows = [f"- **{plain(u.rule)}** {plain(u.title)}: {plain(u.how)}" for u in answerable]
    if others:
        rows.append(f"- {view.rules_need(others)} lines that this log does not hold")
    return "### Not decided\n\n" + "\n".join(rows) if rows else ""


def _noise(run: RunReport) -> str:
    title = f"{len(run.benign)} lines that look like errors and are not"
    return _folded(title, [f"l. {b.line}  {clip(b.text, 120)}  ({b.rule}: {b.why})" for b in run.benign])


def _arguments(run: RunReport) -> str:
    arguments = view.arguments_of(run)
    return _folded(f"{len(arguments)} launch arguments", [f"{name} = {clip(value, 200)}" for name, value in arguments])


def _folded(title: str, lines: Sequence[str]) -> str:
    if not lines:
        return ""
    return f"<details><summary>{plain(title)}</summary>\n\n{block(lines)}\n\n</details>"
