"""How the interpreter and the libraries run in this process."""

from __future__ import annotations

import gc
import os

_OBJECTS = 100_000
"""Objects made until the first collection of cycles: a short command, which makes fewer at a time, is spared it."""
_THREADS = ("POLARS_MAX_THREADS", "OPENBLAS_NUM_THREADS")
"""Threads of polars, and those that numpy starts for matrices, which nothing here has."""


def run_lean() -> None:
    """Keeps to one thread, and collects cycles less often. What the environment says of threads stays.

    A log is read in its order: further threads only wait, which takes a tenth of the CPU time, and more where there
    are many processors. An audit reads with many processes.
    """
    gc.set_threshold(_OBJECTS)
    for name in _THREADS:
        os.environ.setdefault(name, "1")
