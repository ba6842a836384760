"""Say why the KV cache pool is the size it is, what caps concurrency, and what failed.

PATHS are logs, archives or folders; "-" or nothing reads standard input.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from analyzer.cli.common import (
    DraftDir,
    DraftFileBytes,
    ExitCode,
    FailOn,
    Format,
    ModelDir,
    OomKilled,
    Output,
    Paths,
    RuleDirs,
    check_outputs,
    finish,
    options_from,
    paths_or_stdin,
)
from analyzer.cli.stopping import keeping_what_came
from analyzer.cli.streams import may_not_end, patience
from analyzer.errors import UserError


def command(
    paths: Paths = None,
    format: Format = "text",
    output: Output = None,
    model_dir: ModelDir = None,
    draft_dir: DraftDir = None,
    draft_file_bytes: DraftFileBytes = None,
    exit_code: ExitCode = None,
    oom_killed: OomKilled = False,
    rules: RuleDirs = None,
    fail_on: FailOn = "critical",
    merge: Annotated[bool, typer.Option("--merge", help="Read all inputs as streams of one run.")] = False,
    metrics: Annotated[
        list[str] | None, typer.Option("--metrics", help="Saved /metrics text, a file or a URL; may be given twice.")
    ] = None,
    nvidia_smi: Annotated[Path | None, typer.Option("--nvidia-smi", help="Saved nvidia-smi output.")] = None,
    prometheus: Annotated[str | None, typer.Option("--prometheus", help="URL of a Prometheus server.")] = None,
    url: Annotated[str | None, typer.Option("--url", help="Base URL of the server, to probe it.")] = None,
    baseline: Annotated[
        Path | None, typer.Option("--baseline", help="A saved JSON report: only what is new counts for --fail-on.")
    ] = None,
    noise: Annotated[bool, typer.Option("--noise", help="List the lines that look like errors and are not.")] = False,
    why_not: Annotated[str | None, typer.Option("--why-not", help="Show how this rule was decided.")] = None,
) -> int:
    from analyzer.pipeline import explain

    options = options_from(
        model_dir=model_dir, draft_dir=draft_dir, draft_file_bytes=draft_file_bytes, exit_code=exit_code,
        oom_killed=oom_killed, rules=rules, merge=merge, metrics=metrics, nvidia_smi=nvidia_smi,
        prometheus=prometheus, url=url,
    )  # fmt: skip
    given = paths_or_stdin(paths)
    if why_not is not None:
        from analyzer.cli.why_not import explain_decision

        if output or format != "text":
            raise UserError("--why-not prints how a rule was decided, as text; leave --format and --output out")
        return explain_decision(given, options, why_not)
    check_outputs(output, given)
    if baseline is not None and not baseline.exists():
        raise UserError(f"{baseline} cannot be read: no such file")
    with keeping_what_came() as interrupt, patience(given, kept=True):
        report = explain(given, replace(options, interrupt=interrupt))
    if format == "html" or any(path.suffix in (".html", ".htm") for path in output or ()):
        from analyzer.report.context import add_context

        add_context(report, [path for path in given if not may_not_end(path)])
    return finish(report, format=format, output=output, fail_on=fail_on, noise=noise, baseline=baseline)
