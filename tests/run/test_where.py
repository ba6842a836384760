"""The line that proves something is one that says something."""

from __future__ import annotations

from analyzer.framing.record import Record
from analyzer.run.facts import Where


def test_a_banner_is_quoted_by_its_first_line_with_words() -> None:
    banner = Record("x.log", 2, 5, "\n  ▄▄ █\n █▄█▀ █  version 0.32.0\n ▀▀")
    assert Where.of(banner) == Where("x.log", 4, " █▄█▀ █  version 0.32.0")


def test_a_line_that_is_asked_for_is_given() -> None:
    record = Record("x.log", 2, 4, "\nfirst\nsecond")
    assert (Where.of(record, 2).text, Where.of(record, 1).text) == ("second", "first")
    assert Where.of(Record("x.log", 7, 8, "\n  ")) == Where("x.log", 7, "")
