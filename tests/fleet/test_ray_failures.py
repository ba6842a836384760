"""Ray when things go wrong: workers and nodes that die, addresses that lead nowhere, results that cannot be written."""

from __future__ import annotations

import importlib.util
import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from analyzer.errors import OutputError, UserError
from analyzer.fleet import AuditOptions, audit, ray_engine
from analyzer.fleet.summary import load
from analyzer.fleet.worker import FileResult, ReadOptions, read_file
from analyzer.resources import data_dir
from tests.security.run_cli import quiet, run

HAS_RAY = importlib.util.find_spec("ray") is not None
pytestmark = [
    pytest.mark.ray,
    pytest.mark.skipif(not HAS_RAY, reason="Ray is not installed (pip install 'kvautopsy[ray]')"),
]
SAMPLE = data_dir("samples") / "sglang" / "wrapper_nextn.log"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    from ray.cluster_utils import Cluster

    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    yield made
    made.shutdown()


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    folder = tmp_path / "logs"
    folder.mkdir()
    for name in ("a", "b", "dies", "z"):
        shutil.copy(SAMPLE, folder / f"{name}.log")
    return folder


def tried(path: str) -> int:
    """Notes one more attempt at ``path`` beside it; how many there were before."""
    with Path(f"{path}.tried").open("a+") as file:
        file.write("x")
        file.seek(0)
        return len(file.read()) - 1


def dies(path: str, options: ReadOptions) -> FileResult:
    """As ``read_file``, in a process that dies over one of the files, each time."""
    if path.endswith("dies.log"):
        tried(path)
        os._exit(1)
    return read_file(path, options)


def dies_once(path: str, options: ReadOptions) -> FileResult:
    """As ``read_file``, in a process that dies over every file the first time."""
    if tried(path) == 0:
        os._exit(1)
    return read_file(path, options)


def slow(path: str, options: ReadOptions) -> FileResult:
    """As ``read_file``, slowly."""
    time.sleep(1)
    return read_file(path, options)


def full(path: str, options: ReadOptions) -> FileResult:
    """Stands for a worker that cannot write a page."""
    raise OutputError(f"{path}.html cannot be written: No space left on device")


Reader = Callable[[str, ReadOptions], FileResult]


def read_with(
    reader: Reader, logs: Path, out: Path, cluster: Any, monkeypatch: pytest.MonkeyPatch, **more: Any
) -> list[tuple[str, str]]:
    monkeypatch.setattr(ray_engine, "read_file", reader)
    return audit([f"{logs}/*.log"], out, AuditOptions(engine="ray", ray_address=cluster.address), **more).errors


def test_a_file_that_kills_its_worker_costs_that_file_only(
    logs: Path, tmp_path: Path, cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    errors = read_with(dies, logs, tmp_path / "out", cluster, monkeypatch)
    assert [(Path(source).name, reason[:20]) for source, reason in errors] == [("dies.log", "the Ray task failed:")]
    assert len((logs / "dies.log.tried").read_text()) == 4  # once, and three times more
    names = [Path(source).name for source in load(tmp_path / "out", "runs")["source"]]
    assert names == ["a.log", "b.log", "z.log"]


def test_a_worker_that_dies_once_costs_nothing(
    logs: Path, tmp_path: Path, cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert read_with(dies_once, logs, tmp_path / "out", cluster, monkeypatch) == []
    audit([f"{logs}/*.log"], tmp_path / "local", AuditOptions(workers=1))
    for table in ("runs", "findings", "events", "files"):
        assert load(tmp_path / "out", table).equals(load(tmp_path / "local", table)), table


def test_a_node_that_is_lost_costs_nothing(
    logs: Path, tmp_path: Path, cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = cluster.add_node(num_cpus=2)
    for number in range(8):
        shutil.copy(SAMPLE, logs / f"more{number}.log")
    gone = []

    def lose(done: int, total: int, result: FileResult | None) -> None:
        if result is not None and not gone:
            gone.append(node)
            cluster.remove_node(node, allow_graceful=False)

    assert read_with(slow, logs, tmp_path / "out", cluster, monkeypatch, progress=lose) == []
    assert gone and load(tmp_path / "out", "runs").height == 12


def test_a_page_that_cannot_be_written_ends_the_audit(
    logs: Path, tmp_path: Path, cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(OutputError, match=r"a\.log\.html cannot be written: No space left"):
        read_with(full, logs, tmp_path / "out", cluster, monkeypatch)
    assert not list((tmp_path / "out").glob("*.parquet"))


def test_the_address_of_the_environment(logs: Path, tmp_path: Path, cluster: Any) -> None:
    env = {**os.environ, "RAY_ADDRESS": cluster.address}
    done = run("audit", logs, "--engine", "ray", "-o", tmp_path / "out", env=env, timeout=120)
    assert done.returncode == 0, quiet(done)
    assert load(tmp_path / "out", "runs").height == 4


def test_an_address_that_leads_nowhere(logs: Path, tmp_path: Path) -> None:
    for address in ("127.0.0.1:1", "nonsense"):
        done = run("audit", logs, "--engine", "ray", "--ray-address", address, "-o", tmp_path / "out", timeout=120)
        assert done.returncode == 2, (address, done.stderr)
        assert f"no Ray cluster at {address}" in quiet(done)
        assert not list((tmp_path / "out").glob("*.parquet"))


def test_an_error_of_the_user_is_one(logs: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such file"):
        audit([str(logs / "none")], tmp_path / "out", AuditOptions(engine="ray"))
