"""Pastes that a terminal wrapped at its width: physical lines put together again."""

from __future__ import annotations

from collections.abc import Iterator


class Unwrapper:
    idle = True

    def watch(self, lines: list[str]) -> None:
        pass

    def feed(self, lines: list[str], first: int) -> Iterator[tuple[str, int, int]]:
        for number, line in enumerate(lines, first):
            yield line, number, number

    def flush(self) -> list[tuple[str, int, int]]:
        return []
