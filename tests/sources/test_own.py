"""Reports among logs: in no format is one of them read as a log, which would make up runs."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from analyzer.errors import UserError
from analyzer.pipeline import explain
from analyzer.report import write_report
from analyzer.report.write import render
from analyzer.resources import data_dir
from analyzer.sources import open_sources
from analyzer.sources.own import is_report

FORMS = ("r.html", "r.md", "r.json", "r.sarif", "r.junit.xml", "r.txt")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log, and beside it the report on it in every format."""
    place = tmp_path_factory.mktemp("own")
    log = place / "a.log"
    shutil.copy(data_dir("samples") / "sglang" / "wrapper_nextn.log", log)
    report = explain([str(log)])
    for name in FORMS:
        write_report(report, place / name)
    return place


def test_a_folder_is_read_without_the_reports_in_it(folder: Path) -> None:
    assert [source.name for source in open_sources([folder])] == [str(folder / "a.log")]
    assert len(explain([str(folder)]).runs) == 1


@pytest.mark.parametrize("name", FORMS)
def test_a_report_that_is_named_is_refused(folder: Path, name: str) -> None:
    with pytest.raises(UserError, match="a report that kvautopsy wrote") as said:
        explain([str(folder / name)])
    assert said.value.status == 3


def test_pages_of_narrow_terminals_and_of_several_logs_are_known_too() -> None:
    from io import StringIO

    from rich.console import Console

    from analyzer.report import to_terminal

    samples = data_dir("samples") / "sglang"
    report = explain([str(samples / "wrapper_nextn.log"), str(samples / "mla_mf080.log")])
    for width, colour in ((40, False), (100, True)):
        out = StringIO()
        to_terminal(report, Console(file=out, width=width, force_terminal=colour, highlight=False, markup=False))
        assert is_report(out.getvalue().encode()[:512]), (width, colour)
    assert is_report(render(report, "markdown").encode()[:512])


@pytest.mark.parametrize(
    "head",
    [
        b"[2026-07-01 10:00:00] 104 lines: 97 recognized, 7 not\n",
        b'{"schema": "other/1", "lines": "kvautopsy.report/1"}',
        b"<!doctype html>\n<html><head><title>kvautopsy</title>",
        b'<testsuites name="pytest">',
        b"INFO 07-01 10:00:00 [api_server.py:10] kvautopsy watches this server\n",
        b"",
    ],
)
def test_what_only_speaks_of_it_is_a_log(head: bytes) -> None:
    assert not is_report(head)


def test_no_sample_is_taken_for_a_report() -> None:
    logs = list(data_dir("samples").rglob("*.log"))
    assert logs and not any(is_report(log.read_bytes()[:512]) for log in logs)


def test_one_damaged_file_of_a_folder_does_not_hide_the_others(tmp_path: Path) -> None:
    shutil.copy(data_dir("samples") / "sglang" / "wrapper_nextn.log", tmp_path / "b.log")
    (tmp_path / "a.zip").write_bytes(b"PK\x03\x04 and no more")
    report = explain([str(tmp_path)])
    assert [run.engine for run in report.runs] == ["sglang"]
    assert report.inputs[0].note.startswith("not read: ") and "a.zip" in report.inputs[0].note
    (tmp_path / "b.log").unlink()
    with pytest.raises(UserError, match="damaged or unknown zip archive"):  # it alone: not "is empty"
        explain([str(tmp_path)])


def test_one_folder_that_cannot_be_read_does_not_hide_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.log").write_text("one line\n")
    listed = Path.iterdir

    def iterdir(place: Path) -> Iterator[Path]:
        if place.name == "b":
            raise PermissionError(13, "Permission denied")
        return listed(place)

    monkeypatch.setattr(Path, "iterdir", iterdir)
    found = [(Path(source.name).relative_to(tmp_path).as_posix(), source.error) for source in open_sources([tmp_path])]
    assert [name for name, _ in found] == ["a/x.log", "b", "c/x.log"]
    assert "permission denied" in str(found[1][1])
