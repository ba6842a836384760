"""One record of a log: what a process said at one time, freed from every prefix put around it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Record:
    """One message of one process.

    ``line``/``last_line`` count LF from 1 in ``source``. ``text`` is the message without outer prefixes (container,
    collector, ray), engine prefix, ANSI codes; several physical lines are joined by ``\\n``. ``lines`` gives the
    number of each line of ``text`` where they are not consecutive (interleaved processes, glued lines), else None.
    ``stamp`` is the time as printed, ``time`` seconds since the epoch read as UTC (a missing year is 1972, a leap
    year), None without a stamp. ``rank`` is written as the engine writes it (``TP0``, ``DP1 TP3 EP3``, ``Worker_TP1``),
    ``process`` is the process tag (``APIServer``, ``EngineCore_DP0``), ``stream`` names the outer source (container,
    pod, service, ``stderr``) so that services interleaved in one file can be told apart.
    ``form``: ``log`` (had an engine prefix), ``raw`` (had none), ``bar`` (a progress bar's last frame),
    ``traceback`` (a Python traceback, whole or cut), ``stack`` (C++ frames or a dump of native frames).
    """

    source: str
    line: int
    last_line: int
    text: str
    form: str = "raw"
    time: float | None = None
    stamp: str = ""
    level: str = ""
    rank: str = ""
    process: str = ""
    pid: int | None = None
    module: str = ""
    stream: str = ""
    lines: tuple[int, ...] | None = None
    repeated: int = 1
    """How often the collector says that this record occurred (ray: ``[repeated 3x across cluster]``)."""

    def line_of(self, index: int) -> int:
        """The physical line of line ``index`` (from 0) of ``text``."""
        if self.lines is not None:
            return self.lines[min(index, len(self.lines) - 1)]
        return min(self.line + index, self.last_line)
