"""How a terminal colours what a page says: one look for every page."""

from __future__ import annotations

OUTCOMES = {
    "serving": "green", "stopped": "green", "degraded": "yellow", "crashed at startup": "bold red",
    "crashed at runtime": "bold red",
}  # fmt: skip
SEVERITIES = {"critical": "bold red", "warning": "yellow", "info": "cyan"}
