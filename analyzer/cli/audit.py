"""Read an archive of many runs into one table of runs, ranks and findings.

PATHS are files, folders, patterns, archives or object store addresses (s3://...). With -o FOLDER the tables are kept
as Parquet and a later audit reads only what has changed; -o also takes .csv, .jsonl and .html.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from analyzer.cli.common import FailOn, RuleDirs


def command(
    paths: Annotated[list[str], typer.Argument(help="Files, folders, patterns, archives, s3://... addresses.")],
    output: Annotated[
        list[Path] | None,
        typer.Option("--output", "-o", help="Folder (Parquet), .csv, .jsonl, .html; repeatable."),
    ] = None,
    engine: Annotated[
        Literal["local", "ray"], typer.Option("--engine", help="This machine's cores, or Ray.")
    ] = "local",
    workers: Annotated[int | None, typer.Option("--workers", "-j", min=1, help="Processes; default: cores.")] = None,
    ray_address: Annotated[str | None, typer.Option("--ray-address", envvar="RAY_ADDRESS", help="Ray cluster.")] = None,
    events: Annotated[bool, typer.Option("--events/--no-events", help="Keep the start-up events too.")] = True,
    run_pages: Annotated[
        bool, typer.Option("--run-pages/--no-run-pages", help="Beside an .html output, one page for each log.")
    ] = True,
    rules: RuleDirs = None,
    fail_on: FailOn = "never",
) -> int:
    from analyzer.fleet.command import run_audit

    return run_audit(
        paths,
        output or [],
        engine=engine,
        workers=workers,
        ray_address=ray_address,
        events=events,
        rule_dirs=tuple(str(p) for p in rules or ()),
        fail_on=fail_on,
        run_pages=run_pages,
    )
