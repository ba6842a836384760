"""The Ray engine gives the same rows as the local one, on a real local cluster of two nodes."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path

import pytest

from analyzer.errors import UserError
from analyzer.fleet import AuditOptions, audit
from analyzer.fleet.summary import load
from analyzer.resources import data_dir

HAS_RAY = importlib.util.find_spec("ray") is not None


@pytest.mark.ray
@pytest.mark.skipif(not HAS_RAY, reason="Ray is not installed (pip install 'kvautopsy[ray]')")
def test_ray_rows_equal_local_rows(tmp_path: Path) -> None:
    from ray.cluster_utils import Cluster

    folder = tmp_path / "logs"
    folder.mkdir()
    for log in sorted((data_dir("samples") / "sglang").glob("*.log")):
        shutil.copy(log, folder)
    (folder / "notes.txt").write_text("no log\n")
    audit([str(folder)], tmp_path / "local", AuditOptions(workers=1))
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    try:
        cluster.add_node(num_cpus=1)
        audit([str(folder)], tmp_path / "ray", AuditOptions(engine="ray", ray_address=cluster.address))
    finally:
        cluster.shutdown()
    for table in ("runs", "ranks", "findings", "events", "series", "files"):
        assert load(tmp_path / "ray", table).equals(load(tmp_path / "local", table)), table


@pytest.mark.skipif(HAS_RAY, reason="only where Ray is missing")
def test_without_ray_a_sentence_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("x\n")
    with pytest.raises(UserError, match=r"kvautopsy\[ray\]"):
        audit([str(tmp_path / "a.log")], tmp_path / "out", AuditOptions(engine="ray"))
