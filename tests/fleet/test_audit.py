"""audit: every run found once, bad files listed, unchanged files not read again, tables whole or absent."""

from __future__ import annotations

import gzip
import tarfile
import threading
from pathlib import Path

import pytest

from analyzer.errors import UserError
from analyzer.fleet import AuditOptions, audit
from analyzer.fleet.command import run_audit
from analyzer.fleet.query import export, query
from analyzer.fleet.store import Store
from analyzer.fleet.summary import load, summarise
from analyzer.resources import data_dir

SAMPLE = data_dir("samples") / "sglang" / "wrapper_nextn.log"
ONE = AuditOptions(workers=1)


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """A folder with a log, a compressed one, a tar of two, a file that is no log, an empty and a broken one."""
    folder = tmp_path / "logs"
    folder.mkdir()
    data = SAMPLE.read_bytes()
    (folder / "a.log").write_bytes(data)
    (folder / "b.log.gz").write_bytes(gzip.compress(data))
    with tarfile.open(folder / "c.tar.gz", "w:gz") as tar:
        tar.add(SAMPLE, "x/one.log")
        tar.add(SAMPLE, "x/two.log")
    (folder / "notes.txt").write_text("nothing of interest\n")
    (folder / "empty.log").write_bytes(b"")
    (folder / "torn.gz").write_bytes(gzip.compress(data)[:12])
    return folder


def test_every_run_once_and_bad_files_named(archive: Path, tmp_path: Path) -> None:
    result = audit([str(archive)], tmp_path / "out", ONE)
    runs = load(tmp_path / "out", "runs")
    assert runs.height == 4
    assert set(runs["pool_tokens"]) == {774081.0}
    assert [s.rpartition("/")[2] for s in runs["source"]] == ["a.log", "b.log.gz", "one.log", "two.log"]
    reasons = {Path(source.split("!")[0]).name: error for source, error in result.errors}
    assert set(reasons) == {"notes.txt", "empty.log", "torn.gz"}
    assert "nothing recognised" in reasons["notes.txt"]
    events = load(tmp_path / "out", "events")
    assert events.filter(events["kind"] == "pool_summary").height == 4


def test_unchanged_files_are_not_read_again(archive: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    first = audit([str(archive)], out, ONE)
    again = audit([str(archive)], out, ONE)
    assert (first.files, again.files, again.unchanged) == (6, 0, 6)
    assert load(out, "runs").height == 4
    (archive / "a.log").write_bytes(SAMPLE.read_bytes().replace(b"774081", b"774082"))
    changed = audit([str(archive)], out, ONE)
    assert changed.files == 1
    pools = dict(load(out, "runs").select("source", "pool_tokens").iter_rows())
    assert sorted(pools.values()) == [774081.0, 774081.0, 774081.0, 774082.0]
    (archive / "b.log.gz").unlink()
    audit([str(archive)], out, ONE)
    assert load(out, "runs").height == 3


def test_order_and_rows_do_not_depend_on_the_workers(archive: Path, tmp_path: Path) -> None:
    audit([str(archive)], tmp_path / "one", ONE)
    audit([str(archive)], tmp_path / "two", AuditOptions(workers=2))
    for table in ("runs", "ranks", "findings", "events", "series"):
        assert load(tmp_path / "one", table).equals(load(tmp_path / "two", table)), table


def test_an_interrupted_audit_goes_on(archive: Path, tmp_path: Path) -> None:
    def stop(done: int, total: int, result: object) -> None:
        if done == 2:
            raise KeyboardInterrupt

    out = tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        audit([str(archive)], out, ONE, stop)
    assert not (out / "runs.parquet").exists()
    result = audit([str(archive)], out, ONE)
    assert result.unchanged == 2
    assert load(out, "runs").height == 4


def test_two_audits_of_one_folder_are_refused(archive: Path, tmp_path: Path) -> None:
    store = Store(tmp_path / "out")
    refused: list[str] = []
    with store.writing():

        def other() -> None:
            try:
                audit([str(archive)], tmp_path / "out", ONE)
            except UserError as error:
                refused.append(str(error))

        thread = threading.Thread(target=other)
        thread.start()
        thread.join(20)
    assert "another audit is writing" in refused[0]


def test_a_missing_path_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such file") as caught:
        audit([str(tmp_path / "none")], tmp_path / "out", ONE)
    assert caught.value.status == 3


def test_query_and_export(archive: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    audit([str(archive)], out, ONE)
    frame = query(out, "SELECT engine, count(*) AS n FROM runs GROUP BY engine")
    assert frame.rows() == [("sglang", 4)]
    export(frame, tmp_path / "n.csv")
    assert (tmp_path / "n.csv").read_text() == "engine,n\nsglang,4\n"
    with pytest.raises(UserError, match="the query was refused"):
        query(out, "SELECT nope FROM runs")
    with pytest.raises(UserError, match="holds no audit"):
        query(tmp_path, "SELECT 1")


def test_summary_and_page(archive: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "fleet.html"
    status = run_audit(
        [str(archive)], [tmp_path / "out", page, tmp_path / "runs.csv"], engine="local", workers=1, ray_address=None,
        events=True, rule_dirs=(), fail_on="critical",
    )  # fmt: skip
    assert status == 1
    assert "4 runs in 6 files" in capsys.readouterr().out
    summary = summarise(tmp_path / "out")
    assert summary.totals["other"] == 1
    assert summary.causes["cause"][0] == "pool-cell-inflation" or "pool-cell-inflation" in set(summary.causes["cause"])
    text = page.read_text()
    assert "<script" in text
    assert "http://" not in text.replace("http://www.w3.org", "")
    assert len(list((tmp_path / "fleet_runs").iterdir())) == 4
    assert (tmp_path / "runs.csv").read_text().count("\n") == 5


def test_nothing_recognised(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("hello\n")
    status = run_audit(
        [str(tmp_path / "x.txt")], [], engine="local", workers=1, ray_address=None, events=True, rule_dirs=(),
        fail_on="never",
    )  # fmt: skip
    assert status == 3
