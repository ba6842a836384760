"""Ask SQL of an audit's result.

The tables are runs, ranks, findings, events, series and files: kvautopsy query audit/ "SELECT cause, count(*) FROM
findings GROUP BY cause".
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer


def command(
    folder: Annotated[Path, typer.Argument(help="The folder that kvautopsy audit -o wrote.")],
    sql: Annotated[str, typer.Argument(help="The query.")],
    format: Annotated[Literal["text", "csv", "jsonl"], typer.Option("--format", "-f", help="How to print.")] = "text",
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write .csv, .jsonl or .parquet.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="Rows printed as text.")] = 50,
) -> int:
    from analyzer.fleet.query import export, query
    from analyzer.whole import check_place

    if output is not None:
        check_place(output)
    frame = query(folder, sql)
    if output is not None:
        export(frame, output)
    elif format == "csv":
        typer.echo(frame.write_csv(), nl=False)
    elif format == "jsonl":
        typer.echo(frame.write_ndjson(), nl=False)
    else:
        from rich.console import Console

        from analyzer.fleet.show import print_frame

        print_frame(frame, Console(highlight=False), limit=limit)
    return 0
