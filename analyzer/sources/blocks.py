"""Chunks of a stream put together to blocks that are worth reading by columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator


def in_blocks(chunks: Iterable[bytes], size: int, begin: int = 0) -> Iterator[bytes]:
    """``chunks`` as they are for the first ``begin`` bytes, then in blocks of about ``size`` bytes.

    A block ends with a line, if one ends in its last chunk.
    """
    seen = held_size = 0
    held: list[bytes] = []
    for chunk in chunks:
        seen += len(chunk)
        if seen <= begin:
            yield chunk
            continue
        held_size += len(chunk)
        if held_size < size:
            held.append(chunk)
            continue
        end = chunk.rfind(b"\n") + 1 or len(chunk)
        yield b"".join((*held, chunk[:end]))
        held, held_size = [chunk[end:]], len(chunk) - end
    if any(held):
        yield b"".join(held)
