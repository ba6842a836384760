"""The live screen: stage, memory ledger as it fills, findings as they are proved, load as sparklines."""

from __future__ import annotations

import time
from collections import deque
from typing import TYPE_CHECKING, Any, TextIO

from analyzer.live.session import Notice, Session
from analyzer.redact import clean
from analyzer.units import show, show_bytes

if TYPE_CHECKING:
    from rich.console import RenderableType

    from analyzer.report.model import RunReport

STEPS = ("arguments", "init", "weights", "pool", "graphs", "ready", "serving")
BARS = "▁▂▃▄▅▆▇█"
COLOURS = {"critical": "bold red", "warning": "yellow", "info": "cyan"}
REFRESH = 0.1


class Screen:
    """Draws a session on a terminal."""

    def __init__(self, out: TextIO) -> None:
        from rich.console import Console
        from rich.live import Live

        self._console = Console(file=out)
        self._notices: deque[Notice] = deque(maxlen=12)
        self._drawn = 0.0
        self._live = Live(console=self._console, auto_refresh=False, transient=True)
        self._live.start()

    def notice(self, notice: Notice) -> None:
        """Puts a notice on the screen at once."""
        self._notices.append(notice)
        self._drawn = 0.0

    def tick(self, session: Session) -> None:
        """Redraws, at most ten times a second."""
        now = time.monotonic()
        if now - self._drawn < REFRESH:
            return
        self._drawn = now
        self._live.update(self._page(session), refresh=True)

    def close(self) -> None:
        """Clears the screen's area."""
        self._live.stop()

    def _page(self, session: Session) -> RenderableType:
        from rich.console import Group
        from rich.text import Text

        report = session.report
        read = sum(i.lines for i in session.analysis.inputs)
        known = sum(i.recognised_lines for i in session.analysis.inputs)
        parts: list[Any] = [Text(f"{read:,} lines read, {known:,} recognised    Ctrl-C for the report", style="dim")]
        if report is not None and report.runs:
            run = report.runs[-1]
            reached = session.analysis.folder.runs()[-1].stages
            parts += [self._head(run, set(reached)), *self._ledger(run), *self._load(run)]
        parts.append(Text())
        for notice in self._notices:
            line = Text(f"{notice.severity:8} ", style=COLOURS.get(notice.severity, ""))
            line.append(clean(f"{notice.rule} {notice.text}").strip()[: self._console.width * 2], style="default")
            parts.append(line)
        return Group(*parts)

    @staticmethod
    def _head(run: RunReport, reached: set[str]) -> RenderableType:
        from rich.text import Text

        name = " ".join(filter(None, (run.engine, run.version)))
        text = Text(f"{clean(name)}   ", style="bold")
        for step in STEPS:
            text.append(("● " if step in reached else "○ ") + step + "  ", "green" if step in reached else "dim")
        text.append(f"  {run.outcome}", "bold red" if "crashed" in run.outcome else "bold")
        return text

    @staticmethod
    def _ledger(run: RunReport) -> list[RenderableType]:
        from rich.text import Text

        rows = run.ledger[:10]
        total = sum(r.bytes for r in rows) or 1
        lines: list[RenderableType] = []
        for row in rows:
            width = round(40 * row.bytes / total)
            line = Text(f"  {clean(row.item):28.28} {show_bytes(row.bytes):>11} ")
            line.append("█" * max(width, 1), "dim" if row.kind != "used" else "blue")
            lines.append(line)
        if (pool := run.facts.get("pool.tokens")) is not None:
            running = run.facts.get("limit.running")
            limit = f"   {show(running.value, 'requests')} running at most" if running else ""
            lines.append(Text(f"  pool {show(pool.value, 'tokens')} tokens{limit}", style="bold"))
        return lines

    @staticmethod
    def _load(run: RunReport) -> list[RenderableType]:
        from rich.text import Text

        points = run.series.get("points") or {}
        lines: list[RenderableType] = []
        for name, values in points.items() if isinstance(points, dict) else ():
            numbers = [v for v in values if isinstance(v, int | float)][-60:] if isinstance(values, list) else []
            if len(numbers) > 1:
                lines.append(Text(f"  {name:14} {sparkline(numbers)} {numbers[-1]:,.2f}"))
        return lines


def sparkline(values: list[float]) -> str:
    """``values`` as one line of bars, scaled from 0 to their maximum."""
    top = max(values) or 1
    return "".join(BARS[max(0, min(len(BARS) - 1, int(v / top * (len(BARS) - 1) + 0.5)))] for v in values)
