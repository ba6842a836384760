"""Prove or refute, in four layers, that speculative decoding works.

Weights exist (--model-dir), configuration resolved (log), draft loaded (log), tokens accepted (log, --metrics before
and after, or --url of the running server). The verdict never exceeds the weakest layer.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Annotated, Literal

import typer

from analyzer.cli.common import DraftDir, ModelDir, Paths, options_from, paths_or_stdin
from analyzer.cli.stopping import keeping_what_came
from analyzer.cli.streams import patience


def command(
    paths: Paths = None,
    model_dir: ModelDir = None,
    draft_dir: DraftDir = None,
    metrics: Annotated[
        list[str] | None, typer.Option("--metrics", help="Saved /metrics, a file or a URL; twice: before and after.")
    ] = None,
    url: Annotated[str | None, typer.Option("--url", help="Base URL of the running server.")] = None,
    format: Annotated[Literal["text", "json"], typer.Option("--format", "-f", help="How to print.")] = "text",
) -> int:
    from analyzer.live.spec_proof import REFUTED, as_json, page, prove
    from analyzer.pipeline import read
    from analyzer.redact import clean

    options = options_from(model_dir=model_dir, draft_dir=draft_dir, metrics=metrics, url=url)
    given = paths_or_stdin(paths)
    with keeping_what_came() as interrupt, patience(given, kept=True):
        analysis = read(given, replace(options, interrupt=interrupt))
    proofs = [prove(run) for run in analysis.runs()]
    if format == "json":
        typer.echo(clean(json.dumps([as_json(p) for p in proofs], indent=1, default=str)))
    else:
        for proof in proofs:
            for line in page(proof, alone=len(proofs) == 1):
                typer.echo(clean(line))
    for note in analysis.missing:
        typer.echo(clean(f"kvautopsy: {note}"), err=True)
    if not any(i.recognised_lines for i in analysis.inputs):
        return 3
    return int(any(p.verdict == REFUTED for p in proofs))
