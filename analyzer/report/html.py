"""The report as one self-contained page: works offline, prints, reads without script, escapes everything."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence

from analyzer.report import view
from analyzer.report.charts import charts_of
from analyzer.report.html_charts import series, waterfall
from analyzer.report.markup import Html, asset, el, join, page
from analyzer.report.model import Evidence, Finding, InputSummary, Report, RunReport, UndecidedRow
from analyzer.report.overview import listed, name_of
from analyzer.report.titles import ledger_title
from analyzer.units import GIB, show

_FLAG = re.compile(r"(?<![\w-])(--[a-z][\w-]{0,39}(?![\w-]))")
"""An engine's flag in a sentence; one that would not fit a telephone's screen may be broken."""
_OUTCOMES = {
    "serving": "good", "stopped": "good", "degraded": "warn", "crashed at startup": "bad", "crashed at runtime": "bad",
}  # fmt: skip
PRINTED = 40
"""More launch arguments than this stay folded on paper: a full dump takes pages."""
_STATES = {"ok": "good", "broken": "bad"}
_SEVERITIES = {"critical": "bad", "warning": "warn", "info": "info"}


def to_html(report: Report) -> str:
    """``report`` as the text of one HTML page."""
    name = name_of(report.inputs)
    inputs, rest = listed(report.inputs)
    runs = [_run(run, alone=len(report.runs) == 1) for run in report.runs]
    if not runs:
        runs = [el("p", "Nothing in the input was recognised as the output of an SGLang or vLLM server.")]
    tool = f"{report.tool.get('name', 'kvautopsy')} {report.tool.get('version', '')}".strip()
    body = join(
        el(
            "header",
            el("h1", name),
            *[_input(item, len(report.inputs) > 1) for item in inputs],
            el("span", rest, class_="soft") if rest else None,
            class_="top",
        ),
        _table(report) if len(report.runs) > 1 else None,
        el("main", *runs),
        _list("Notes", report.notes),
        el(
            "footer",
            f"Made by {tool}. Sizes are GiB (1024\u00b3 bytes). Every figure names the lines it was read from.",
        ),
    )
    return page(f"{name}: {tool}", body, styles=asset("page.css"), script=asset("page.js"))


def _input(item: InputSummary, named: bool) -> Html:
    name = f"{item.source}: " if named else ""
    return el("span", name + item.counts + (f" ({item.note})" if item.note else ""), class_="soft")


def _table(report: Report) -> Html:
    rows = [
        el(
            "tr",
            el("td", el("a", str(run.id), href=f"#run-{run.id}")),
            el("td", el("span", run.outcome, class_=_OUTCOMES.get(run.outcome, "soft"))),
            el("td", view.engine_of(run)),
            el("td", view.headline(run)),
            el("td", ", ".join(dict.fromkeys(f.cause for f in run.findings if f.severity != "info"))),
            el("td", f"{run.source} {run.first_line}-{run.last_line}", class_="soft"),
        )
        for run in report.runs
    ]
    head = el(
        "tr", *[el("th", t, scope="col") for t in ("run", "outcome", "engine", "pool or failure", "causes", "lines")]
    )
    return el(
        "nav", el("h3", view.counted(report)), el("table", el("thead", head), el("tbody", *rows)), aria_label="Runs"
    )


def _run(run: RunReport, *, alone: bool) -> Html:
    title = view.engine_of(run) if alone else f"Run {run.id}: {view.engine_of(run)}"
    about = [view.model_of(run), view.ranks_said(run)]
    blamed = view.blamed(run)
    return el(
        "article",
        el("h2", title, " ", el("span", run.outcome, class_=f"badge {_OUTCOMES.get(run.outcome, 'soft')}")),
        el("p", ", ".join(a for a in about if a), class_="soft"),
        el(
            "p",
            run.verdict or "Nothing can be said of this run.",
            class_="verdict failed" if run.failure else "verdict",
        ),
        _failure(run, blamed),
        _figures(run),
        _ledger(run),
        _findings(run, blamed),
        _charts(run),
        _chain(run),
        _missing(run),
        _unknown(run),
        _details(run),
        _list("Notes", run.notes),
        class_="run",
        id=f"run-{run.id}",
    )


def _section(title: str, *children: Html | None) -> Html:
    return el("section", el("h3", title), *children)


def _list(title: str, items: Sequence[str]) -> Html | None:
    return _section(title, el("ul", *[el("li", item) for item in items])) if items else None


def _failure(run: RunReport, blamed: Finding | None) -> Html | None:
    failure = run.failure
    if failure is None:
        return None
    message = view.message_of(run)
    place = view.place_of_failure(failure, 8)
    return _section(
        "What failed",
        el("p", el("b", failure.exception or failure.cause), f"  {place}", "  ", _lines(failure.lines)),
        el("p", message[:2000], class_="mono") if message else None,
        el("p", f"at {failure.frame}", class_="soft mono") if failure.frame else None,
        _finding(blamed, run) if blamed else el("p", f"Cause: {failure.cause}"),
    )


def _lines(lines: Iterable[int]) -> Html:
    return el("span", view.lines_text(lines, 8), class_="lines")


def _figures(run: RunReport) -> Html | None:
    cards = []
    for title, said in (("KV pool", view.pool_said(run)), ("Limits", view.limits_said(run))):
        if said:
            lines = [
                el("dd", s.text, " ", _lines(s.lines), class_="big" if i == 0 else None) for i, s in enumerate(said)
            ]
            cards.append(el("div", el("dt", title), *lines))
    if run.sizing is not None:
        row = run.sizing
        what = f"{row.predicted_tokens:,.0f}" if row.predicted_tokens is not None else "no figure"
        steps = (
            el("details", el("summary", "the calculation"), el("pre", "\n".join(row.steps)), class_="printed")
            if row.steps
            else None
        )
        cards.append(
            el(
                "div",
                el("dt", "Sizing model"),
                el("dd", what + (" tokens predicted" if row.predicted_tokens is not None else ""), class_="big"),
                el("dd", view.sizing_said(run), class_="soft"),
                el("dd", steps) if steps else None,
            )
        )
    return el("section", el("h3", "Pool and limits"), el("dl", *cards, class_="figures")) if cards else None


def _ledger(run: RunReport) -> Html | None:
    if not run.ledger:
        return None
    rank = f" ({who})" if (who := view.rank_said(run)) else ""
    return _section(f"{ledger_title(run)}{rank}", waterfall(run.ledger))


def _findings(run: RunReport, blamed: Finding | None) -> Html | None:
    findings = [f for f in view.main_findings(run) if f is not blamed]
    if not findings:
        return None
    gap = view.gap_of(run)
    rest = run.unexplained_tokens
    steps = view.what_if(run)
    return _section(
        "Why" if blamed is None else "Also",
        *[_finding(f, run) for f in findings],
        el("p", f"Not explained by any of these: {rest:,.0f} tokens.", class_="soft")
        if rest is not None and gap
        else None,
        el("p", el("b", "What if: "), steps) if steps else None,
    )


def _finding(finding: Finding, run: RunReport) -> Html:
    cost = None
    if finding.lost_tokens:
        cost = el(
            "span", el("strong", f"{finding.lost_tokens:,.0f}"), " tokens" + view.share_said(run, finding),
            class_="cost",
        )  # fmt: skip
    elif finding.lost_bytes:
        cost = el("span", f"{finding.lost_bytes / GIB:.2f} GiB", class_="cost")
    tags = [finding.rule, finding.confidence, finding.cause]
    if finding.explained_by:
        tags.append(f"follows from {finding.explained_by}")
    severity = _SEVERITIES.get(finding.severity, "info")
    kind = finding.severity if finding.severity in _SEVERITIES else "info"
    return el(
        "div",
        el("div", el("h4", finding.title), cost, class_="head"),
        el("p", el("span", finding.severity, class_=severity), ", " + ", ".join(t for t in tags if t), class_="tags"),
        el("p", finding.summary) if finding.summary else None,
        el("p", f"({finding.note})", class_="tags") if finding.note else None,
        *[_proof(e, lines, run) for e, lines in itertools.chain(*view.proofs_of(finding))],
        el("p", el("b", "Fix: "), _unbroken(finding.fix), class_="fix") if finding.fix else None,
        *[_link(url) for url in finding.see],
        class_=f"finding is-{kind}" + (" follows" if finding.explained_by else ""),
    )


def _unbroken(text: str) -> Html:
    """``text`` in which no line ends between the hyphens of an engine's flag."""
    parts = _FLAG.split(text)
    return join(*(el("span", part, class_="flag") if n % 2 else part for n, part in enumerate(parts)))


