"""Print the typed events that the grammars read from a log, one a record, in order."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import nullcontext
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Literal

import typer

from analyzer.cli.common import Paths, paths_or_stdin
from analyzer.cli.streams import patience
from analyzer.errors import UserError


def command(
    paths: Paths = None,
    format: Annotated[Literal["text", "jsonl"], typer.Option("--format", "-f", help="Text or JSON lines.")] = "text",
    unrecognised: Annotated[
        bool,
        typer.Option("--unrecognised", help="Instead, what no grammar recognised, grouped by template with counts."),
    ] = False,
    kind: Annotated[list[str] | None, typer.Option("--kind", help="Only events of this kind; may be repeated.")] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="Instead, write them into this new folder: Parquet files, one folder for each kind."
        ),
    ] = None,
) -> int:
    if unrecognised and (kind or output is not None):
        raise UserError("--unrecognised lists what no grammar recognised: it takes neither --kind nor --output")
    if output is not None and format != "text":
        raise UserError("--output writes Parquet tables; for JSON lines in a file use --format jsonl > events.jsonl")
    for name in kind or ():
        _check(name)
    given = paths_or_stdin(paths)
    if output is not None:
        return _export(given, output, frozenset(kind or ()))
    from analyzer.listing import all_events, list_events, list_unrecognised

    found = 0
    kinds = frozenset(kind or ())
    texts: Iterable[str]
    if unrecognised:
        texts = (f"{line}\n" for line in list_unrecognised(given, format))
    elif format == "jsonl":
        texts = all_events(given, kinds)
    else:
        texts = (f"{line}\n" for line in list_events(given, format, kinds))
    with patience(given) if unrecognised else nullcontext():
        for text in texts:
            found += 1
            typer.echo(text, nl=False)
    if kind and not found and not unrecognised:
        typer.echo(f"no line of the input is of the kind {' or '.join(kind)}", err=True)
    return 0 if found or unrecognised else 3


def _check(kind: str) -> None:
    """Raises ``UserError`` for a kind that no grammar names."""
    from analyzer.parsing import default_catalog

    kinds = {shape.kind for shape in default_catalog().shapes}
    if kind not in kinds:
        near = get_close_matches(kind, kinds, 1)
        raise UserError(f"--kind {kind}: no grammar names this kind" + (f"; is {near[0]} meant?" if near else ""))


def _export(paths: list[str], folder: Path, kinds: frozenset[str]) -> int:
    """Writes tables and says what they hold."""
    from analyzer.bulk.export import export

    with patience(paths):
        rows = export(paths, folder, kinds)
    for (engine, kind), count in sorted(rows.items(), key=lambda item: -item[1]):
        typer.echo(f"{count:>12,}  {folder / f'{engine}.{kind}'}")
    typer.echo(f"{sum(rows.values()):>12,}  events of {len(rows)} kinds in {folder}")
    return 0 if rows else 3
