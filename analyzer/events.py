"""One event: a record that a grammar recognised, as a kind with typed fields."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from analyzer.framing.record import Record


@dataclass(slots=True)
class Event:
    """What one record means.

    ``kind`` is the name of the grammar rule, ``engine`` the grammar folder it came from (``sglang``, ``vllm``,
    ``common``). ``fields`` maps the rule's field names to values in base units (bytes, seconds, 0..1); ``units``
    maps the same names to their unit and is shared by all events of a kind. An optional field that the line lacks is
    absent. ``cut`` is set when a nested value (an argument dump) ended in the middle and only what was read counts.
    """

    kind: str
    engine: str
    record: Record
    fields: dict[str, Any] = field(default_factory=dict)
    units: dict[str, str] = field(default_factory=dict)
    cut: bool = False

    @property
    def rank(self) -> str:
        """The rank of the process that printed it, as the engine writes it; ``""`` without one."""
        return self.record.rank

    @property
    def line(self) -> int:
        """The first physical line (LF count from 1)."""
        return self.record.line

    def get(self, name: str, default: Any = None) -> Any:
        """The field ``name``, or ``default`` if the line lacks it."""
        return self.fields.get(name, default)
