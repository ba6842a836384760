"""What a run's series shows over time: the metrics that can be drawn, with their figures."""

from __future__ import annotations

from dataclasses import dataclass

from analyzer.report.model import RunReport
from analyzer.units import number_or_none

_CHARTS = {
    "running": ("running", "requests"), "queued": ("waiting", "requests"), "usage": ("pool usage", "fraction"),
    "state_usage": ("state usage", "fraction"), "accept_length": ("accept length", "ratio"),
    "decode_rate": ("tokens/s", "rate"),
}  # fmt: skip
"""Metric of the series -> its name on a page, and what its figures are."""


@dataclass(slots=True)
class Chart:
    """One metric over the run. ``values`` may hold None where a line lacked it; ``times`` are seconds or None."""

    name: str
    label: str
    unit: str
    values: list[float | None]
    times: list[float | None]
    low: float
    mean: float
    high: float
    last: float


def charts_of(run: RunReport) -> list[Chart]:
    """The metrics of the run's series that can be drawn."""
    points = run.series.get("points")
    if not isinstance(points, dict):
        return []
    times = _numbers(points.get("time"))
    charts = []
    for name, (label, unit) in _CHARTS.items():
        values, stat = _numbers(points.get(name)), run.series.get(name)
        known = [v for v in values if v is not None]
        if not known or len(values) != len(times):
            continue
        stat = stat if isinstance(stat, dict) else {}
        low, high, last = (
            float(stat.get(k, d)) for k, d in (("min", min(known)), ("max", max(known)), ("last", known[-1]))
        )
        mean = float(stat.get("mean", sum(known) / len(known)))
        charts.append(Chart(name, label, unit, values, times, low, mean, high, last))
    return charts


def _numbers(values: object) -> list[float | None]:
    if not isinstance(values, list | tuple):
        return []
    return [number_or_none(value) for value in values]


def figure(value: float, unit: str) -> str:
    """A figure of a chart: fractions as per cent, the rest short."""
    if unit == "fraction":
        return f"{100 * value:.0f} %"
    return f"{value:,.0f}" if value >= 100 or float(value).is_integer() else f"{value:.2f}"
