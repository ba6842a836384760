"""Bounds for compressed input, and the size of pieces."""

from __future__ import annotations

from dataclasses import dataclass

from analyzer.errors import UserError

CHUNK = 256 << 10


@dataclass(frozen=True, slots=True)
class Limits:
    """What one input may cost.

    ``ratio`` bounds decompressed over compressed bytes once more than ``free`` bytes came out (a log of one repeated
    line reaches about 200 with gzip, several thousand with xz and Zstandard); ``total`` bounds what comes out of one
    file, an archive with all its members; ``members`` bounds the members of an archive, ``depth`` the layers of
    compression and archives around a log.
    """

    ratio: int = 20_000
    free: int = 256 << 20
    total: int = 64 << 30
    members: int = 100_000
    depth: int = 4


DEFAULT = Limits()


class Meter:
    """Counts what goes into and comes out of the decompressors of one file, and stops a bomb."""

    def __init__(self, name: str, limits: Limits, *, named_by_user: bool = True) -> None:
        self.name = name
        self.named_by_user = named_by_user
        """Whether the user gave this very file, and not the folder or archive it is in."""
        self.limits = limits
        self.taken = 0
        self.given = 0
        self.members = 0

    def give(self, count: int) -> None:
        """Notes ``count`` bytes that came out of a decompressor."""
        self.given += count
        if self.given > self.limits.total:
            raise UserError(
                f"{self.name}: more than {self.limits.total:,} bytes after decompression, which is the limit; "
                "unpack it and give the log itself",
                status=3,
            )
        if self.given > self.limits.free and self.given > self.limits.ratio * max(1, self.taken):
            raise UserError(
                f"{self.name}: decompresses to more than {self.limits.ratio:,} times its size, which is the limit; "
                "it looks like a decompression bomb",
                status=3,
            )

    def member(self) -> None:
        """Notes one more member of an archive."""
        self.members += 1
        self.named_by_user = False
        if self.members > self.limits.members:
            raise UserError(f"{self.name}: more than {self.limits.members:,} members, which is the limit", status=3)
