"""``read_plain`` and ``Framer`` say the same of a line that stands alone."""

from __future__ import annotations

import pytest

from analyzer.framing import Framer
from analyzer.framing.decode import clean
from analyzer.framing.plain import read_plain
from analyzer.resources import data_dir


def test_the_same_record() -> None:
    alike = 0
    for path in sorted(data_dir("samples").rglob("*.log")):
        for line in path.read_text(encoding="utf-8", errors="replace").split("\n"):
            plain = read_plain("x", 1, line)
            if plain is None:
                continue
            framer = Framer("x", unwrap=False)
            records = framer.feed(line.encode() + b"\n") + framer.close()
            if records != [plain.record]:  # only what decoding cleans may differ
                assert clean(line) != line, (line, records)
                continue
            alike += 1
            assert line[plain.start :] == plain.record.text
            assert line[slice(*plain.stamp)] == plain.record.stamp
    assert alike > 2000


@pytest.mark.parametrize(
    "line",
    [
        "a raw line",
        "",
        "[2026-09-12 10:00:00]   indented",
        "[2026-09-12 10:00:00] ends in a colon:",
        "[2026-09-12 10:00:00] glued [2026-09-12 10:00:00] text",
        "(EngineCore pid=7) INFO 09-12 10:00:00 [a.py:1] a bar\r of another",
        "(something) INFO 09-12 10:00:00 [a.py:1] text",
        "[2026-09-12 10:00:00 encode_text[3]] text",
    ],
)
def test_what_takes_more_to_read(line: str) -> None:
    assert read_plain("x", 1, line) is None
