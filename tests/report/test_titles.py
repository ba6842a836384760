"""A sum of parts is called a whole only where the whole is known."""

from __future__ import annotations

from pathlib import Path

from analyzer import pipeline
from analyzer.report.titles import ledger_title

END = "[2026-10-02 00:39:41] Memory pool end. avail mem=21.57 GB\n"
POOL = "[2026-10-02 00:39:41] KV Cache is allocated. #tokens: 295950, K size: 4.50 GB, V size: 4.50 GB\n"
BEGIN = "[2026-10-02 00:39:31] Load weight begin. avail mem=93.77 GB\n"


def title(text: str, folder: Path) -> str:
    path = folder / "x.log"
    path.write_text(text)
    (run,) = pipeline.explain([str(path)]).runs
    return ledger_title(run)


def test_the_whole_is_named_where_a_line_tells_it(tmp_path: Path) -> None:
    assert title(BEGIN + POOL + END, tmp_path) == "Where 93.77 GiB went"
    assert title(POOL + END, tmp_path) == "Memory"
