"""One kind of contradiction inside a model package: how often, and where."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Issue:
    """``places`` are the names that are wrong (all of them); ``checked`` how many were looked at."""

    name: str
    places: tuple[str, ...]
    checked: int = 0

    @property
    def count(self) -> int:
        """How many are wrong."""
        return len(self.places)

    def examples(self, limit: int = 3) -> str:
        """Some of them, for one line of text."""
        shown = ", ".join(p[:160] for p in self.places[:limit])
        return f"{shown} and {self.count - limit:,} more" if self.count > limit else shown
