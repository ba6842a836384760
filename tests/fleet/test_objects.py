"""Object stores: an object that has not changed is not read again, a bad one never stops the rest."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest

from analyzer.errors import UserError
from analyzer.fleet import AuditOptions, audit
from analyzer.fleet.summary import load
from analyzer.resources import data_dir
from analyzer.sources import open_sources
from analyzer.sources.remote import identity

DATA = (data_dir("samples") / "sglang" / "wrapper_nextn.log").read_bytes()
ONE = AuditOptions(workers=1)


@pytest.fixture
def store() -> Iterator[Any]:
    store = fsspec.filesystem("memory")
    store.pipe({"/logs/a.log": DATA, "/logs/sub/b.log.gz": gzip.compress(DATA), "/logs/sub/c.log": DATA})
    yield store
    store.rm("/logs", recursive=True)


def test_what_has_not_changed_is_not_read_again(store: Any, tmp_path: Path) -> None:
    out = tmp_path / "out"
    first = audit(["memory://logs"], out, ONE)
    again = audit(["memory://logs"], out, ONE)
    assert (first.files, first.unchanged) == (3, 0)
    assert (again.files, again.unchanged) == (0, 3)
    store.pipe("/logs/a.log", DATA.replace(b"774081", b"774082"))
    changed = audit(["memory://logs"], out, ONE)
    assert (changed.files, changed.unchanged) == (1, 2)
    assert load(out, "runs")["pool_tokens"].to_list() == [774082.0, 774081.0, 774081.0]
    store.rm("/logs/sub/c.log")
    audit(["memory://logs"], out, ONE)
    assert load(out, "runs")["source"].to_list() == ["memory://logs/a.log", "memory://logs/sub/b.log.gz"]


def test_patterns_and_overlaps_count_once(store: Any, tmp_path: Path) -> None:
    result = audit(["memory://logs/sub/*.log", "memory://logs", "memory://logs/a.log"], tmp_path / "out", ONE)
    assert result.files == 3
    with pytest.raises(UserError, match="no such object") as caught:
        audit(["memory://logs/none*"], tmp_path / "other", ONE)
    assert caught.value.status == 3


def test_an_unreadable_object_is_listed_and_the_rest_is_read(
    store: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = type(store).open

    def refusing(self: Any, path: str, *args: Any, **more: Any) -> Any:
        if path.endswith("a.log"):
            raise PermissionError("403 Forbidden")
        return real(self, path, *args, **more)

    monkeypatch.setattr(type(store), "open", refusing)
    result = audit(["memory://logs"], tmp_path / "out", ONE)
    assert [source for source, _ in result.errors] == ["memory://logs/a.log"]
    assert "403 Forbidden" in result.errors[0][1]
    assert load(tmp_path / "out", "runs").height == 2
    names = {s.name: s.error for s in open_sources(["memory://logs"], keep_errors=True)}
    assert names["memory://logs/a.log"] is not None and names["memory://logs/sub/c.log"] is None
    with pytest.raises(UserError, match="403 Forbidden"):
        list(open_sources(["memory://logs"]))


@pytest.mark.parametrize(
    ("about", "same", "other"),
    [
        ({"size": 9, "ETag": '"abc"', "LastModified": 1}, {"LastModified": 2}, {"ETag": '"abd"'}),
        ({"size": 9, "md5Hash": "x"}, {"updated": "later"}, {"md5Hash": "y"}),
        ({"size": 9, "last_modified": "2026-01-01"}, {}, {"last_modified": "2026-01-02"}),
        ({"size": 9, "ETag": "abc"}, {}, {"size": 10}),
    ],
)
def test_what_a_store_says_of_an_object(
    store: Any, monkeypatch: pytest.MonkeyPatch, about: dict[str, Any], same: dict[str, Any], other: dict[str, Any]
) -> None:
    said: dict[str, Any] = {}
    monkeypatch.setattr(type(store), "info", lambda self, path, **_: {"type": "file", **said})

    def of(**row: Any) -> tuple[int, str]:
        said.clear()
        said.update(row)
        return identity("memory://logs/a.log")

    assert of(**about) == of(**{**about, **same})
    assert of(**about) != of(**{**about, **other})
    assert of(size=9) == (9, "")  # nothing to go by: it is read each time
    assert of(**{**about, "type": "directory"}) == (0, "")
