"""What every page shows, worked out once: the formats only lay it out.

Nothing here knows a terminal or a browser; texts are plain, figures are formatted, lines are numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from analyzer.report.ledger import TIGHTNESS
from analyzer.report.model import Evidence, FactRow, FailureRow, Finding, LedgerRow, Report, RunReport, UndecidedRow
from analyzer.run.model import unprefixed
from analyzer.units import GIB, number_or_none, show, show_bytes

DUMP, ASSIGNED = 390, 8
"""Characters and assignments beyond which a proof line is a dump of arguments."""

ENGINES = {"sglang": "SGLang", "vllm": "vLLM"}
_BASIS = {"shapes": "from line shapes", "argument": "from an argument", "banner": ""}


@dataclass(slots=True)
class Said:
    """One statement with the lines that prove it."""

    text: str
    lines: list[int] = field(default_factory=list)


def engine_of(run: RunReport) -> str:
    """``SGLang 0.5.14-0.5.17 (from line shapes)``."""
    name = ENGINES.get(run.engine or "", run.engine or "unknown engine")
    version = version_label(run.version, *(run.version_range or ()))
    if not version:
        return f"{name}, version unknown" if run.engine else name
    basis = _BASIS.get(run.version_basis or "", run.version_basis or "")
    return f"{name} {version}" + (f" ({basis})" if basis else "")


def version_label(version: str | None, low: str = "", high: str = "") -> str | None:
    """``0.5.17``, ``0.5.13-0.5.15`` (a bracket), ``0.5.13 or later``; None if nothing is known."""
    low, high = (end.lstrip("<>=") for end in (low, high))
    if version or not (low or high):
        return version
    if low and high:
        return low if low == high else f"{low}-{high}"
    return f"{low} or later" if low else f"{high} or earlier"


def model_of(run: RunReport) -> str:
    """``Qwen3_5ForCausalLM + draft Qwen3_5ForCausalLMMTP``; the path if the class is not known; ``""`` for neither."""
    target = value_of(run, "model.arch") or value_of(run, "model.path") or ""
    draft = value_of(run, "draft.arch")
    return f"{target} + draft {draft}" if draft else str(target)


def ranks_of(run: RunReport) -> int:
    """How many ranks printed figures of their own, at least 1."""
    return max((len([r for r in fact.ranks if r]) for fact in run.facts.values()), default=0) or 1


def ranks_said(run: RunReport) -> str:
    """``4 ranks``, or ``1 of 4 ranks`` where the arguments name more than printed figures of their own.

    ``""`` where neither an engine nor a rank is named.
    """
    seen = ranks_of(run)
    named = ("tensor", "pipeline", "data") if run.engine == "vllm" else ("tensor", "pipeline")
    sizes = [number_of(run, f"args.{name}_parallel_size") for name in named]
    whole = math.prod(int(size) for size in sizes if size)
    weights = run.facts.get("weights.loaded")
    if weights is not None and "" in weights.ranks and len(weights.ranks) > 1:
        seen = max(seen, len(weights.ranks))  # the driver of V0 prints no name of its own
    if whole > seen and any(rank for fact in run.facts.values() for rank in fact.ranks):
        return f"{seen} of {whole} ranks"
    seen = max(seen, whole)
    if run.engine is None and seen == 1:
        return ""
    return f"{seen} rank{'s' if seen > 1 else ''}"


def rank_said(run: RunReport) -> str:
    """Whose memory the ledger shows, ``""`` where there is one rank only."""
    ranks = ranks_of(run)
    if ranks < 2 or not run.ledger or not run.ledger[0].rank:
        return ""
    differ = any(len(set(map(str, f.ranks.values()))) > 1 for name, f in run.facts.items() if name in TIGHTNESS)
    return f"{run.ledger[0].rank}, " + ("the tightest rank" if differ else f"one of {ranks} alike")


def grouped(evidence: Iterable[Evidence]) -> list[tuple[Evidence, list[int]]]:
    """Proofs with the same text (every rank prints it) once, with all their lines."""
    groups: dict[tuple[str, str], tuple[Evidence, list[int]]] = {}
    for proof in evidence:
        groups.setdefault((proof.source, proof.text), (proof, []))[1].append(proof.line)
    return [(proof, list(dict.fromkeys(lines))) for proof, lines in groups.values()]


def proofs_of(finding: Finding) -> tuple[list[tuple[Evidence, list[int]]], list[tuple[Evidence, list[int]]]]:
    """`grouped`: the proofs that tell something, and those that say little alone (dumps, heads of tracebacks)."""
    groups = grouped(finding.evidence)
    telling = [g for g in groups if not is_dump(g[0].text) and not g[0].text.startswith("Traceback (")] or groups
    return telling, [group for group in groups if not any(group is shown for shown in telling)]


def place_of(proof: Evidence, lines: Sequence[int], run: RunReport) -> str:
    """``l. 91 95``, with the source where it is another one than the run's."""
    said = lines_text(lines, 6)
    if not said:
        return proof.source
    return said if proof.source in ("", run.source) else f"{proof.source} {said}"


