"""One input: a name for reports and a way to read its bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from analyzer.errors import UserError


@dataclass(frozen=True, slots=True)
class Source:
    """A log to read. ``name`` is what the user gave, with ``!member`` for what lies in an archive.

    A member of an archive must be read before the next source is asked for, standard input and pipes can be read only
    once. ``error`` is set on a source that could not be opened: below a folder, or with ``open_sources(...,
    keep_errors=True)``.
    """

    name: str
    read: Callable[[], Iterator[bytes]]
    error: UserError | None = None
    notes: list[str] = field(default_factory=list, compare=False)
    """What a reader should know of how the bytes were taken; complete once they were read."""

    def chunks(self) -> Iterator[bytes]:
        """The bytes of the log in pieces of bounded size, decompressed, and as UTF-8 where it was UTF-16.

        Raises ``UserError`` (status 3) when the input cannot be read or is damaged, after what could be read.
        """
        if self.error is not None:
            raise self.error
        return self.read()
