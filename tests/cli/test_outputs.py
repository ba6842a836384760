"""Where results go: no place costs the log or what was read of it, and options that exclude each other are named."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from analyzer.resources import data_dir
from tests.cli.test_usage import LOG, said


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "server.txt"
    path.write_text(LOG)
    return path


@pytest.mark.parametrize("words", [("explain",), ("follow",), ("compare", "other.txt")])
def test_no_report_replaces_its_log(
    capfd: pytest.CaptureFixture[str], log: Path, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(log.parent)
    (log.parent / "other.txt").write_text(LOG)
    status, out, err = said(capfd, *words, str(log), "-o", "./server.txt")
    assert (status, out) == (2, "")
    assert err == "kvautopsy: server.txt is the input itself: give the output another name\n"
    assert log.read_text() == LOG


def test_an_audit_s_export_does_not_replace_its_input(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    table = tmp_path / "export.csv"
    table.write_text("message\nx\n")
    assert said(capfd, "audit", str(table), "-o", str(table))[0] == 2
    assert table.read_text() == "message\nx\n"


def test_a_report_is_no_log(capfd: pytest.CaptureFixture[str], log: Path) -> None:
    """``-o other.log`` is a slip of the hand: the ending is that of logs."""
    status, _, err = said(capfd, "explain", str(log), "-o", str(log.with_name("other.log")))
    assert status == 2 and "names no report format" in err


@pytest.mark.parametrize(
    ("place", "reason"), [("nowhere/x.html", "No such file or directory"), ("folder.md", "Is a directory")]
)
def test_a_wrong_place_is_said_before_the_log_is_read(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, place: str, reason: str
) -> None:
    (tmp_path / "folder.md").mkdir()
    status, _, err = said(capfd, "explain", str(tmp_path / "no.log"), "-o", str(tmp_path / place))
    assert (status, err) == (2, f"kvautopsy: {tmp_path / place} cannot be written: {reason}\n")


def test_what_was_read_is_printed_though_its_file_fails(
    capfd: pytest.CaptureFixture[str], log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from analyzer.errors import OutputError

    def full(*_: object) -> None:
        raise OutputError("x.md cannot be written: No space left on device")

    monkeypatch.setattr("analyzer.report.write.write_whole", full)
    status, out, err = said(capfd, "explain", str(log), "-o", str(log.with_name("x.md")))
    assert status == 2 and "1 line: 1 recognised" in out and "No space left" in err


def test_a_baseline_may_be_renewed_by_the_report(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """What is new counts against the earlier report, not against the one that takes its place."""
    saved = tmp_path / "base.json"
    samples = data_dir("samples") / "sglang"
    assert said(capfd, "explain", str(samples / "wrapper_nospec.log"), "-o", str(saved))[0] == 0
    words = ("explain", str(samples / "wrapper_nextn.log"), "--baseline", str(saved), "-o", str(saved))
    assert said(capfd, *words)[0] == 1
    assert said(capfd, *words)[0] == 0
    status, _, err = said(capfd, "explain", str(tmp_path / "no.log"), "--baseline", str(tmp_path / "gone.json"))
    assert status == 2 and "gone.json cannot be read" in err


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (("events", "--unrecognised", "--kind", "decode_batch"), "--kind"),
        (("events", "--unrecognised", "-o", "x"), "--output"),
        (("events", "-f", "jsonl", "-o", "x"), "--format jsonl >"),
        (("explain", "--why-not", "KV002", "-f", "json"), "--format"),
        (("explain", "--why-not", "KV002", "-o", "x.md"), "--output"),
    ],
)
def test_options_that_exclude_each_other(
    capfd: pytest.CaptureFixture[str], log: Path, words: tuple[str, ...], names: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(log.parent)
    status, out, err = said(capfd, words[0], str(log), *words[1:])
    assert (status, out) == (2, "") and names in err
    assert [p.name for p in log.parent.iterdir()] == ["server.txt"]


@pytest.mark.parametrize("words", ["--help", "--version", "explain --help", "rules KV002"])
def test_a_full_output_is_a_sentence(words: str) -> None:
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    command = f'"{sys.executable}" -m analyzer {words} >/dev/full'
    done = subprocess.run(command, shell=True, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (2, "kvautopsy: standard output: No space left on device\n")