def value_of(run: RunReport, name: str) -> Any:
    """The value of fact ``name``, None if the run lacks it."""
    fact = run.facts.get(name)
    return None if fact is None else fact.value


def number_of(run: RunReport, name: str) -> float | None:
    """The value of fact ``name`` if it is a number."""
    return number_or_none(value_of(run, name))


def lines_text(lines: Iterable[int], limit: int = 4) -> str:
    """``l. 33 35``; ``""`` for no lines; more than ``limit`` end in an ellipsis."""
    some = sorted({n for n in lines if n})
    if not some:
        return ""
    return "l. " + " ".join(str(n) for n in some[:limit]) + (" .." if len(some) > limit else "")


def pool_said(run: RunReport) -> list[Said]:
    """What is known of the pool: its size, what stores it, and whether the sizing model reproduces it."""
    facts, said = run.facts, []
    tokens, size = number_of(run, "pool.tokens"), number_of(run, "pool.bytes")
    if tokens is not None:
        said.append(Said(f"{tokens:,.0f} tokens", _lines(facts, "pool.tokens")))
    draft = number_of(run, "draft.pool.bytes")
    if size is not None:
        text = f"{show_bytes(size)} target + {show_bytes(draft)} draft" if draft else show_bytes(size)
        said.append(Said(text, _lines(facts, "pool.bytes", "draft.pool.bytes")))
    elif (size := number_of(run, "pool.available_bytes")) is not None:
        said.append(Said(f"{show_bytes(size)} available for KV", _lines(facts, "pool.available_bytes")))
    stored = number_of(run, "pool.bytes_per_token")
    if stored is not None:
        said.append(Said(_per_token(run, stored), _lines(facts, "pool.bytes_per_token")))
    blocks, block = number_of(run, "pool.blocks"), number_of(run, "pool.block_tokens")
    if blocks is not None:
        text = f"{blocks:,.0f} blocks" + (f" of {block:,.0f} tokens" if block else "")
        said.append(Said(text, _lines(facts, "pool.blocks")))
    return said


def _per_token(run: RunReport, stored: float) -> str:
    """Bytes per token, no more exact than the sizes that it was divided from: those have two decimals of a GiB."""
    size = number_of(run, "pool.bytes") or number_of(run, "pool.available_bytes")
    rounding = 0.01 * GIB / size if size else 0.0
    if (run.facts["pool.bytes_per_token"].origin == "log" and "pool.bytes" not in run.facts) or rounding < 0.002:
        return f"{show(stored, 'bytes_per_token')} per token"
    digits = 2 if rounding < 0.05 else 1
    return f"about {float(f'{stored:.{digits}g}'):,.0f} bytes per token"


def sizing_said(run: RunReport) -> str:
    """Predicted against observed in one sentence, ``""`` if there is no sizing model or nothing to size."""
    row = run.sizing
    if row is None:
        return ""
    if row.predicted_tokens is None:
        more = f" (and {len(row.missing) - 1} more)" if len(row.missing) > 1 else ""
        missing = f"; it lacks {row.missing[0]}{more}" if row.missing else ""
        return f"the sizing model ({row.formula}) gives no figure{missing}" if run.failure is None else ""
    text = f"the sizing model gives {row.predicted_tokens:,.0f}"
    if row.error is not None:
        text += f" ({abs(row.error):.2%} off)".replace("%", " %")
    text += f", {row.formula}" if row.formula else ""
    if row.calibrated:
        text += f"; {', '.join(row.calibrated)} taken from the pool itself, so this is no independent check"
    return text


