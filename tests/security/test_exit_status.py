"""Exit statuses of the contract, and a sentence instead of a traceback for every wrong use."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.security.run_cli import CRASH, ROOT, SAMPLE, quiet, run


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("odd")
    (folder / "empty.log").write_bytes(b"")
    (folder / "garbage.log").write_bytes(bytes(range(256)) * 40)
    (folder / "nothing").mkdir()
    (folder / "bad.gz").write_bytes(b"\x1f\x8b\x08\x00garbage")
    (folder / "bad.zip").write_bytes(b"PK\x03\x04garbage")
    (folder / "loop").symlink_to(folder / "loop")
    return folder


@pytest.mark.parametrize(
    ("name", "status"),
    [
        ("empty.log", 3),
        ("garbage.log", 3),
        ("absent.log", 3),
        ("nothing", 3),
        ("bad.gz", 3),
        ("bad.zip", 3),
        ("loop", 3),
        ("x" * 5000, 3),
    ],
)
@pytest.mark.parametrize("command", ["explain", "events"])
def test_nothing_to_read_is_three(place: Path, command: str, name: str, status: int) -> None:
    done = run(command, place / name)
    assert done.returncode == status, done.stderr
    quiet(done)


def test_nothing_found_is_zero_and_a_critical_finding_one(tmp_path: Path) -> None:
    assert run("explain", CRASH).returncode == 1
    assert run("explain", CRASH, "--fail-on", "never").returncode == 0
    healthy = tmp_path / "healthy.log"
    healthy.write_bytes((ROOT / "samples/failures/vllm_0.24.0_normal.log").read_bytes())
    assert run("explain", healthy).returncode == 0


WRONG = [
    ["--no-such-option"],
    ["no-such-command"],
    ["explain", "--format", "pdf", str(SAMPLE)],
    ["explain", "--fail-on", "always", str(SAMPLE)],
    ["explain", "--exit-code", "many", str(SAMPLE)],
    ["explain", "--draft-file-bytes", "lots", str(SAMPLE)],
    ["explain", "--model-dir", "/no/such/folder", str(SAMPLE)],
    ["explain", "-o", "report.exe", str(SAMPLE)],
    ["events", "--format", "xml", str(SAMPLE)],
    ["audit"],
    ["audit", str(SAMPLE), "-j", "0"],
    ["compare"],
    ["inspect"],
    ["query"],
    ["attach"],
    ["plan"],
    ["rules", "NOPE99"],
]


@pytest.mark.parametrize("args", WRONG, ids=lambda args: " ".join(args)[:40])
def test_wrong_usage_is_two(args: list[str]) -> None:
    done = run(*args)
    assert done.returncode == 2, (done.returncode, done.stderr)
    assert quiet(done).strip()
    assert not done.stdout.strip()


ODD = [
    ["inspect", "{garbage}"],
    ["inspect", "{nothing}"],
    ["inspect", "/dev/null"],
    ["plan", "{nothing}"],
    ["plan", "--like", "{garbage}", "{nothing}"],
    ["query", "{nothing}", "select 1"],
    ["query", "{garbage}", "select * from runs"],
    ["compare", "{garbage}", "{empty}"],
    ["compare", "{garbage}", "{absent}"],
    ["audit", "{garbage}", "{empty}", "{absent}"],
    ["prove-spec", "{garbage}"],
    ["prove-spec", "--metrics", "{garbage}", "{empty}"],
    ["explain", "--baseline", "{garbage}", str(SAMPLE)],
    ["explain", "--metrics", "{garbage}", str(SAMPLE)],
    ["explain", "--metrics", "{absent}", str(SAMPLE)],
    ["explain", "--nvidia-smi", "{garbage}", str(SAMPLE)],
    ["explain", "--rules", "{absent}", str(SAMPLE)],
    ["explain", "--rules", "{garbage}", str(SAMPLE)],
    ["explain", "--why-not", "\x1b[31mX", str(SAMPLE)],
    ["explain", "--url", "http://127.0.0.1:1", str(SAMPLE)],
    ["explain", "--url", "not a url", str(SAMPLE)],
    ["explain", "--prometheus", "gopher://x", str(SAMPLE)],
    ["rules", "test", "{garbage}"],
    ["explain", "nosuchscheme://bucket/x.log"],
    ["explain", ""],
]


@pytest.mark.parametrize("args", ODD, ids=lambda args: " ".join(args)[:50].replace("\x1b", "ESC"))
def test_odd_arguments_end_in_a_sentence(place: Path, args: list[str]) -> None:
    names = {"garbage": "garbage.log", "empty": "empty.log", "absent": "absent.log", "nothing": "nothing"}
    for key, name in names.items():
        args = [arg.replace("{" + key + "}", str(place / name)) for arg in args]
    done = run(*args)
    said = quiet(done)
    assert done.returncode in (0, 1, 2, 3), done.returncode
    assert said.strip() or done.stdout.strip()
    assert b"\x1b[31m" not in done.stdout + done.stderr


def test_a_reader_that_goes_away_is_no_error(tmp_path: Path) -> None:
    log = tmp_path / "big.log"
    log.write_bytes(SAMPLE.read_bytes() * 40)
    for args in (["events", log], ["events", log, "--format", "jsonl"], ["explain", log, "--format", "json"]):
        command = " ".join([sys.executable, "-m", "analyzer", *map(str, args)])
        done = subprocess.run(f"{command} | head -1", shell=True, capture_output=True, cwd=ROOT, timeout=60)
        assert done.stdout.count(b"\n") == 1
        assert done.stderr == b""


def test_without_standard_input() -> None:
    for args in ([], ["explain"], ["explain", "-"], ["events", "-"], ["follow"]):
        done = run(*args, stdin=None)
        assert done.returncode in (2, 3), (args, done.returncode)
        assert quiet(done).strip() or done.stdout.strip()