def _link(url: str) -> Html:
    """A link for the two schemes that are safe to follow, else the text."""
    if url.startswith(("https://", "http://")):
        return el("p", el("a", url, href=url, rel="noopener noreferrer nofollow"), class_="tags")
    return el("p", url, class_="tags")


def _proof(proof: Evidence, lines: Sequence[int], run: RunReport) -> Html:
    place = view.place_of(proof, lines, run)
    context = proof.context or [(proof.line, proof.text)]
    rows, before = [], None
    for number, text in context:
        if before is not None and number > before + 1:
            rows.append(el("tr", el("td", "\u22ee", class_="no"), el("td", ""), class_="skip"))
        hit = number == proof.line
        rows.append(
            el(
                "tr",
                el("td", str(number or ""), class_="no"),
                el("td", text, class_="line"),
                class_="hit" if hit else None,
            )
        )
        before = number
    return el(
        "details",
        el("summary", el("span", place + "  ", class_="lines"), el("span", proof.text[:200], class_="quote")),
        el("div", el("table", el("tbody", *rows)), class_="context"),
        class_="proof",
    )


def _charts(run: RunReport) -> Html | None:
    charts = charts_of(run)
    if not charts:
        return None
    count = run.series.get("samples")
    return _section(
        f"While serving ({count:,} runtime lines)" if isinstance(count, int) else "While serving", series(charts)
    )


