"""A full disk under an audit: what it wrote is whole or absent, one sentence says so, and it goes on with more room."""

from __future__ import annotations

import shutil
from pathlib import Path

import polars as pl
import pytest

from analyzer.fleet.rows import TABLES
from analyzer.resources import data_dir
from tests.security.run_cli import quiet, run
from tests.support.small_disk import grow, small_disk


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three logs, and what an audit of them gives where there is room, in ``room``."""
    folder = tmp_path_factory.mktemp("full")
    (folder / "logs").mkdir()
    for name in ("wrapper_nextn", "dense_retract", "mla_mf080"):
        shutil.copy(data_dir("samples") / "sglang" / f"{name}.log", folder / "logs")
    outputs = [part for name in ("audit", "runs.csv", "page.html") for part in ("-o", folder / "room" / name)]
    (folder / "room").mkdir()
    assert run("audit", "-j", "1", folder / "logs", *outputs).returncode == 0
    return folder


def tables(folder: Path) -> dict[str, pl.DataFrame]:
    return {name: pl.read_parquet(folder / f"{name}.parquet") for name in TABLES}


def left(disk: Path) -> list[str]:
    return sorted(str(path.relative_to(disk)) for path in disk.rglob("*") if path.is_file())


def told(done: object) -> str:
    """The one line on standard error."""
    said = quiet(done)  # type: ignore[arg-type]
    assert said.startswith("kvautopsy: ") and said.count("\n") == 1, said
    return said


@pytest.mark.parametrize("kilobytes", [4, 16, 28, 40, 64, 96])
def test_tables_are_all_there_or_none(logs: Path, tmp_path: Path, kilobytes: int) -> None:
    with small_disk(tmp_path / "disk", kilobytes) as disk:
        out = disk / "audit"
        done = run("audit", "-j", "1", logs / "logs", "-o", out)
        if done.returncode != 0:
            assert done.returncode == 2
            assert "cannot be written: No space left on device" in told(done)
            assert not list(out.glob("*.parquet"))
            grow(disk, 4096)
            assert run("audit", "-j", "1", logs / "logs", "-o", out).returncode == 0
        for name, frame in tables(out).items():
            assert frame.equals(tables(logs / "room" / "audit")[name]), name
        assert left(out) == sorted([".lock", *(f"{name}.parquet" for name in TABLES)])


def test_the_tables_before_stay_as_they_were(logs: Path, tmp_path: Path) -> None:
    shutil.copytree(logs / "logs", tmp_path / "logs")
    with small_disk(tmp_path / "disk", 140) as disk:
        assert run("audit", "-j", "1", tmp_path / "logs", "-o", disk / "audit").returncode == 0
        before = {name: (disk / "audit" / name).read_bytes() for name in left(disk / "audit")}
        for number in range(20):
            shutil.copy(tmp_path / "logs" / "wrapper_nextn.log", tmp_path / "logs" / f"more{number}.log")
        done = run("audit", "-j", "1", tmp_path / "logs", "-o", disk / "audit")
        assert done.returncode == 2 and "No space left" in told(done)
        assert {name: (disk / "audit" / name).read_bytes() for name in before} == before


@pytest.mark.parametrize("kilobytes", [16, 80, 200])
def test_a_page_and_its_runs_pages(logs: Path, tmp_path: Path, kilobytes: int) -> None:
    whole = sum(path.stat().st_size for path in (logs / "room" / "page_runs").iterdir())
    assert whole > 200 << 10, "the case must fill the disk"
    with small_disk(tmp_path / "disk", kilobytes) as disk:
        done = run("audit", "-j", "2", logs / "logs", "-o", disk / "page.html")
        assert done.returncode == 2 and "No space left" in told(done)
        assert left(disk) == []


@pytest.mark.parametrize("ending", ["csv", "jsonl", "json", "parquet"])
def test_exports(logs: Path, tmp_path: Path, ending: str) -> None:
    with small_disk(tmp_path / "disk", 8) as disk:
        target = disk / f"runs.{ending}"
        target.write_text("old")
        (disk / "filler").write_bytes(b"x" * 4096)  # nothing more fits
        for args in (
            ("audit", "-j", "1", logs / "logs", "-o", target),
            ("query", logs / "room" / "audit", "SELECT * FROM events", "-o", target),
        ):
            done = run(*args)
            assert done.returncode == 2 and "No space left" in told(done)
            assert left(disk) == ["filler", target.name] and target.read_text() == "old"


@pytest.mark.parametrize("kilobytes", [4, 24, 60])
def test_tables_of_events(logs: Path, tmp_path: Path, kilobytes: int) -> None:
    with small_disk(tmp_path / "disk", kilobytes) as disk:
        done = run("events", logs / "logs", "-o", disk / "events")
        assert done.returncode == 2 and "cannot be written: No space left on device" in told(done)
        assert list(disk.iterdir()) == []


@pytest.mark.parametrize("ending", ["html", "md", "json", "txt"])
def test_a_comparison(logs: Path, tmp_path: Path, ending: str) -> None:
    one, two = (logs / "logs" / f"{name}.log" for name in ("wrapper_nextn", "mla_mf080"))
    with small_disk(tmp_path / "disk", 8) as disk:
        target = disk / f"c.{ending}"
        target.write_text("old")
        (disk / "filler").write_bytes(b"x" * 4096)
        done = run("compare", one, two, "-o", target)
        assert done.returncode == 2 and "No space left" in told(done)
        assert left(disk) == [target.name, "filler"] and target.read_text() == "old"


def test_standard_output_is_full(logs: Path) -> None:
    import subprocess
    import sys

    room = logs / "room" / "audit"
    for args in (["audit", "-j", "1", str(logs / "logs")], ["query", str(room), "SELECT * FROM runs", "-f", "csv"]):
        with Path("/dev/full").open("wb") as full:
            done = subprocess.run(
                [sys.executable, "-m", "analyzer", *args], stdout=full, stderr=subprocess.PIPE, timeout=60
            )
        assert done.returncode == 2 and done.stderr.count(b"\n") == 1, (args, done.stderr)
