"""events: what the grammars read, and what they lack, by template."""

from __future__ import annotations

import json
from pathlib import Path

from analyzer.listing import list_events, list_unrecognised
from benchmarks.generate import write_log

LINES = """\
[2026-11-30 03:24:48] Load weight begin. avail mem=139.13 GB
[2026-11-30 03:24:49] A new component says 17 things about /models/a
[2026-11-30 03:24:50] A new component says 18 things about /models/b
[2026-11-30 03:24:51 TP1] Memory pool end. avail mem=75.10 GB
"""


def log(tmp_path: Path) -> list[str]:
    path = tmp_path / "x.log"
    path.write_text(LINES)
    return [str(path)]


def test_events_as_json(tmp_path: Path) -> None:
    rows = [json.loads(line) for line in list_events(log(tmp_path), "jsonl")]
    assert [(r["line"], r["kind"], r["rank"]) for r in rows] == [
        (1, "load_weight_begin", ""),
        (4, "memory_pool_end", "TP1"),
    ]
    assert rows[0]["fields"]["avail"]["unit"] == "bytes"
    assert abs(rows[0]["fields"]["avail"]["value"] - 139.13 * 2**30) < 1


def test_events_of_one_kind(tmp_path: Path) -> None:
    lines = list(list_events(log(tmp_path), "text", frozenset({"memory_pool_end"})))
    assert len(lines) == 1
    assert "75.10 GiB" in lines[0]


def test_unrecognised_by_template(tmp_path: Path) -> None:
    rows = [json.loads(line) for line in list_unrecognised(log(tmp_path), "jsonl")]
    assert [(r["count"], r["line"]) for r in rows] == [(2, 2)]
    assert rows[0]["template"] == "A new component says <*> things about <*>"


def test_one_kind_as_lines_of_json(tmp_path: Path) -> None:
    path = write_log(tmp_path / "run.log", 1, "vllm", 1, 3)
    everything = [json.loads(line) for line in list_events([str(path)], "jsonl")]
    wanted = [event for event in everything if event["kind"] == "stats"]
    assert len(wanted) > 100
    assert [json.loads(line) for line in list_events([str(path)], "jsonl", frozenset({"stats"}))] == wanted
