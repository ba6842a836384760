"""What a newcomer types wrong: each has a sentence, and none a traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from analyzer.cli import main

LOG = "[2026-07-01 10:00:00] Load weight begin. avail mem=139.13 GB\n"


def said(capfd: pytest.CaptureFixture[str], *words: str) -> tuple[object, str, str]:
    """(exit status, standard output, standard error) of a call."""
    with pytest.raises(SystemExit) as left:
        main(words)
    out, err = capfd.readouterr()
    return left.value.code, out, err


@pytest.mark.parametrize("name", ["missing.log", "no/such", "s*.nothing"])
def test_a_path_that_is_not_there_is_said_to_be_missing(capfd: pytest.CaptureFixture[str], name: str) -> None:
    status, _, err = said(capfd, name)
    assert (status, err) == (3, f"kvautopsy: {name}: no such file or folder\n")


def test_a_misspelled_command_is_guessed(capfd: pytest.CaptureFixture[str]) -> None:
    status, _, err = said(capfd, "explian")
    assert status == 2 and "neither a command nor a file 'explian'. Is explain meant?" in err


def test_options_of_explain_may_come_first(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    log = tmp_path / "x"
    log.write_text(LOG)
    status, out, _ = said(capfd, "-f", "json", str(log))
    assert status == 0 and out.startswith("{")


def test_a_kind_that_no_grammar_names(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    log.write_text(LOG)
    status, _, err = said(capfd, "events", "--kind", "load_weigth_begin", str(log))
    assert status == 2 and "is load_weight_begin meant?" in err
    status, _, err = said(capfd, "events", "--kind", "decode_batch", str(log))
    assert status == 3 and "no line of the input is of the kind decode_batch" in err
    assert said(capfd, "events", "--kind", "load_weight_begin", str(log))[0] == 0


def test_prove_spec_of_a_foreign_log(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    log.write_text("GET / 200\n")
    assert said(capfd, "prove-spec", str(log))[0] == 3


def test_plan_wants_a_version(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    words = ["plan", str(tmp_path), "--engine", "vllm", "--gpu-memory", "80GiB", "--version", "newest"]
    status, _, err = said(capfd, *words)
    assert status == 2 and "--version newest: write it like 0.5.17" in err


def test_closed_streams_are_no_error(tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    log.write_text(LOG)
    for closing in (">&-", "2>&-", ">&- 2>&-"):
        command = f'"{sys.executable}" -m analyzer explain "{log}" {closing}'
        env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
        done = subprocess.run(command, shell=True, env=env, capture_output=True, text=True, timeout=60, check=False)
        assert (done.returncode, done.stderr) == (0, ""), closing


@pytest.mark.parametrize("words", [("query", ".", "select 1"), ("events", "-o", "new", "x.log")])
def test_a_package_that_does_not_load_is_named(words: tuple[str, ...], tmp_path: Path) -> None:
    """An environment that another program's installation broke."""
    (tmp_path / "polars").mkdir()
    (tmp_path / "polars" / "__init__.py").write_text("raise ImportError('polars: undefined symbol: _Py_x')\n")
    (tmp_path / "x.log").write_text(LOG)
    env = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{Path(__file__).parents[2]}"}
    command = [sys.executable, "-m", "analyzer", *words]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("kvautopsy: a package that it needs does not load: polars: undefined symbol")
    assert "Traceback" not in done.stderr and "pip install" in done.stderr
