"""Follow a growing file or a pipe and say what is found the moment it is proved.

PATH is a file (which may not exist yet, may be rotated or truncated) or "-" for a pipe: kubectl logs -f POD | kvautopsy
follow. Ctrl-C prints the full report.
"""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from analyzer.cli.common import DraftDir, FailOn, ModelDir, Output, RuleDirs, check_outputs, finish, options_from

View = Annotated[
    Literal["auto", "screen", "plain", "jsonl"],
    typer.Option("--view", help="Screen (on a terminal), findings as lines, or events as JSON lines."),
]
Plain = Annotated[bool, typer.Option("--plain", help="Short for --view plain.")]
Format = Annotated[Literal["text", "jsonl"], typer.Option("--format", "-f", help="jsonl is short for --view jsonl.")]


def command(
    path: Annotated[str, typer.Argument(help="A file, or - for standard input.")] = "-",
    view: View = "auto",
    plain: Plain = False,
    format: Format = "text",
    model_dir: ModelDir = None,
    draft_dir: DraftDir = None,
    rules: RuleDirs = None,
    output: Output = None,
    fail_on: FailOn = "critical",
) -> int:
    import sys
    from pathlib import Path

    from analyzer.live.runner import file_feed, make_view, run, say

    kind = view_of(view, plain, format)
    check_outputs(output, [path])
    options = options_from(model_dir=model_dir, draft_dir=draft_dir, rules=rules)
    if path != "-" and not Path(path).exists():
        say(f"{path} does not exist yet: waiting for it (Ctrl-C ends)")
    session = run(file_feed(path), options, make_view(kind, sys.stdout))
    if session.report is None:
        return 3
    return finish(session.report, format="json-line" if kind == "jsonl" else "text", output=output, fail_on=fail_on)


def view_of(view: str, plain: bool, format: str) -> str:
    """The view that the options ask for."""
    return "jsonl" if format == "jsonl" else "plain" if plain else view
