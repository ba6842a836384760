"""The results as one Markdown table, which a README can take as it is."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measure import Measured

HEAD = ("what", "MB read", "MB per CPU-second", "CPU s", "wall s", "peak MB", "spread", "note")
MISSING = "not installed"


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table; without ``result`` the tool is missing or there is only a note."""

    name: str
    megabytes: float = 0.0
    result: Measured | None = None
    note: str = ""

    @property
    def speed(self) -> float | None:
        """MB (10^6 bytes) per CPU-second of the whole process, start-up included."""
        if self.result is None or not self.megabytes or not self.result.cpu:
            return None
        return self.megabytes / self.result.cpu

    def cells(self) -> list[str]:
        """The columns of ``HEAD``."""
        if self.result is None:
            return [self.name, "", "", "", "", "", "", self.note or MISSING]
        r = self.result
        note = self.note if not r.status else f"{self.note + ', ' if self.note else ''}exit status {r.status}"
        speed = f"{self.speed:,.1f}" if self.speed is not None else ""
        size = f"{self.megabytes:,.0f}" if self.megabytes else ""
        return [
            self.name, size, speed, f"{r.cpu:.3f}", f"{r.wall:.3f}", f"{r.memory:,.0f}", f"{100 * r.spread:.0f} %", note
        ]  # fmt: skip


def markdown(rows: Sequence[Row], runs: int) -> str:
    """The table, with the machine above it and what the columns mean below."""
    lines = [
        f"{machine()}; load {os.getloadavg()[0]:.2f} at the end; median of {runs} runs.",
        "",
        "| " + " | ".join(HEAD) + " |",
        "| --- |" + " ---: |" * 6 + " --- |",
    ]
    lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in row.cells()) + " |" for row in rows]
    lines += [
        "",
        "MB are 10^6 bytes; CPU seconds are those of all processes of the command, start-up included, so that other "
        "load on the machine matters little; the peak is that of the largest process; the spread is the greatest less "
        "the least CPU time, over the median. pgBadger and GoAccess cannot read an engine's log: each reads a log of "
        "its own format, made by the same generator.",
    ]
    return "\n".join(lines) + "\n"


def machine() -> str:
    """Processor, cores, system and Python in a few words."""
    model = platform.processor() or platform.machine()
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                model = line.partition(":")[2].strip()
                break
    except OSError:
        pass
    return f"{model}, {os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}"
