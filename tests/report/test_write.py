"""Files come out whole or not at all, in the format that their name asks for."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from analyzer.errors import UserError
from analyzer.report import from_json, print_report, render, to_json, write_report
from analyzer.report.baseline import without_known
from analyzer.report.model import Report


@pytest.mark.parametrize(
    ("name", "start"),
    [
        ("r.html", "<!doctype html>"),
        ("r.md", "`server.log`"),
        ("r.json", "{"),
        ("r.sarif", '{\n "$schema"'),
        ("r.junit.xml", "<?xml"),
        ("r.txt", "server.log"),
    ],
)
def test_the_extension_chooses_the_format(report: Report, tmp_path: Path, name: str, start: str) -> None:
    write_report(report, tmp_path / name)
    assert (tmp_path / name).read_text("utf-8").startswith(start)
    assert [p.name for p in tmp_path.iterdir()] == [name]


def test_an_unknown_extension_is_refused_before_anything_is_written(report: Report, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"\.html"):
        write_report(report, tmp_path / "r.docx")
    assert list(tmp_path.iterdir()) == []


def test_a_failed_write_leaves_the_old_file_and_no_other(
    report: Report, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "r.json"
    target.write_text("old")

    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(UserError, match="No space left"):
        write_report(report, target)
    assert target.read_text() == "old" and [p.name for p in tmp_path.iterdir()] == ["r.json"]


def test_a_missing_folder_is_said(report: Report, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be written"):
        write_report(report, tmp_path / "no" / "r.json")


@pytest.mark.parametrize("format", ["text", "markdown", "html", "sarif", "junit"])
def test_a_saved_report_renders_to_the_same_page(report: Report, format: str) -> None:
    assert render(from_json(render(report, "json")), format) == render(report, format)


def test_printing_goes_to_standard_output(report: Report, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    print_report(report, "json")
    assert json.loads(capfdbinary.readouterr().out) == to_json(report)


def test_a_baseline_takes_away_what_was_known(report: Report, tmp_path: Path) -> None:
    saved = tmp_path / "base.json"
    write_report(report, saved)
    assert without_known(report, saved).worst() is None
    assert report.worst() == "critical"  # the report itself is untouched
    report.runs[0].findings[1].severity = "critical"
    assert [f.rule for f in without_known(report, saved).runs[0].findings] == ["CC001"]
    assert report.runs[1].failure is not None
    report.runs[1].failure.exception = "RuntimeError"
    assert without_known(report, saved).runs[1].failure is not None


def test_a_baseline_that_is_no_report_is_refused(report: Report, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be read"):
        without_known(report, tmp_path / "none.json")
