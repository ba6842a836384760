"""Cut files: what could be read counts, the reason is named, and the files after them are read."""

from __future__ import annotations

import bz2
import gzip
import lzma
import tarfile
from collections.abc import Callable
from pathlib import Path

import fsspec
import pytest

from analyzer.errors import UserError
from analyzer.fleet import AuditOptions, audit
from analyzer.fleet.summary import load
from analyzer.resources import data_dir
from analyzer.sources import open_sources

DATA = (data_dir("samples") / "sglang" / "wrapper_nextn.log").read_bytes()
ONE = AuditOptions(workers=1)


def test_a_cut_gzip_file_keeps_its_run_and_names_the_error(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a_cut.log.gz").write_bytes(gzip.compress(DATA)[:-200])
    (folder / "b.log").write_bytes(DATA)
    with tarfile.open(folder / "c.tar", "w") as tar:
        tar.add(folder / "a_cut.log.gz", "a_cut.log.gz")
        tar.add(folder / "b.log", "b.log")
    result = audit([str(folder)], tmp_path / "out", ONE)
    assert load(tmp_path / "out", "runs")["pool_tokens"].to_list() == [774081.0] * 4
    assert [Path(source).name for source, _ in result.errors] == ["a_cut.log.gz", "c.tar!a_cut.log.gz"]
    assert all("not read to its end" in reason and "cut" in reason for _, reason in result.errors)


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_what_was_whole_before_the_cut_is_given(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    import random

    data = random.Random(1).randbytes(1_200_000).hex().encode()  # more than one block of bzip2
    path = tmp_path / "cut"
    path.write_bytes(pack(data)[:-1000])
    kept = bytearray()

    def read() -> None:
        for source in open_sources([path]):
            for chunk in source.chunks():
                kept.extend(chunk)

    with pytest.raises(UserError, match="cut"):
        read()
    assert data.startswith(kept)
    assert len(kept) > len(data) - 1_000_000


def test_an_object_store(tmp_path: Path) -> None:
    store = fsspec.filesystem("memory")
    store.pipe({"/audit/a.log": DATA, "/audit/sub/b.log.gz": gzip.compress(DATA)})
    try:
        result = audit(["memory://audit"], tmp_path / "out", ONE)
    finally:
        store.rm("/audit", recursive=True)
    runs = load(tmp_path / "out", "runs")
    assert runs["run"].to_list() == ["memory://audit/a.log#1", "memory://audit/sub/b.log.gz#1"]
    assert not result.errors
