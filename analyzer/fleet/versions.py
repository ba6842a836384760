"""Versions of the runs of an archive as spans: one version, or the bracket that the shapes of the lines leave open.

Two spans have an order only where they do not overlap: 0.5.13-0.5.15 comes before 0.5.16-0.5.18, and neither has one
with 0.5.14-0.5.17.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from analyzer.diagnosis.versions import Version, parse_version

NO_VERSION = parse_version("0")
CHANGED_MEANING = "0.20.1"
"""vLLM: from here on the printed token count means something else (reference 3.8)."""


@dataclass(frozen=True, slots=True)
class Span:
    """All versions that a run may be of, both ends included; None where an end is open."""

    low: Version | None
    high: Version | None

    def before(self, other: Span) -> bool:
        """Whether every version of this span is earlier than every one of ``other``."""
        return self.high is not None and other.low is not None and self.high < other.low


def version_key(text: str | None) -> Version:
    """``text`` as a key that sorts; what is no version sorts by the numbers it begins with, and without one first."""
    try:
        return parse_version(text or "")
    except ValueError:
        numbers = re.match(r"v?(\d{1,6}(?:\.\d{1,6}){0,4})", (text or "").strip())
        return parse_version(numbers[1]) if numbers else NO_VERSION


def span_of(version: str | None, low: str | None = None, high: str | None = None) -> Span:
    """The span of a run: its version, or its bracket (``">=0.5.13"``, ``"<=0.5.15"``), open where nothing is known."""
    if version:
        return Span(version_key(version), version_key(version))
    return Span(*(version_key(end.lstrip("<>=")) if end else None for end in (low, high)))


def span_of_label(label: str) -> Span:
    """The span of a version as ``summary.version_column`` writes it: ``0.5.13-0.5.15``, ``0.5.13 or later``."""
    end, _, open_side = label.partition(" or ")
    if open_side:
        return span_of(None, low=end if open_side == "later" else None, high=end if open_side == "earlier" else None)
    low, dash, high = label.partition("-")
    return span_of(None, low, high) if dash and high[:1].isdigit() else span_of(label)


def comparable(engine: str, older: Span, newer: Span) -> bool:
    """Whether the printed token counts of two spans surely mean the same."""
    if engine != "vllm":
        return True
    key = version_key(CHANGED_MEANING)
    sides = [_side(span, key) for span in (older, newer)]
    return None not in sides and sides[0] == sides[1]


def _side(span: Span, key: Version) -> bool | None:
    """Whether a span lies at or after ``key``, before it, or (None) perhaps on both sides."""
    if span.low is not None and span.low >= key:
        return True
    if span.high is not None and span.high < key:
        return False
    return None
