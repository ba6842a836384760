"""Build hook: lowers the message grammars once, so that an installed kvautopsy need not do it at its first start."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class LowerGrammars(BuildHookInterface):  # type: ignore[type-arg]
    """Puts the table of all shapes into the wheel as ``analyzer/_data/lowered.json``."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called by hatchling before a wheel is put together; an editable install reads the grammars themselves."""
        if version == "editable":
            return
        sys.path.insert(0, self.root)
        try:
            from analyzer.parsing.table import SHIPPED, build_table

            table = build_table(Path(self.root) / "grammars")
        finally:
            sys.path.remove(self.root)
        if table["problems"]:
            raise RuntimeError(f"the grammars have problems, see python -m analyzer.parsing.check: {table['problems']}")
        self._folder = tempfile.TemporaryDirectory()  # removed when the build is over
        place = Path(self._folder.name) / SHIPPED
        place.write_text(json.dumps(table, separators=(",", ":")), encoding="utf-8")
        build_data["force_include"][str(place)] = f"analyzer/_data/{SHIPPED}"
