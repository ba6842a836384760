"""Where the catalog's table comes from: the wheel, the cache, or built now from the grammar files.

Building (``build``) reads every file with Lark and takes about a second. The table is therefore shipped in the wheel
(``_data/lowered.json``, written by the build hook), or cached under a key made from the files' content.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from analyzer import resources
from analyzer.cache import cached, fingerprint

FORMAT = 5
"""Counted up when the table's layout changes."""

_MAKERS = ("build", "lower", "literals", "syntax", "regexes")
"""Modules whose change makes a stored table stale."""

TERMINALS = "terminals.lark"
SHIPPED = "lowered.json"


def grammar_files(folder: Path) -> list[Path]:
    """The message grammars below ``folder`` (``<engine>/*.lark``), in a fixed order."""
    return sorted(folder.glob("*/*.lark"))


def build_table(folder: Path | None = None) -> dict[str, Any]:
    """The table of a grammar folder (default: the shipped one): ``{"format", "shapes", "problems"}``, JSON-able."""
    from analyzer.parsing.build import read_shapes

    shapes, problems = read_shapes(folder or resources.data_dir("grammars"))
    return {
        "format": FORMAT,
        "shapes": [shape.entry() for shape in shapes],
        "problems": [[p.file, p.line, p.text] for p in problems if p.serious],
    }


def load_table(folder: Path | None = None) -> dict[str, Any]:
    """The table from the wheel, from the cache, or built now."""
    if folder is None:
        folder = resources.data_dir("grammars")
        shipped = folder.parent / SHIPPED
        if shipped.is_file():
            table: dict[str, Any] = json.loads(shipped.read_bytes())
            if table.get("format") == FORMAT:
                return table
    makers = [Path(__file__).with_name(f"{name}.py") for name in _MAKERS]
    contents = [path.read_bytes() for path in (*makers, folder / TERMINALS, *grammar_files(folder)) if path.is_file()]
    key = fingerprint(contents, salt=f"lowered {FORMAT}")
    stored: dict[str, Any] = cached("lowered", key, lambda: build_table(folder))
    return stored
