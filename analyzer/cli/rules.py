"""List, describe and test the rules.

Without a name: the list. With an id (rules KV002): what it finds, why, its conditions, fix and versions. With the word
test: runs the cases inside rule files, the shipped ones or those of the given files and folders.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer


def command(
    names: Annotated[
        list[str] | None, typer.Argument(help="Ids of rules; or test, then rule files or folders.", show_default=False)
    ] = None,
    rules: Annotated[list[Path] | None, typer.Option("--rules", help="A folder with further rules.")] = None,
    format: Annotated[Literal["text", "json"], typer.Option("--format", "-f", help="How to print.")] = "text",
) -> int:
    from analyzer.cli import rules_pages as pages
    from analyzer.diagnosis import RuleSet

    words = names or []
    if words[:1] == ["test"]:
        return pages.run_tests([Path(w) for w in words[1:]] + list(rules or ()), format)
    known = RuleSet.load(rules or ())
    if words:
        return pages.show(known, words, format)
    return pages.show_list(known, format)
