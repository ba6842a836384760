"""Headings that depend on what the log shows."""

from __future__ import annotations

from analyzer.report.model import RunReport
from analyzer.report.view import ledger_total, number_of
from analyzer.units import GIB


def ledger_title(run: RunReport) -> str:
    """``Where 139.13 GiB went``; without the figure where no line tells what the device had before."""
    known = any(number_of(run, name) for name in ("gpu.free_before_load", "gpu.total", "sizing.requested"))
    return f"Where {ledger_total(run.ledger) / GIB:.2f} GiB went" if known and len(run.ledger) > 1 else "Memory"
