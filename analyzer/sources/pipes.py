"""Pipes as they bring their bytes, and a way to end their reading from outside without losing what came."""

from __future__ import annotations

import os
import select
import stat
import time
from dataclasses import dataclass
from typing import Any

POLL = 0.1
"""Seconds between two looks at whether reading is to end; a byte that comes is taken at once."""
QUIET = 0.5
"""Seconds without a byte after which an ended pipe is left: its writer, whom Ctrl-C reached too, may say goodbye."""
MOST = 2.0
"""Seconds for which a writer that goes on is heard out."""
FULL = 64 << 10
"""Bytes that a pipe holds; so many at once mean that its writer is ahead."""
REFILL = 0.005
"""Seconds that the writer of a full pipe gets to write more before what there is is taken as it is."""


@dataclass(slots=True)
class Interrupt:
    """The wish to end reading early and to go on with what has come."""

    heard: bool = False
    """Whether a pipe is being read that would end for it; nothing else would."""
    asked: bool = False
    cut: bool = False
    """Whether a pipe was left that had not ended."""


class Pipe:
    """What a pipe or a terminal brings. ``interrupt``, once asked, is its end."""

    def __init__(self, file: Any, interrupt: Interrupt) -> None:
        self._file = file  # held open
        self._descriptor: int = file.fileno()
        self._interrupt = interrupt
        self._until = 0.0
        self._ended = False
        interrupt.heard = True

    def read(self, size: int = -1, /) -> bytes:
        """What there is, at most ``size`` bytes; waits for the first of them. None at the end."""
        parts: list[bytes] = []
        held, size = 0, size if size >= 0 else FULL
        while held < size and (self._waits(REFILL if held >= FULL else 0) if parts else self._comes()):
            part = os.read(self._descriptor, size - held)
            if not part:
                self._ended = not parts
                break
            parts.append(part)
            held += len(part)
        if self._ended:
            self._interrupt.heard = False
        return b"".join(parts)

    def _comes(self) -> bool:
        """Waits for a byte or the end of the pipe; false once nothing more is to be read."""
        while not self._ended and not self._interrupt.asked:
            if self._waits(POLL):
                return True
        now = time.monotonic()
        self._until = self._until or now + MOST
        if not self._ended and (now >= self._until or not self._waits(min(QUIET, self._until - now))):
            self._ended = self._interrupt.cut = True
        return not self._ended

    def _waits(self, seconds: float) -> bool:
        return bool(select.select([self._descriptor], [], [], seconds)[0])


def as_it_comes(file: Any, interrupt: Interrupt | None) -> Any:
    """``file`` with reads that give what there is, if it is a pipe or a terminal; other streams as they are."""
    try:
        regular = stat.S_ISREG(os.fstat(file.fileno()).st_mode)
    except (OSError, AttributeError, ValueError):  # no file of the system
        return file
    return file if regular else Pipe(file, interrupt or Interrupt())