BOUND = {
    "state-slots": "state slots", "tokens": "the pool", "request": "the launch arguments",
    "default": "the engine's default", "seqs": "max_num_seqs",
}  # fmt: skip


def limits_said(run: RunReport) -> list[Said]:
    """How many requests run at once and why, the context served, and what of it the pool holds."""
    facts, said = run.facts, []
    running, tokens = number_of(run, "limit.running"), number_of(run, "pool.tokens")
    if running is not None:
        bound = str(value_of(run, "limit.bound_by") or "")
        why = f" ({BOUND.get(bound, bound)})" if bound else ""
        said.append(Said(f"{running:,.0f} running{why}", _lines(facts, "limit.running", "limit.bound_by")))
    context = number_of(run, "limit.context")
    if context:
        text = f"context {context:,.0f}"
        if tokens:
            part = context / tokens
            text += f" = {_short(100 * part)} % of the pool" if part <= 1 else f", {_short(part)} times the pool"
        said.append(Said(text, _lines(facts, "limit.context")))
    concurrency = number_of(run, "limit.concurrency")
    if concurrency is not None:
        text = f"{concurrency:,.2f} requests of that length at once"
        said.append(Said(text, _lines(facts, "limit.concurrency")))
    return said


def _short(value: float) -> str:
    """Two digits that count: 0.057, 6.7, 83, 306."""
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def _lines(facts: dict[str, FactRow], *names: str) -> list[int]:
    return list(dict.fromkeys(line for name in names if name in facts for line in facts[name].lines))


def ledger_total(rows: Sequence[LedgerRow]) -> float:
    """What the device had: the rows add up to it once what was freed again is taken off."""
    return sum(row.bytes - row.freed for row in rows)


def place_of_failure(failure: FailureRow, most: int) -> str:
    """Process, at ``most`` so many of its ranks, and stage of a failure; what says the same twice is said once."""
    ranks = [rank for rank in failure.ranks if rank != failure.process]
    process = "" if any(rank.startswith(f"{failure.process} ") for rank in ranks) else failure.process
    more = f"{len(ranks) - most} more" if len(ranks) > most else ""
    return ", ".join(part for part in (process, *ranks[:most], more, failure.stage) if part)


def is_dump(text: str) -> bool:
    """Whether a proof line is a dump of arguments, whose second row says no more than its first."""
    return len(text) > DUMP and text.count("=") + text.count("': ") > ASSIGNED


def message_of(run: RunReport) -> str:
    """The failure's message, unless the finding that names its cause quotes its first line anyway."""
    failure, finding = run.failure, blamed(run)
    if failure is None:
        return ""
    message = unprefixed(failure.message)
    start = " ".join(message.strip().split("\n", 1)[0].split()).rstrip(".: ")[:60]
    return "" if finding is not None and start and start in " ".join(finding.summary.split()) else message


def undecided_parts(run: RunReport) -> tuple[list[UndecidedRow], int]:
    """The open questions that the reader can settle, and how many others there are."""
    answerable = [row for row in run.undecided if row.how]
    return answerable, len(run.undecided) - len(answerable)


def rules_need(count: int) -> str:
    """``1 rule needs`` or ``3 rules need``."""
    return f"{count} rule needs" if count == 1 else f"{count} rules need"


def priced(run: RunReport) -> list[Finding]:
    """The findings that cost tokens, in the order in which they were priced: each on top of those before it."""
    costly = (f for f in run.findings if f.lost_tokens and f.lost_tokens > 0)
    return sorted(costly, key=lambda f: f.pool_if_fixed or 0.0)


def gap_of(run: RunReport) -> float:
    """The tokens that the faults and the unexplained remainder come to; what is a choice and no fault is no gap."""
    faults = sum(f.lost_tokens or 0.0 for f in priced(run) if f.severity != "info")
    return faults + max(0.0, run.unexplained_tokens or 0.0) if faults else 0.0


