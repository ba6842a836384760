"""Explain why one run's pool differs from another's.

The first run is compared with each of the others. Where a file holds several runs, its last one with a pool counts.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer


def command(
    paths: Annotated[list[str], typer.Argument(help="Two or more logs: A B [C ...].")],
    model_dir: Annotated[Path | None, typer.Option("--model-dir", help="The model's folder, for both runs.")] = None,
    format: Annotated[
        Literal["text", "json", "markdown", "html"], typer.Option("--format", "-f", help="How to print.")
    ] = "text",
    output: Annotated[
        list[Path] | None, typer.Option("--output", "-o", help="Also write a file: .html .md .json .txt; repeatable.")
    ] = None,
) -> int:
    from analyzer.cli.common import options_from
    from analyzer.cli.streams import patience
    from analyzer.errors import UserError
    from analyzer.fleet.compare import compare
    from analyzer.fleet.compare_write import format_of, render, write
    from analyzer.pipeline import read_runs
    from analyzer.whole import check_place

    if len(paths) < 2:
        raise UserError("compare needs two logs or more: kvautopsy compare A.log B.log")
    for place in output or ():
        format_of(place)  # what is wrong with it is said before anything is read
        check_place(place, paths)
    options = options_from(model_dir=model_dir)
    chosen = []
    for path in paths:
        with patience([path]):
            runs = [run for run in read_runs([path], options) if run.engine]
        if not runs:
            raise UserError(f"{path} holds no run of SGLang or vLLM", status=3)
        chosen.append(next((r for r in reversed(runs) if "pool.tokens" in r.facts), runs[-1]))
    results = [compare(chosen[0], other) for other in chosen[1:]]
    for place in output or ():
        write(results, place)
    typer.echo(render(results, format), nl=False)
    return 0
