"""The span of SGLang versions that a run may be, and what a formula may assume of it."""

from __future__ import annotations

from dataclasses import dataclass

from analyzer.run.model import Run
from analyzer.run.sglang_version import version_key

Key = tuple[int, ...]
_TOP: Key = (99,)


@dataclass(frozen=True, slots=True)
class Span:
    """Lowest and highest version that the run may be (both inclusive); ``known`` is False without any evidence."""

    low: Key = ()
    high: Key = _TOP
    known: bool = False

    @classmethod
    def of(cls, run: Run) -> Span:
        """The span of ``run``, from its version or its bracket."""
        if run.version:
            key = version_key(run.version)
            return cls(key, key, bool(key))
        if run.version_range:
            low, high = (bound.lstrip("<>=") for bound in run.version_range)
            return cls(version_key(low) if low else (), version_key(high) if high else _TOP, True)
        return cls()

    def at_least(self, version: str) -> bool | None:
        """Whether the run's version is ``version`` or later; None if the span leaves it open."""
        key = version_key(version)
        if self.low >= key:
            return True
        return False if self.high < key else None

    def before(self, version: str) -> bool | None:
        """Whether the run's version is earlier than ``version``; None if the span leaves it open."""
        at_least = self.at_least(version)
        return None if at_least is None else not at_least

    def likely(self, version: str) -> bool:
        """As ``at_least``; what is open is decided by the span's lower end, without one by its upper end."""
        at_least = self.at_least(version)
        if at_least is not None:
            return at_least
        return not self.low and self.high == _TOP

    def __str__(self) -> str:
        def text(key: Key) -> str:
            plain = ".".join(str(part) for part in key[:3])
            return f"{plain}.post{key[3]}" if len(key) > 3 and key[3] > 0 else plain

        if not self.known:
            return "of unknown version"
        if self.low == self.high:
            return text(self.low)
        if self.high == _TOP:
            return f"from {text(self.low)}"
        return f"{text(self.low)}-{text(self.high)}" if self.low else f"up to {text(self.high)}"
