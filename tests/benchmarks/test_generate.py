"""The benchmark's logs: the same bytes each time, in order, with every family of lines, each read by its own tool."""

from __future__ import annotations

import itertools
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from analyzer.listing import records_and_events
from benchmarks import generate, lines, peers

ENGINES = ("sglang", "vllm")


@pytest.mark.parametrize("engine", ENGINES)
def test_the_same_bytes_and_the_size_asked_for(tmp_path: Path, engine: str) -> None:
    one, two = (generate.write_log(tmp_path / name, 1.5, engine) for name in "ab")
    assert one.read_bytes() == two.read_bytes()
    assert 1.49e6 < one.stat().st_size <= 1.5e6
    other = generate.write_log(tmp_path / "c", 1.5, engine, seed=2)
    assert other.read_bytes() != one.read_bytes()


def test_time_never_runs_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generate, "_BLOCK", 200_000)  # many blocks, each an hour later
    log = generate.write_log(tmp_path / "a", 1)
    stamps = re.findall(r"^\[([\d-]+ [\d:]+)", log.read_text(), re.MULTILINE)
    assert stamps == sorted(stamps)
    assert len({stamp[:13] for stamp in stamps}) > 4


@pytest.mark.parametrize("engine", ENGINES)
def test_every_family_and_rank(tmp_path: Path, engine: str) -> None:
    """Each shape that a serving engine may print stands in a log of 25 MB; here the rare ones alone are looked up."""
    log = tmp_path / "a.log"
    log.write_text("\n".join(itertools.islice(lines.runtime_lines(engine), 80_000)) + "\n")
    kinds: dict[str, int] = {}
    ranks = set()
    unknown = total = 0
    for record, event in records_and_events([str(log)]):
        total += 1
        ranks.add(record.rank or record.process)
        if event is None:
            unknown += 1
        else:
            kinds[event.kind] = kinds.get(event.kind, 0) + 1
    assert not set(lines.rare_lines(engine)) - set(kinds)
    assert not lines.NOT_WHILE_SERVING & set(kinds)
    assert 0.01 < unknown / total < 0.05
    assert len(ranks) >= 4
    assert kinds["http_access"] > 0.4 * total


def test_rare_lines_leave_out_what_ends_a_server() -> None:
    for engine in ENGINES:
        found = lines.rare_lines(engine)
        assert len(found) > 15
        assert not lines.NOT_WHILE_SERVING & set(found)


def test_uninteresting_text_holds_no_event(tmp_path: Path) -> None:
    log = generate.write_quiet(tmp_path / "q.log", 0.2)
    assert all(event is None for _, event in records_and_events([str(log)]))


@pytest.mark.skipif(not shutil.which("lnav"), reason="lnav is not installed")
@pytest.mark.parametrize("engine", ENGINES)
def test_lnav_reads_the_typed_columns(tmp_path: Path, engine: str) -> None:
    log = generate.write_log(tmp_path / "a.log", 1, engine)
    done = subprocess.run(peers.lnav(log, engine, tmp_path), capture_output=True, text=True, check=True)
    count, mean, _ = done.stdout.splitlines()[1].split(",")
    wanted = {"sglang": r"Decode batch, .*#full token:", "vllm": r"Engine \d+: .*GPU KV cache usage"}[engine]
    start = generate.STARTUP[engine].read_text()
    assert 0 <= int(count) - len(re.findall(wanted, log.read_text())) + len(re.findall(wanted, start)) < 20
    assert float(mean) > 0


@pytest.mark.skipif(not shutil.which("pgbadger"), reason="pgBadger is not installed")
def test_pgbadger_reads_its_log(tmp_path: Path) -> None:
    log = generate.write_postgres(tmp_path / "pg.log", 0.2)
    peer = peers.pgbadger(log, tmp_path)
    subprocess.run(peer.command, check=True)
    queries = len(re.findall("duration:", log.read_text()))
    assert f"{queries:,}" in (tmp_path / "pgbadger.html").read_text()


@pytest.mark.skipif(not shutil.which("goaccess"), reason="GoAccess is not installed")
def test_goaccess_reads_every_line(tmp_path: Path) -> None:
    import json

    log = generate.write_access(tmp_path / "access.log", 0.2)
    subprocess.run(peers.goaccess(log, tmp_path).command, check=True, capture_output=True)
    general = json.loads((tmp_path / "goaccess.json").read_text())["general"]
    assert general["valid_requests"] == log.read_text().count("\n")
    assert general["failed_requests"] == 0


def test_a_missing_tool_keeps_its_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from benchmarks.table import Row, markdown

    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(peers, "drain3_python", str)
    found = list(peers.on_our_log(tmp_path / "a.log", "sglang", tmp_path))
    found += [peers.pgbadger(tmp_path / "b", tmp_path), peers.goaccess(tmp_path / "c", tmp_path)]
    assert len(found) == 5 and not any(peer.command for peer in found)
    table = markdown([Row(peer.name) for peer in found], 3)
    rows = [line for line in table.splitlines() if line.startswith("| ")][2:]
    assert len(rows) == 5 and all(row.endswith("| not installed |") for row in rows)


def test_what_is_measured() -> None:
    import sys

    from benchmarks.measure import measure

    code = "import subprocess,sys;x=bytearray(80<<20);sum(range(3_000_000));sys.exit(4)"
    got = measure([sys.executable, "-c", code], Path("/"), 2)
    assert 80 < got.memory < 160
    assert got.cpu > 0.02 and got.wall > 0.02 and got.status == 4
