"""Public tools as a measure of the machine, each by name; one that is missing stays in the table as missing.

ripgrep is the floor (it counts matching lines), lnav runs a typed query over a format written for these very lines,
Drain3 mines the templates. pgBadger and GoAccess cannot read logs of an engine: each gets a log of its own format.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

MINER = (
    "import sys\n"
    "from drain3 import TemplateMiner\n"
    "from drain3.template_miner_config import TemplateMinerConfig\n"
    "config = TemplateMinerConfig()\n"
    "config.profiling_enabled = False\n"
    "miner = TemplateMiner(config=config)\n"
    "for line in open(sys.argv[1], encoding='utf-8', errors='replace'):\n"
    "    miner.add_log_message(line.rstrip())\n"
    "print(len(miner.drain.clusters))\n"
)
# lnav tries the expression that matched last before the others: they must not match each other's lines.
_FORMATS = {
    "sglang": {
        "decode": r"^\[(?<timestamp>[\d-]+ [\d:]+)(?<rank> [^\]]*)?\] Decode batch, #running-req: (?<running>\d+), "
        r"#full token: (?<tokens>\d+), full token usage: (?<usage>[\d.]+), (?<body>.*)$",
        "other": r"^\[(?<timestamp>[\d-]+ [\d:]+)(?<rank> [^\]]*)?\] (?!Decode batch)(?<body>.*)$",
    },
    "vllm": {
        "stats": r"^(?:\((?<process>[^)]*)\) )?(?<level>[A-Z]+) (?<timestamp>[\d-]+ [\d:]+) \[(?<place>[^\]]*)\] "
        r"Engine (?<rank>\d+): Avg prompt throughput: (?<prompt>[\d.]+) tokens/s, Avg generation throughput: "
        r"(?<decode>[\d.]+) tokens/s, Running: (?<running>\d+) reqs, Waiting: (?<queued>\d+) reqs, GPU KV cache "
        r"usage: (?<usage>[\d.]+)%(?<body>.*)$",
        "other": r"^(?:\((?<process>[^)]*)\) )?(?<level>[A-Z]+) (?<timestamp>[\d-]+ [\d:]+) \[(?<place>[^\]]*)\] "
        r"(?!Engine \d)(?<body>.*)$",
    },
}
_NUMBERS = {"running": "integer", "queued": "integer", "tokens": "integer", "usage": "float", "prompt": "float",
            "decode": "float"}  # fmt: skip
_SAMPLES = {
    "sglang": "[2026-12-01 00:00:00 DP0 TP0 EP0] Decode batch, #running-req: 6, #full token: 14580, full token "
    "usage: 0.02, mamba num: 24",
    "vllm": "(APIServer pid=4711) INFO 12-01 00:00:00 [loggers.py:273] Engine 003: Avg prompt throughput: 1.9 "
    "tokens/s, Avg generation throughput: 66.8 tokens/s, Running: 5 reqs, Waiting: 0 reqs, GPU KV cache usage: 2.0%",
}
_STATS = {"sglang": "Decode batch,", "vllm": "KV cache usage:"}


@dataclass(frozen=True, slots=True)
class Peer:
    """A tool and what it is asked; ``command`` is empty where the tool is not installed."""

    name: str
    command: list[str]
    slow: bool = False
    """Too slow for a large file: it is given a smaller one of the same kind."""


def on_our_log(log: Path, engine: str, folder: Path) -> Iterator[Peer]:
    """The tools that read an engine's own log. ``folder`` takes what they need beside it."""
    yield Peer("ripgrep, count of one literal", _if("rg", ["rg", "-c", _STATS[engine], str(log)]))
    yield Peer("lnav, typed query", _if("lnav", lnav(log, engine, folder)))
    python = drain3_python()
    yield Peer("Drain3, templates", [python, "-c", MINER, str(log)] if python else [], slow=True)


def pgbadger(log: Path, folder: Path) -> Peer:
    """pgBadger's report on a PostgreSQL log, one process."""
    prefix = "%t [%p]: user=%u,db=%d "
    report = str(folder / "pgbadger.html")
    command = ["pgbadger", "-q", "-j", "1", "-f", "stderr", "-p", prefix, "-o", report, str(log)]
    return Peer("pgBadger, its own log (PostgreSQL)", _if("pgbadger", command), slow=True)


def goaccess(log: Path, folder: Path) -> Peer:
    """GoAccess's report on an access log."""
    command = ["goaccess", str(log), "--log-format=COMBINED", "--no-progress", "-o", str(folder / "goaccess.json")]
    return Peer("GoAccess, its own log (HTTP access)", _if("goaccess", command))


def lnav(log: Path, engine: str, folder: Path) -> list[str]:
    """lnav without a screen: the mean of a typed column over the log's statistics lines."""
    place = folder / "lnav" / "formats" / f"bench_{engine}"
    place.mkdir(parents=True, exist_ok=True)
    patterns = _FORMATS[engine]
    columns = {name: {"kind": _NUMBERS.get(name, "string")} for p in patterns.values() for name in _named(p)}
    form = {
        "$schema": "https://lnav.org/schemas/format-v1.schema.json",
        f"bench_{engine}": {
            "title": engine,
            "description": f"{engine} runtime log",
            "regex": {name: {"pattern": pattern} for name, pattern in patterns.items()},
            "value": columns,
            "timestamp-format": ["%Y-%m-%d %H:%M:%S", "%m-%d %H:%M:%S"],
            "sample": [{"line": _SAMPLES[engine]}],
        },
    }
    if any("<level>" in pattern for pattern in patterns.values()):
        form[f"bench_{engine}"]["level-field"] = "level"  # type: ignore[index]
    (place / "format.json").write_text(json.dumps(form, indent=1))
    query = f";SELECT count(*), avg(usage), max(running) FROM bench_{engine} WHERE usage IS NOT NULL"
    return ["lnav", "-n", "-q", "-I", str(folder / "lnav"), "-c", query, "-c", ":write-csv-to -", str(log)]


def drain3_python() -> str:
    """The interpreter that has Drain3: this one, or what ``DRAIN3_PYTHON`` names; empty without one."""
    if importlib.util.find_spec("drain3") is not None:
        return sys.executable
    other = os.environ.get("DRAIN3_PYTHON", "")
    if other and subprocess.run([other, "-c", "import drain3"], capture_output=True, check=False).returncode == 0:
        return other
    return ""


def _named(pattern: str) -> list[str]:
    import re

    return [name for name in re.findall(r"\(\?<(\w+)>", pattern) if name not in ("timestamp", "level", "body")]


def _if(program: str, command: list[str]) -> list[str]:
    return command if shutil.which(program) else []
