"""Folding of texts and files for the tests of this folder."""

from __future__ import annotations

from pathlib import Path

from analyzer.framing import frame
from analyzer.parsing import default_catalog
from analyzer.run.fold import RunFolder
from analyzer.run.model import Run

SAMPLES = Path(__file__).parents[2] / "samples"


def folded(text: str | bytes, *, merge: bool = False, source: str = "test.log") -> list[Run]:
    """The runs in ``text``."""
    data = text.encode() if isinstance(text, str) else text
    folder, catalog = RunFolder(merge=merge), default_catalog()
    for record in frame([data], source):
        folder.feed(record, catalog.match(record))
    folder.close()
    return folder.runs()


def only(text: str | bytes) -> Run:
    """The one run in ``text``."""
    (run,) = folded(text)
    return run
