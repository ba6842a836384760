"""What every sizing model gives: from named inputs to a pool, so that a changed input can be priced."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Solution:
    """What a model gives for one set of inputs. A part that it cannot know is None."""

    tokens: float | None
    slots: float | None = None
    running: float | None = None
    steps: tuple[str, ...] = ()
    """The formula with its figures, one step a line, for the reader who wants to check."""


class SizingModel(Protocol):
    """An engine's own formula for one version range, filled with the inputs of one run.

    ``inputs`` are keyed by vocabulary names (``sizing.fraction``, ``gpu.free_before_load``, ``sizing.cell``,
    ``draft.duplicate_vocab`` …) in base units. ``missing`` names the inputs that the log lacked, with how to supply
    each; then ``solve`` may still answer with some parts None. ``calibrated`` names inputs that were derived from the
    observed pool itself (not independent proof). ``margin`` is the relative error that rounding of printed figures
    allows.
    """

    formula: str
    missing: tuple[str, ...]
    calibrated: tuple[str, ...]
    margin: float

    @property
    def inputs(self) -> Mapping[str, float]:
        """The inputs by name."""
        ...

    def solve(self, overrides: Mapping[str, float] | None = None) -> Solution:
        """The pool with ``overrides`` in place of inputs of the same name. Raises ``KeyError`` for an unknown name."""
        ...


@dataclass(slots=True)
class Check:
    """Predicted against observed."""

    formula: str
    predicted_tokens: float | None
    observed_tokens: float | None
    error: float | None
    missing: tuple[str, ...] = ()
    calibrated: tuple[str, ...] = ()
    margin: float = 0.0
    steps: tuple[str, ...] = field(default=())