def share_of(run: RunReport, finding: Finding) -> str:
    """``95 %`` of the gap; ``by choice`` for what is no fault; ``""`` without a cost."""
    if not finding.lost_tokens:
        return ""
    return "by choice" if finding.severity == "info" else share_text(finding.lost_tokens, gap_of(run))


def share_said(run: RunReport, finding: Finding) -> str:
    """`share_of` inside a sentence: ``, 95 % of the gap``."""
    share = share_of(run, finding)
    return f", {share} of the gap" if share.endswith("%") else f", {share}" if share else ""


def share_text(tokens: float, gap: float) -> str:
    """``95 %`` of the gap."""
    if gap <= 0:
        return ""
    share = 100 * tokens / gap
    return f"{share:.0f} %" if share >= 1 else "< 1 %"


def would_hold(run: RunReport) -> tuple[float, bool] | None:
    """The pool without its faults, and whether that is exact; None where no fault that is more than possible costs any.

    It is not exact where a choice was priced before a fault: what one of them costs depends on the other.
    """
    tokens, costly = number_of(run, "pool.tokens"), priced(run)
    faults = [f for f in costly if f.severity != "info" and f.confidence != "possible" and not f.explained_by]
    if tokens is None or not faults:
        return None
    exact = costly[: len(faults)] == faults and faults[-1].pool_if_fixed is not None
    if exact:
        return faults[-1].pool_if_fixed or 0.0, True
    return tokens + sum(f.lost_tokens or 0.0 for f in faults), False


def what_if(run: RunReport) -> str:
    """The pool once the first priced finding is mended, then the next one too, and so on; ``""`` without a price."""
    tokens = number_of(run, "pool.tokens")
    steps: list[str] = []
    for finding in priced(run)[:5]:
        pool = finding.pool_if_fixed
        if pool is None:
            continue
        times = f" ({pool / tokens:.3g} times)" if tokens and pool > 1.1 * tokens else ""
        steps.append(f"{'then ' if steps else ''}without {finding.rule} {pool:,.0f} tokens{times}")
    if not steps:
        return ""
    now = f"now {tokens:,.0f} tokens; " if tokens is not None else ""
    return now + ", ".join(steps) + "."


def main_findings(run: RunReport) -> list[Finding]:
    """The findings in order, those that another one explains right after it."""
    ordered: list[Finding] = []
    known = {f.rule for f in run.findings}
    for finding in run.findings:
        if finding.explained_by in known:
            continue
        ordered.append(finding)
        ordered += [f for f in run.findings if f.explained_by == finding.rule and f.rule != finding.rule]
    ordered += [f for f in run.findings if not any(f is o for o in ordered)]
    return ordered


def blamed(run: RunReport) -> Finding | None:
    """The finding that names the cause of the run's failure, None if nothing failed or no rule knows the cause."""
    failure = run.failure
    if failure is None or not failure.rule:
        return None
    return next((f for f in run.findings if f.rule == failure.rule and f.cause == failure.cause), None)


def arguments_of(run: RunReport) -> list[tuple[str, str]]:
    """The launch arguments that the log shows, sorted by name."""
    prefix = "args."
    names = sorted(name for name in run.facts if name.startswith(prefix))
    return [(name[len(prefix) :], show(run.facts[name].value, run.facts[name].unit)) for name in names]


def headline(run: RunReport) -> str:
    """The pool or the failure in a few words, for tables of many runs."""
    if run.failure:
        return run.failure.cause
    tokens = number_of(run, "pool.tokens")
    return f"{tokens:,.0f} tokens" if tokens is not None else "no pool shown"


def counted(report: Report) -> str:
    """``3 runs: 1 serving, 2 crashed at startup``."""
    outcomes: dict[str, int] = {}
    for run in report.runs:
        outcomes[run.outcome] = outcomes.get(run.outcome, 0) + 1
    parts = ", ".join(f"{n} {name}" for name, n in sorted(outcomes.items(), key=lambda kv: (-kv[1], kv[0])))
    return f"{len(report.runs)} run{'s' if len(report.runs) != 1 else ''}: {parts}"
