"""Logs in which each line stands twice, because two handlers print it: each is read once.

Two records that an engine prints one after the other may be equal (the pools of equal draft layers), so nothing is
dropped unless nearly all lines come in pairs.

.. versionadded:: 0.1
"""

from __future__ import annotations

from collections.abc import Sequence

_LEAST_PAIRS = 12
"""Different lines that must come in pairs."""
_SHARE = 0.8
"""Share of all lines that must be of a pair."""


class Doubles:
    """Drops the second line of each pair, once ``decide`` has found that lines come in pairs."""

    def __init__(self) -> None:
        self.on = False
        self.dropped = 0
        """Lines left out so far."""
        self._last: str | None = None

    def decide(self, lines: Sequence[str]) -> None:
        """Looks at the first lines of a log."""
        filled = [line for line in lines if line.strip()]
        pairs: list[str] = []
        at = 0
        while at + 1 < len(filled):
            if filled[at] == filled[at + 1]:
                pairs.append(filled[at])
                at += 1
            at += 1
        self.on = len(set(pairs)) >= _LEAST_PAIRS and 2 * len(pairs) >= _SHARE * len(filled)

    def drops(self, line: str) -> bool:
        """Whether ``line`` is the second of a pair."""
        if line == self._last and line:
            self._last = None
            self.dropped += 1
            return True
        self._last = line
        return False
