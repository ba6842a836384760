"""How one rule was decided on a log: each part of its condition with its value, and what was missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import typer

from analyzer.cli.stopping import keeping_what_came
from analyzer.cli.streams import patience
from analyzer.redact import clean

if TYPE_CHECKING:
    from analyzer.pipeline import Options


def explain_decision(paths: Sequence[str], options: Options, rule: str) -> int:
    """Prints how ``rule`` was decided on every run in ``paths``; 3 if there is no run."""
    from analyzer.pipeline import read
    from analyzer.sizing import model_for

    with keeping_what_came() as interrupt, patience(paths, kept=True):
        analysis = read(paths, replace(options, interrupt=interrupt))
    runs = analysis.runs()
    for run in runs:
        if len(runs) > 1:
            typer.echo(f"\nrun {run.id}, lines {run.first_line} to {run.last_line}")
        for line in analysis.rules.why_not(rule, run, model_for(run)).lines():
            typer.echo(clean(line))
    for note in analysis.missing:
        typer.echo(clean(f"\n* {note}"))
    return 0 if runs else 3
