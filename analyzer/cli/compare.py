"""Explain why one run's pool differs from another's.

The first run is compared with each of the others. Where a file holds several runs, its last one with a pool counts.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Literal

import typer


def command(
    paths: Annotated[list[str], typer.Argument(help="Two or more logs: A B [C ...].")],
    model_dir: Annotated[Path | None, typer.Option("--model-dir", help="The model's folder, for both runs.")] = None,
    format: Annotated[Literal["text", "json"], typer.Option("--format", "-f", help="How to print.")] = "text",
) -> int:
    from analyzer.cli.common import options_from
    from analyzer.errors import UserError
    from analyzer.fleet.compare import compare
    from analyzer.fleet.show_compare import as_json, print_comparison
    from analyzer.pipeline import read_runs
    from analyzer.redact import clean

    if len(paths) < 2:
        raise UserError("compare needs two logs or more: kvautopsy compare A.log B.log")
    options = options_from(model_dir=model_dir)
    chosen = []
    for path in paths:
        runs = read_runs([path], options)
        if not runs:
            raise UserError(f"{path} holds no run of SGLang or vLLM", status=3)
        chosen.append(next((r for r in reversed(runs) if "pool.tokens" in r.facts), runs[-1]))
    results = [compare(chosen[0], other) for other in chosen[1:]]
    if format == "json":
        typer.echo(clean(json.dumps([as_json(r) for r in results], indent=1, default=str)))
    else:
        from rich.console import Console

        for result in results:
            print_comparison(result, Console(highlight=False))
    return 0
