"""Archives and files that were made to do harm, given to the whole program with limits on memory, time and files."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import resource
import tarfile
import zipfile
from pathlib import Path

import pytest
import zstandard

from tests.security.run_cli import SAMPLE, quiet, run

LIMIT = 1 << 30


def _bounded() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (LIMIT, LIMIT))
    resource.setrlimit(resource.RLIMIT_CPU, (40, 40))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["gz", "bz2", "xz", "zst", "zip", "zst in gz"])
def test_a_bomb_is_stopped(tmp_path: Path, kind: str) -> None:
    """400 MB of one byte, and of the same again inside: no more memory than for a small log."""
    size = 400 << 20
    plain = b"\0" * size
    bomb = tmp_path / "bomb.log"
    if kind == "gz":
        bomb.write_bytes(gzip.compress(plain, 1))
    elif kind == "bz2":
        bomb.write_bytes(bz2.compress(plain, 1))
    elif kind == "xz":
        bomb.write_bytes(lzma.compress(plain, preset=0))
    elif kind == "zst":
        bomb.write_bytes(zstandard.compress(plain))
    elif kind == "zip":
        with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
            archive.writestr("a.log", plain)
    else:
        bomb.write_bytes(gzip.compress(zstandard.compress(plain)))
    done = run("explain", bomb, before=_bounded, timeout=90)
    assert done.returncode == 3, done.stderr[-500:]
    assert len(quiet(done)) < 2000


def test_names_in_a_tar_reach_no_file(tmp_path: Path) -> None:
    outside = tmp_path / "secret.txt"
    outside.write_text("The server is fired up and ready to roll!\n")
    archive = tmp_path / "in" / "a.tar"
    archive.parent.mkdir()
    with tarfile.open(archive, "w") as tar:
        log = SAMPLE.read_bytes()
        for name in ("../../escape.log", "/tmp/kvautopsy_escape.log", "a\x1b[31m\u202e.log"):
            info = tarfile.TarInfo(name)
            info.size = len(log)
            tar.addfile(info, io.BytesIO(log))
        for name, kind, link in (
            ("soft.log", tarfile.SYMTYPE, str(outside)),
            ("hard.log", tarfile.LNKTYPE, str(outside)),
            ("pipe.log", tarfile.FIFOTYPE, ""),
            ("dev.log", tarfile.CHRTYPE, ""),
        ):
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, link
            tar.addfile(info)
    before = sorted(tmp_path.rglob("*"))
    done = run("explain", archive, "--format", "json")
    assert done.returncode in (0, 1), done.stderr
    assert sorted(tmp_path.rglob("*")) == before
    assert not Path("/tmp/kvautopsy_escape.log").exists()
    assert b"secret.txt" not in done.stdout
    assert b"\x1b" not in done.stdout and "\u202e".encode() not in done.stdout


def test_a_zip_that_lies_about_sizes_and_names(tmp_path: Path) -> None:
    archive = tmp_path / "a.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as zipped:
        zipped.writestr("../../x.log", SAMPLE.read_bytes())
    data = bytearray(archive.read_bytes())
    for at in range(0, len(data), max(1, len(data) // 60)):
        damaged = bytes(data[:at]) + bytes([data[at] ^ 0xFF]) + bytes(data[at + 1 :])
        (tmp_path / f"d{at}.zip").write_bytes(damaged)
    from analyzer.errors import UserError
    from analyzer.pipeline import explain

    for path in sorted(tmp_path.glob("d*.zip")):
        try:
            explain([str(path)])
        except UserError as error:
            assert error.status in (2, 3)


@pytest.mark.parametrize("kind", ["gz", "bz2", "xz", "zst", "tar"])
def test_every_cut_of_an_archive_is_a_report_or_a_sentence(tmp_path: Path, kind: str) -> None:
    from analyzer.errors import UserError
    from analyzer.pipeline import explain

    log = SAMPLE.read_bytes()[:20_000]
    if kind == "tar":
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w") as tar:
            info = tarfile.TarInfo("a.log")
            info.size = len(log)
            tar.addfile(info, io.BytesIO(log))
        data = buffer.getvalue()
    else:
        pack = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress, "zst": zstandard.compress}[kind]
        data = pack(log)
    for cut in range(1, len(data), max(1, len(data) // 25)):
        path = tmp_path / "cut"
        path.write_bytes(data[:cut])
        try:
            explain([str(path)])
        except UserError as error:
            assert error.status == 3


def test_folders_with_pipes_loops_and_closed_files(tmp_path: Path) -> None:
    (tmp_path / "good.log").write_bytes(SAMPLE.read_bytes())
    (tmp_path / "loop").symlink_to(tmp_path)
    (tmp_path / "dangling.log").symlink_to(tmp_path / "absent")
    os.mkfifo(tmp_path / "pipe.log")
    (tmp_path / "blob.safetensors").write_bytes(os.urandom(4000))
    done = run("explain", tmp_path, "--format", "json", timeout=30)
    assert done.returncode in (0, 1), done.stderr
    quiet(done)


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every file")
def test_a_file_that_may_not_be_read(tmp_path: Path) -> None:
    path = tmp_path / "closed.log"
    path.write_text("x")
    path.chmod(0)
    done = run("explain", path)
    assert done.returncode == 3
    assert "permission denied" in quiet(done)


def test_a_pipe_is_read_to_its_end(tmp_path: Path) -> None:
    import threading

    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(SAMPLE.read_bytes()), daemon=True)
    writer.start()
    done = run("explain", pipe, "--format", "json")
    writer.join(10)
    assert done.returncode in (0, 1)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("laugh", "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: [*b,*b,*b,*b,*b,*b,*b,*b]\n"),
        ("code", "id: !!python/object/apply:os.system ['touch /tmp/kvautopsy_owned']\n"),
        ("deep", "[" * 50_000),
        ("large", "id: " + "x" * 2_000_000),
        (
            "slow expression",
            "id: KV900\ncause: no-finding\ntitle: x\nwhen: failure.message ~ '(a+)+$'\nsays: x\nfix: x\n",
        ),
        (
            "dunder",
            "id: KV901\ncause: no-finding\ntitle: x\nwhen: pool.__class__ > 1\nsays: '{pool.__class__}'\nfix: x\n",
        ),
        ("binary", "\x00\x01\x02"),
        ("empty", ""),
    ],
)
def test_hostile_rule_files(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / "X.yaml").write_text(text)
    done = run("explain", SAMPLE, "--rules", tmp_path, before=_bounded, timeout=30)
    assert done.returncode == 2, (done.returncode, done.stderr[-800:])
    assert "X.yaml" in quiet(done)
    assert not Path("/tmp/kvautopsy_owned").exists()


def test_safetensors_headers_that_lie(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "llama", "num_hidden_layers": 1e400}')
    lies = [
        (1 << 63).to_bytes(8, "little"),
        (200_000_000).to_bytes(8, "little") + b"{}",
        (5).to_bytes(8, "little") + b"[" * 5,
        (40_000).to_bytes(8, "little") + b"[" * 40_000,
        b"",
        (2).to_bytes(8, "little") + b"{}",
    ]
    for header in lies:
        (tmp_path / "model.safetensors").write_bytes(header)
        done = run("inspect", tmp_path, before=_bounded)
        assert done.returncode in (0, 1, 2, 3)
        quiet(done)
    quiet(run("explain", SAMPLE, "--model-dir", tmp_path, "--fail-on", "never", before=_bounded))
