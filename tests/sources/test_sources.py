"""Inputs of all kinds: files, pipes, folders, compression, archives, object stores."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import sys
import tarfile
import threading
import zipfile
from pathlib import Path

import pytest
import zstandard

from analyzer.errors import UserError
from analyzer.sources import Limits, Source, open_sources

LOG = b"[2026-11-30 02:55:49] one\n" * 1000


def read(source: Source) -> bytes:
    return b"".join(source.chunks())


def read_all(*paths: str | Path, limits: Limits | None = None) -> dict[str, bytes]:
    """Name -> bytes; each source is read before the next one is opened."""
    found = open_sources(paths, limits=limits) if limits else open_sources(paths)
    return {source.name: read(source) for source in found}


def tar_of(members: dict[str, bytes], mode: str = "w") -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as archive:  # type: ignore[call-overload]
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def zip_of(members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return buffer.getvalue()


COMPRESSED = {
    "gz": gzip.compress(LOG),
    "bz2": bz2.compress(LOG),
    "xz": lzma.compress(LOG),
    "zst": zstandard.compress(LOG),
    "gz of gz": gzip.compress(gzip.compress(LOG)),
    "two gz": gzip.compress(LOG[:500]) + gzip.compress(LOG[500:]),
    "two zst": zstandard.compress(LOG[:500]) + zstandard.compress(LOG[500:]),
}


@pytest.mark.parametrize("data", COMPRESSED.values(), ids=COMPRESSED)
def test_compression_by_its_first_bytes_whatever_the_name(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "server.log"
    path.write_bytes(data)
    (source,) = open_sources([path])
    assert source.name == str(path)
    assert read(source) == LOG
    assert read(source) == LOG, "a file can be read again"


def test_plain_file_and_empty_file(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_bytes(LOG)
    (tmp_path / "b.log").write_bytes(b"")
    sources = list(open_sources([tmp_path / "a.log", str(tmp_path / "b.log")]))
    assert [read(source) for source in sources] == [LOG, b""]


def test_stdin(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stdin:
        buffer = io.BytesIO(gzip.compress(LOG))

    monkeypatch.setattr(sys, "stdin", Stdin)
    (source,) = open_sources(["-"])
    assert (source.name, read(source)) == ("<stdin>", LOG)


def test_fifo(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(LOG,))
    writer.start()
    (source,) = open_sources([path])
    assert read(source) == LOG
    writer.join()


def test_folders_are_walked_in_order_and_links_that_loop_are_harmless(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "2.log").write_bytes(b"two")
    (tmp_path / "a.log").write_bytes(b"one")
    (tmp_path / ".hidden").write_bytes(b"no")
    (tmp_path / "b" / "loop").symlink_to(tmp_path)
    (tmp_path / "nowhere").symlink_to(tmp_path / "missing")
    (tmp_path / "c.tar.gz").write_bytes(tar_of({"x/3.log": b"three"}, "w:gz"))
    found = read_all(tmp_path)
    assert list(found.values()) == [b"one", b"two", b"three"]
    assert list(found)[-1] == f"{tmp_path}/c.tar.gz!x/3.log"


@pytest.mark.parametrize(
    "pack", [tar_of, lambda m: gzip.compress(tar_of(m)), lambda m: zstandard.compress(tar_of(m)), zip_of]
)
def test_archives(tmp_path: Path, pack) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "logs"
    members = {"a/run.log": LOG, "b.log.gz": gzip.compress(b"b"), "d.zip": zip_of({"e.log": b"e"}), "._x": b"mac"}
    path.write_bytes(pack(members))
    assert read_all(path) == {f"{path}!a/run.log": LOG, f"{path}!b.log.gz": b"b", f"{path}!d.zip!e.log": b"e"}


def test_names_in_archives_touch_nothing(tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    (inner / "evil.tar").write_bytes(tar_of({"../../outside.log": b"x", "/absolute.log": b"y"}))
    found = read_all(inner / "evil.tar")
    assert list(found.values()) == [b"x", b"y"]
    assert [entry.name for entry in tmp_path.rglob("*")] == ["inner", "evil.tar"]


def test_links_and_devices_in_archives_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "a.tar"
    with tarfile.open(path, "w") as archive:
        link = tarfile.TarInfo("link.log")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/hostname"
        archive.addfile(link)
        device = tarfile.TarInfo("device")
        device.type = tarfile.CHRTYPE
        archive.addfile(device)
    assert read_all(path) == {}


def test_bombs(tmp_path: Path) -> None:
    path = tmp_path / "bomb.gz"
    path.write_bytes(gzip.compress(b"\0" * (4 << 20)))
    with pytest.raises(UserError, match="100 times its size") as caught:
        read_all(path, limits=Limits(ratio=100, free=1 << 20))
    assert caught.value.status == 3
    with pytest.raises(UserError, match="1,000,000 bytes"):
        read_all(path, limits=Limits(total=1_000_000))
    (tmp_path / "bomb.zip").write_bytes(zip_of({"a": b"\0" * (4 << 20)}))
    with pytest.raises(UserError, match="100 times its size"):
        read_all(tmp_path / "bomb.zip", limits=Limits(ratio=100, free=1 << 20))
    (tmp_path / "many.tar").write_bytes(tar_of({f"{n}.log": b"" for n in range(20)}))
    with pytest.raises(UserError, match="more than 10 members"):
        read_all(tmp_path / "many.tar", limits=Limits(members=10))
    deep = LOG
    for _ in range(6):
        deep = gzip.compress(deep)
    (tmp_path / "deep.gz").write_bytes(deep)
    with pytest.raises(UserError, match="layers"):
        read_all(tmp_path / "deep.gz")


def test_a_log_that_compresses_well_is_no_bomb(tmp_path: Path) -> None:
    path = tmp_path / "idle.log.zst"
    data = b"[2026-11-30 02:55:49] idle\n" * 400_000
    path.write_bytes(zstandard.compress(data, 19))
    assert len(read_all(path)[str(path)]) == len(data)


@pytest.mark.parametrize("kind", ["gz", "bz2", "xz", "zst"])
def test_damaged_data_is_told(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "cut"
    path.write_bytes(COMPRESSED[kind][:-9])
    with pytest.raises(UserError, match=r"(ends too early|damaged)") as caught:
        read_all(path)
    assert caught.value.status == 3


def test_what_stands_before_the_damage_is_read(tmp_path: Path) -> None:
    path = tmp_path / "cut.gz"
    path.write_bytes(gzip.compress(os.urandom(1 << 20))[:-90_000])
    (source,) = open_sources([path])
    read_bytes = 0
    with pytest.raises(UserError, match="ends too early"):
        for chunk in source.chunks():
            read_bytes += len(chunk)
    assert read_bytes > 500_000


def test_damaged_archives(tmp_path: Path) -> None:
    (tmp_path / "a.tar").write_bytes(tar_of({"a.log": LOG})[:9000])
    (tmp_path / "a.zip").write_bytes(zip_of({"a.log": LOG})[:60])
    for name in ("a.tar", "a.zip"):
        with pytest.raises(UserError, match="damaged"):
            read_all(tmp_path / name)


def test_what_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such file") as caught:
        list(open_sources([tmp_path / "missing.log"]))
    assert caught.value.status == 3
    (tmp_path / "good.log").write_bytes(b"good")
    sources = list(open_sources([tmp_path / "missing.log", tmp_path / "good.log"], keep_errors=True))
    assert [source.error is None for source in sources] == [False, True]
    with pytest.raises(UserError):
        sources[0].chunks()
    assert read(sources[1]) == b"good"


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf16_with_a_byte_order_mark(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "windows.log"
    path.write_bytes(("\ufeff" + "[2026-11-30 02:55:49] größe\r\n" * 50_000).encode(encoding))
    assert read_all(path)[str(path)] == "[2026-11-30 02:55:49] größe\r\n".encode() * 50_000


def test_object_store() -> None:
    fsspec = pytest.importorskip("fsspec")
    store = fsspec.filesystem("memory")
    store.pipe("/bucket/b.log.gz", gzip.compress(LOG))
    store.pipe("/bucket/a.log", b"a")
    assert read_all("memory://bucket/a.log") == {"memory://bucket/a.log": b"a"}
    assert list(read_all("memory://bucket").values()) == [b"a", LOG]
    assert list(read_all("memory://bucket/*.gz").values()) == [LOG]
    with pytest.raises(UserError, match="no such object"):
        read_all("memory://bucket/missing.log")


def test_a_stream_is_not_read_ahead(tmp_path: Path) -> None:
    """A live pipe hands on what it has, and does not wait for a full piece."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    more = threading.Event()

    def write() -> None:
        with path.open("wb", buffering=0) as pipe:
            pipe.write(b"x" * 600)
            more.wait(10)
            pipe.write(b"end")

    writer = threading.Thread(target=write)
    writer.start()
    (source,) = open_sources([path])
    chunks = source.chunks()
    assert next(chunks)
    more.set()
    assert b"".join(chunks).endswith(b"end")
    writer.join()


def test_binary_files_are_read_only_when_named(tmp_path: Path) -> None:
    weights = tmp_path / "model.safetensors"
    weights.write_bytes(b'\x10\0\0\0\0\0\0\0{"a": 1}' + b"\x01\0" * 100)
    (tmp_path / "truncated.log").write_bytes(b"\0" * 4096 + LOG)
    assert list(read_all(tmp_path)) == [str(tmp_path / "truncated.log")]
    assert list(read_all(weights)) == [str(weights)]
    (tmp_path / "all.zip").write_bytes(zip_of({"w.bin": weights.read_bytes(), "a.log": LOG}))
    assert list(read_all(tmp_path / "all.zip")) == [f"{tmp_path}/all.zip!a.log"]
