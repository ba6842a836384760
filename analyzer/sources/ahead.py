"""Looking at the beginning of a stream before it is decided how the stream is read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from analyzer.errors import UserError


@dataclass(slots=True)
class Ahead:
    """The first pieces of a stream, which are still to be read, and how it goes on."""

    held: list[bytes]
    ended: bool
    """Whether nothing comes after the pieces that are held; False, too, where reading failed there."""
    _failure: UserError | None
    _source: Iterator[bytes]

    def all(self) -> Iterator[bytes]:
        """The whole stream, once; what failed is raised after what could be read was given."""
        self.held.reverse()
        while self.held:
            yield self.held.pop()
        if self._failure is not None:
            raise self._failure
        if not self.ended:
            yield from self._source


def look_ahead(chunks: Iterator[bytes], enough: Callable[[list[bytes], int], bool]) -> Ahead:
    """Reads ``chunks`` until ``enough`` says so of the pieces read and the bytes in them, or to their end."""
    held: list[bytes] = []
    size = 0
    try:
        for chunk in chunks:
            held.append(chunk)
            size += len(chunk)
            if enough(held, size):
                return Ahead(held, False, None, chunks)
    except UserError as error:
        return Ahead(held, False, error, chunks)
    return Ahead(held, True, None, chunks)
