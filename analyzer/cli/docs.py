"""Write the documentation pages that are made from the rules and grammars.

There is no second copy of what they say: rules, message shapes, facts and cause codes are described from the files
that the program itself uses.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def command(
    folder: Annotated[Path, typer.Argument(help="Where to write the pages.")],
) -> int:
    from analyzer.cli.docs_pages import write_docs

    for path in write_docs(folder):
        typer.echo(path)
    return 0
