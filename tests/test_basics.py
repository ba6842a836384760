"""Units, the cache, and the order of the witnesses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from analyzer.cache import cached, fingerprint
from analyzer.errors import UserError
from analyzer.pipeline import Options, explain
from analyzer.resources import data_dir
from analyzer.run.facts import Fact
from analyzer.units import GIB, parse_bytes, show, show_bytes

SAMPLE = str(data_dir("samples") / "sglang" / "wrapper_nextn.log")


@pytest.mark.parametrize(
    ("text", "size"),
    [("80GiB", 80 * GIB), ("0.85 GB", 0.85e9), ("512MiB", 512 << 20), ("1024", 1024), ("2g", 2 * GIB), ("1KB", 1000)],
)
def test_sizes_are_read(text: str, size: float) -> None:
    assert parse_bytes(text) == pytest.approx(size)


@pytest.mark.parametrize("text", ["", "GiB", "-1GiB", "80 parsecs", "1e9e9"])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(ValueError, match="not a size"):
        parse_bytes(text)


def test_shown() -> None:
    assert show_bytes(16.16 * GIB) == "16.16 GiB"
    assert show_bytes(20480) == "20.0 KiB"
    assert show(774081, "tokens") == "774,081"
    assert show(20480, "bytes_per_token") == "20,480 bytes"
    assert show(None, "bytes") == "none"


def test_a_cached_value_is_built_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KVAUTOPSY_CACHE", str(tmp_path / "c"))
    built: list[int] = []

    def build() -> dict[str, int]:
        built.append(1)
        return {"a": 1}

    key = fingerprint([b"x"])
    assert cached("t", key, build) == cached("t", key, build) == {"a": 1}
    assert len(built) == 1
    assert cached("t", fingerprint([b"y"]), build) == {"a": 1}
    assert len(built) == 2
    next((tmp_path / "c").glob("t-*.json")).write_text("{torn")
    assert cached("t", key, build) == {"a": 1}


def test_a_cache_that_cannot_be_written_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("KVAUTOPSY_CACHE", str(tmp_path / "file"))
    assert cached("t", "k", lambda: json.loads("[1]")) == [1]


def test_the_log_comes_before_other_witnesses() -> None:
    facts = (
        Fact("pool.tokens", 1, "tokens", origin="metrics"),
        Fact("metrics.pool_tokens", 774081, "tokens", origin="metrics"),
    )
    run = explain([SAMPLE], Options(facts=facts)).runs[0]
    assert run.facts["pool.tokens"].value == 774081
    assert run.facts["metrics.pool_tokens"].value == 774081


def test_an_empty_log_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "empty.log").write_text("")
    with pytest.raises(UserError, match="is empty") as caught:
        explain([str(tmp_path / "empty.log")])
    assert caught.value.status == 3


def test_lines_are_counted_once() -> None:
    report = explain([SAMPLE])
    item = report.inputs[0]
    assert item.lines == item.recognised_lines + item.unrecognised_lines == 104


def test_the_line_that_announces_a_traceback_counts_once(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_text(
        "[2025-12-10 10:00:02 TP0] Scheduler hit an exception: Traceback (most recent call last):\n"
        '  File "/s/sglang/srt/managers/scheduler.py", line 2700, in run_scheduler_process\n'
        "    scheduler.event_loop_overlap()\nValueError: x\n"
        "[2025-12-10 10:00:03 TP0] nothing that a grammar knows\n"
    )
    (item,) = explain([str(log)], Options()).inputs
    assert (item.lines, item.recognised_lines, item.unrecognised_lines) == (5, 4, 1)
