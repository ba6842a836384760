"""An audit stopped at any point: nothing half written, a sentence, and the next one ends where it would have."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from analyzer.fleet import AuditOptions, audit
from analyzer.fleet import store as store_module
from analyzer.fleet.rows import TABLES
from analyzer.resources import data_dir

ONE = AuditOptions(workers=1)


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stopped") / "logs"
    folder.mkdir()
    for name in ("wrapper_nextn", "dense_retract", "mla_mf080"):
        shutil.copy(data_dir("samples") / "sglang" / f"{name}.log", folder)
    (folder / "notes.txt").write_text("no log\n")
    return folder


@pytest.fixture(scope="module")
def wanted(logs: Path) -> dict[str, pl.DataFrame]:
    audit([str(logs)], logs.parent / "wanted", ONE)
    return tables(logs.parent / "wanted")


def tables(folder: Path) -> dict[str, pl.DataFrame]:
    return {name: pl.read_parquet(folder / f"{name}.parquet") for name in TABLES}


def assert_same(folder: Path, wanted: dict[str, pl.DataFrame], case: object) -> None:
    for name, frame in tables(folder).items():
        assert frame.equals(wanted[name]), (case, name)
    assert sorted(path.name for path in folder.iterdir()) == sorted([".lock", *(f"{t}.parquet" for t in TABLES)]), case


class Killed(BaseException):
    """Stands for a kill that cannot be caught: nothing of the program may tidy up after it."""


def steps(monkeypatch: pytest.MonkeyPatch, stop: int, *, hard: bool) -> list[str]:
    """Counts every change of the store's folder; the one numbered ``stop`` does not happen."""
    done: list[str] = []

    def counted(name: str, real: Any) -> Any:
        def call(*args: Any, **more: Any) -> Any:
            if len(done) == stop or (hard and done[-1:] == ["dead"]):
                done.append("dead")
                raise Killed if hard else KeyboardInterrupt
            done.append(name)
            return real(*args, **more)

        return call

    monkeypatch.setattr(store_module, "write_table", counted("write", store_module.write_table))
    monkeypatch.setattr(Path, "replace", counted("rename", Path.replace))
    monkeypatch.setattr(store_module.shutil, "rmtree", counted("rmtree", shutil.rmtree))
    if hard:
        monkeypatch.setattr(Path, "unlink", counted("unlink", Path.unlink))
        monkeypatch.setattr(Path, "rmdir", counted("rmdir", Path.rmdir))
    return done


@pytest.mark.parametrize("hard", [False, True])
def test_stopped_before_each_change_of_the_folder(
    logs: Path, wanted: dict[str, pl.DataFrame], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hard: bool
) -> None:
    """``hard``: as if killed, so that no clean-up runs either. A part is written after every file."""
    monkeypatch.setattr(store_module, "_PART_ROWS", 1)
    for stop in range(200):
        out = tmp_path / f"{stop}"
        with monkeypatch.context() as patch:
            done = steps(patch, stop, hard=hard)
            try:
                audit([str(logs)], out, ONE)
                finished = True
            except (KeyboardInterrupt, Killed):
                finished = False
        present = {name for name in TABLES if (out / f"{name}.parquet").exists()}
        assert not present or present == set(TABLES) or (out / ".partial" / "committed").exists(), stop
        audit([str(logs)], out, ONE)
        assert_same(out, wanted, (stop, done))
        if finished:
            break
    assert finished and stop > 20


def test_killed_again_while_it_recovers(
    logs: Path, wanted: dict[str, pl.DataFrame], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second audit is killed too, at each of its changes, after one that was killed between two renames."""
    monkeypatch.setattr(store_module, "_PART_ROWS", 1)
    out = tmp_path / "out"
    with monkeypatch.context() as patch:
        made = steps(patch, 10**6, hard=True)
        audit([str(logs)], out, ONE)
    middle = len(made) - made[::-1].index("rename") - 3
    for stop in range(40):
        shutil.rmtree(out)
        for at in (middle, stop):
            with monkeypatch.context() as patch:
                steps(patch, at, hard=True)
                try:
                    audit([str(logs)], out, ONE)
                except Killed:
                    pass
        audit([str(logs)], out, ONE)
        assert_same(out, wanted, stop)


@pytest.fixture(scope="module")
def many(logs: Path) -> Path:
    """Logs enough to be stopped in their midst."""
    folder = logs.parent / "many"
    folder.mkdir()
    data = (logs / "wrapper_nextn.log").read_bytes()
    for number in range(60):
        (folder / f"{number}.log").write_bytes(data)
    return folder


def started(folder: Path, *paths: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "analyzer", "audit", "-j", "2", *map(str, paths)]
    for name in ("out", "page.html", "runs.csv"):
        command += ["-o", str(folder / name)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True)


def alive(group: int) -> Iterator[str]:
    """The processes of a group that still run (a zombie does not)."""
    for place in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = place.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[2]) == group and fields[0] not in "ZX":
            yield place.parent.name


def nobody_left(group: int) -> bool:
    end = time.monotonic() + 10
    while time.monotonic() < end:
        if not list(alive(group)):
            return True
        time.sleep(0.05)
    return False


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("to_all", [True, False])
def test_a_signal_while_reading(
    many: Path, tmp_path: Path, number: signal.Signals, to_all: bool
) -> None:  # a terminal sends Ctrl-C to the whole group, a supervisor SIGTERM to one process
    child = started(tmp_path, many)
    end = time.monotonic() + 30
    while not list(tmp_path.glob(".page_runs.*/*.html")) and time.monotonic() < end:
        time.sleep(0.02)
    os.killpg(child.pid, number) if to_all else child.send_signal(number)
    _, said = child.communicate(timeout=30)
    assert child.returncode == 128 + number
    word = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}[number]
    kept = f"what was read is kept in {tmp_path / 'out'}, the same command goes on from there"
    assert said.decode() == f"kvautopsy: {word}: {kept}\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out"]
    assert not list((tmp_path / "out").glob("*.parquet"))
    assert nobody_left(child.pid)


def test_workers_do_not_outlive_a_killed_audit(many: Path, tmp_path: Path) -> None:
    child = started(tmp_path, many)
    end = time.monotonic() + 30
    while not list(tmp_path.glob(".page_runs.*/*.html")) and time.monotonic() < end:
        time.sleep(0.02)
    assert len(list(alive(child.pid))) >= 3
    child.kill()
    child.communicate(timeout=30)
    assert nobody_left(child.pid)


def test_two_processes_and_one_folder(many: Path, tmp_path: Path) -> None:
    first = started(tmp_path, many)
    while not (tmp_path / "out" / ".partial").exists():
        time.sleep(0.01)
    time.sleep(0.1)
    second = started(tmp_path, many)
    _, said = second.communicate(timeout=60)
    assert second.returncode == 2
    assert said.decode().startswith("kvautopsy: another audit is writing to ") and said.count(b"\n") == 1
    _, said = first.communicate(timeout=60)
    assert (first.returncode, said) == (0, b"")
    assert pl.read_parquet(tmp_path / "out" / "runs.parquet").height == 60
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "page.html", "page_runs", "runs.csv"]
