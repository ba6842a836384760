"""Print the typed events that the grammars read from a log, one a record, in order."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from analyzer.cli.common import Paths, paths_or_stdin


def command(
    paths: Paths = None,
    format: Annotated[Literal["text", "jsonl"], typer.Option("--format", "-f", help="Text or JSON lines.")] = "text",
    unrecognised: Annotated[
        bool,
        typer.Option("--unrecognised", help="Instead, what no grammar recognised, grouped by template with counts."),
    ] = False,
    kind: Annotated[list[str] | None, typer.Option("--kind", help="Only events of this kind; may be repeated.")] = None,
) -> int:
    from analyzer.listing import list_events, list_unrecognised

    lines = (
        list_unrecognised(paths_or_stdin(paths), format)
        if unrecognised
        else list_events(paths_or_stdin(paths), format, frozenset(kind or ()))
    )
    found = 0
    for line in lines:
        found += 1
        typer.echo(line)
    return 0 if found or unrecognised else 3