def _chain(run: RunReport) -> Html | None:
    """What the running server said for itself when it was probed."""
    if not run.chain:
        return None
    rows = [
        el(
            "tr",
            el("th", link.name, scope="row"),
            el("td", el("b", link.state, class_=_STATES.get(link.state, "soft"))),
            el("td", link.text),
        )
        for link in run.chain
    ]
    head = el("tr", *[el("th", text, scope="col") for text in ("link", "state", "what was seen")])
    note = el("p", "A link that holds proves nothing of the next one.", class_="soft")
    return _section("Probed", el("table", el("thead", head), el("tbody", *rows), class_="chain"), note)


def _missing(run: RunReport) -> Html | None:
    if not run.undecided:
        return None
    answerable, others = view.undecided_parts(run)
    table = _undecided_table(answerable) if answerable else None
    rest = [u for u in run.undecided if not u.how]
    summary = el("summary", f"{view.rules_need(others)} lines that this log does not hold")
    folded = el("details", summary, _undecided_table(rest)) if rest else None
    return _section("Not decided: evidence missing", table, folded)


def _undecided_table(rows: Sequence[UndecidedRow]) -> Html:
    body = [
        el(
            "tr",
            el("th", u.rule, scope="row"),
            el("td", u.title),
            el("td", ", ".join(u.needs), class_="mono"),
            el("td", u.how),
        )
        for u in rows
    ]
    head = el("tr", *[el("th", t, scope="col") for t in ("rule", "question", "needs", "how to supply it")])
    return el("table", el("thead", head), el("tbody", *body))


def _unknown(run: RunReport) -> Html | None:
    if not run.unknown_scary:
        return None
    note = el("p", "Alarming lines that no rule knows. Nothing shows that they are fatal.", class_="soft")
    return _section("Not known", note, *[_proof(e, lines, run) for e, lines in view.grouped(run.unknown_scary)[:50]])


def _details(run: RunReport) -> Html | None:
    """What is folded away: noise, launch arguments, every fact."""
    folded = []
    if run.benign:
        rows = [
            el(
                "tr",
                el("td", str(b.line), class_="num"),
                el("td", b.text, class_="mono"),
                el("td", f"{b.rule}: {b.why}"),
            )
            for b in run.benign
        ]
        title = f"{len(run.benign)} lines that look like errors and are not"
        folded.append(_folded(title, ("line", "text", "why it is harmless"), rows))
    if arguments := view.arguments_of(run):
        rows = [el("tr", el("th", name, scope="row"), el("td", value, class_="mono")) for name, value in arguments]
        folded.append(
            _folded(
                f"{len(arguments)} launch arguments", ("argument", "value"), rows, printed=len(arguments) <= PRINTED
            )
        )
    facts = [(name, fact) for name, fact in run.facts.items() if not name.startswith("args.")]
    if facts:
        rows = [
            el(
                "tr",
                el("th", name, scope="row"),
                el("td", show(fact.value, fact.unit), class_="mono"),
                el("td", ", ".join(f"{r} {show(v, fact.unit)}" for r, v in fact.ranks.items() if r), class_="mono"),
                el("td", fact.origin if fact.origin != "log" else view.lines_text(fact.lines), class_="lines"),
            )
            for name, fact in sorted(facts)
        ]
        folded.append(_folded(f"{len(facts)} facts read", ("fact", "value", "ranks", "from"), rows))
    return _section("More", *folded) if folded else None


def _folded(title: str, heads: Sequence[str], rows: Sequence[Html], *, printed: bool = False) -> Html:
    """A folded table; ``printed`` ones are unfolded on paper."""
    head = el("tr", *[el("th", text, scope="col") for text in heads])
    return el(
        "details",
        el("summary", title),
        el("table", el("thead", head), el("tbody", *rows)),
        class_="printed" if printed else None,
    )
