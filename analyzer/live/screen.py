"""The live screen: stage, memory ledger as it fills, findings as they are proved, load as sparklines."""

from __future__ import annotations

import time
from collections import deque
from typing import TYPE_CHECKING, TextIO

from analyzer.live.session import Notice, Session
from analyzer.redact import clean
from analyzer.report.charts import charts_of, figure
from analyzer.report.sheet import sparkline
from analyzer.report.styles import OUTCOMES, SEVERITIES
from analyzer.report.view import engine_of
from analyzer.units import show, show_bytes

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

    from analyzer.report.model import RunReport

STEPS = ("arguments", "init", "weights", "pool", "graphs", "ready", "serving")
REFRESH = 0.1
WIDE = 90
"""Columns from which the names of the ledger's rows have more room."""
LEAST_TOLD = 3
"""Findings that stay on the lowest screen."""


class Screen:
    """Draws a session on a terminal."""

    def __init__(self, out: TextIO) -> None:
        from rich.console import Console
        from rich.live import Live

        self._console = Console(file=out)
        self._notices: deque[Notice] = deque(maxlen=40)
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

        width, height = self._console.size
        report = session.report
        read = sum(i.lines for i in session.analysis.inputs)
        known = sum(i.recognised_lines for i in session.analysis.inputs)
        parts: list[Text] = [Text(f"{read:,} lines read, {known:,} recognised    Ctrl-C for the report", style="dim")]
        told = min(len(self._notices), max(LEAST_TOLD, height // 3))
        if report is not None and report.runs:
            run = report.runs[-1]
            reached = session.analysis.folder.runs()[-1].stages
            parts.append(self._head(run, set(reached), width))
            if session.progress:
                parts.append(Text(f"  {clean(session.progress)}", style="magenta"))
            load = self._load(run, width)
            room = height - len(parts) - told - 2
            ledger = self._ledger(run, width, min(max(0, room), max(1, room - len(load))))
            parts += [*ledger, *load[: max(0, room - len(ledger))]]
        parts.append(Text())
        for notice in self._kept(told):
            line = Text(f"{notice.severity:8} ", style=SEVERITIES.get(notice.severity, ""))
            line.append(clean(f"{notice.rule} {notice.text}").strip(), style="default")
            parts.append(line)
        for part in parts:  # one row each: what is wrapped pushes the newest finding off the screen
            part.no_wrap, part.overflow = True, "ellipsis"
        return Group(*parts)

    def _kept(self, room: int) -> list[Notice]:
        """``room`` notices in the order in which they came: the gravest, and of these the latest."""
        grave = {"critical": 0, "warning": 1}
        order = sorted(range(len(self._notices)), key=lambda i: (grave.get(self._notices[i].severity, 2), -i))
        return [self._notices[i] for i in sorted(order[:room])]

    @staticmethod
    def _head(run: RunReport, reached: set[str], width: int) -> Text:
        from rich.text import Text

        engine = engine_of(run).split(" (")[0]  # how the version is known is for the report
        text = Text(f"{clean(engine)}  ", style="bold")
        text.append(f"{run.outcome}   ", OUTCOMES.get(run.outcome, "bold"))
        short = text.cell_len + sum(len(step) + 4 for step in STEPS) > width
        for step in STEPS:
            mark = "● " if step in reached else "○ "
            if short:
                mark = mark[0]
            last = [s for s in STEPS if s in reached][-1:]
            text.append(mark + ("" if short and [step] != last else step + "  "), "green" if step in reached else "dim")
        return text

    @staticmethod
    def _ledger(run: RunReport, width: int, room: int) -> list[Text]:
        """The ledger in at most ``room`` rows: the pool's size first to be kept, then the largest items."""
        from rich.text import Text

        lines: list[Text] = []
        if (pool := run.facts.get("pool.tokens")) is not None and room > 0:
            running = run.facts.get("limit.running")
            limit = f"   {show(running.value, 'requests')} running at most" if running else ""
            lines.append(Text(f"  pool {show(pool.value, 'tokens')} tokens{limit}", style="bold"))
        kept = sorted(run.ledger, key=lambda r: -r.bytes)[: min(10, max(0, room - len(lines)))]
        rows = [r for r in run.ledger if r in kept]
        total = sum(r.bytes for r in run.ledger) or 1
        label = 28 if width >= WIDE else 20
        for row in rows:
            line = Text(f"  {clean(row.item):{label}.{label}} {show_bytes(row.bytes):>11} ")
            size = round(max(0, min(40, width - label - 16)) * row.bytes / total)
            line.append("█" * max(size, 1), "dim" if row.kind != "used" else "blue")
            lines.insert(len(lines) - (pool is not None), line)
        return lines

    @staticmethod
    def _load(run: RunReport, width: int) -> list[Text]:
        from rich.text import Text

        most = max(8, min(60, width - 32))
        return [
            Text(f"  {chart.label:14} {sparkline(known[-most:], most)} {figure(chart.last, chart.unit)}")
            for chart in charts_of(run)
            if len(known := [value for value in chart.values if value is not None]) > 1
        ]
