"""Where the main thread of a hung process stood, from the dump that py-spy printed.

py-spy prints the innermost frame first: native frames as ``symbol (library.so)`` or a bare address, Python's as
``function (file.py:12)``. What only waits (poll, a futex, the interpreter's lock) says nothing; the first call that has
a name and the Python function above it do.
"""

from __future__ import annotations

import re

_MAIN = re.compile(r'^Thread [^\n]{1,60}"MainThread"', re.M)
_FRAME = re.compile(r"[ \t]+(\S[^\n(]{0,200}|pybind11::\S{1,200}) \(([^()\n]{1,200})\)$")
_SOURCE = re.compile(r"\.pyx?:\d+$")
_IDLE = re.compile(
    r"0x|pthread_|__|poll$|select$|epoll_wait|sem_|clock_|futex|syscall|PyThread_|take_gil|nanosleep|sched_"
)
_MOST = 80
"""Frames that are looked at."""


def standing(text: str) -> str | None:
    """``c10d::RecvWork::wait, called from recv_object (parallel_state.py:1167)``; None if the dump does not tell."""
    main = _MAIN.search(text)
    if main is None:
        return None
    native = ""
    for line in text[main.end() :].split("\n")[1:_MOST]:
        if not line.strip():
            continue
        frame = _FRAME.match(line)
        if frame is None:
            break
        name, place = frame[1], frame[2]
        if _SOURCE.search(place):
            where = f"{name} ({place})"
            return f"{native}, called from {where}" if native else where
        if not native and not _IDLE.match(name):
            native = name
    return native or None
