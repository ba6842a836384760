"""Recordings: journald's export format and asciinema's casts give the report of the log in them."""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from analyzer.errors import UserError
from analyzer.pipeline import explain
from analyzer.resources import data_dir
from analyzer.sources.newest_first import TURNED
from analyzer.sources.recordings import CAST, EXPORT, MOST, out_of_recordings
from tests.security.run_cli import run

SAMPLES = [
    data_dir("samples") / "sglang" / "wrapper_nextn.log",
    data_dir("samples") / "failures" / "vllm_0.18.1_kv_too_small_hf.log",
]


def entry(message: bytes, number: int, unit: str = "llm.service") -> bytes:
    """One entry as journald writes it: a value with anything but printable text goes with its length before it."""
    text = message.isascii() and all(32 <= byte < 127 or byte == 9 for byte in message)
    said = b"MESSAGE=" + message if text else b"MESSAGE\n" + struct.pack("<Q", len(message)) + message
    return (
        b"__CURSOR=s=1;i=%x\n__REALTIME_TIMESTAMP=%d\n__MONOTONIC_TIMESTAMP=%d\n_BOOT_ID=00\nPRIORITY=6\n"
        b"_SYSTEMD_UNIT=%s\n_CMDLINE=python -m server --x=1\n%s\n_PID=7\n\n"
        % (number, 1_783_000_000_000_000 + number * 1000, number, unit.encode(), said)
    )


def export(text: str, *, newest_first: bool = False) -> bytes:
    entries = [entry(line.encode(), n) for n, line in enumerate(text.split("\n")) if line]
    return b"".join(entries[::-1] if newest_first else entries)


def cast(text: str, version: int, chance: random.Random) -> str:
    """``text`` as pieces of terminal output that begin and end anywhere, with what else a cast holds."""
    header: dict[str, Any] = {"version": 2, "width": 80, "height": 24, "timestamp": 1, "env": {"TERM": "xterm"}}
    if version == 3:
        header = {"version": 3, "term": {"cols": 80, "rows": 24}, "timestamp": 1}
    rows, at, data = [json.dumps(header)], 0, text.replace("\n", "\r\n")
    while at < len(data):
        size = chance.randrange(1, 3000)
        rows.append(json.dumps([at / 1000, "o", data[at : at + size]], ensure_ascii=chance.random() < 0.5))
        if chance.random() < 0.1:
            rows.append(chance.choice(['[1.5, "i", "q"]', '[1.5, "r", "80x24"]', "# a comment", '[2, "m", "here"]']))
        at += size
    return "\n".join(rows) + "\n"


def read(data: bytes, piece: int = 1 << 16) -> tuple[bytes, list[str]]:
    notes: list[str] = []
    pieces = (data[at : at + piece] for at in range(0, len(data), piece))
    return b"".join(out_of_recordings(pieces, notes)), notes


@pytest.mark.parametrize("log", SAMPLES, ids=lambda path: path.stem)
@pytest.mark.parametrize("form", ["export", "newest first", "cast 2", "cast 3"])
def test_the_report_is_that_of_the_log(log: Path, form: str, tmp_path: Path) -> None:
    text = log.read_bytes().decode()
    path = tmp_path / "recorded"
    if form.startswith("cast"):
        path.write_text(cast(text, int(form[-1]), random.Random(form)))
    else:
        path.write_bytes(export(text, newest_first=form == "newest first"))
    whole, found = explain([str(log)]), explain([str(path)])
    assert [r.verdict for r in found.runs] == [r.verdict for r in whole.runs]
    assert [[f.rule for f in r.findings] for r in found.runs] == [[f.rule for f in r.findings] for r in whole.runs]
    notes = {"export": EXPORT, "newest first": f"{EXPORT}; {TURNED}"}
    assert found.inputs[0].note == notes.get(form, CAST)
    if form.startswith("cast"):
        assert found.inputs[0].lines == whole.inputs[0].lines


@pytest.mark.parametrize("piece", [1, 3, 7, 100])
def test_pieces_of_any_size_give_the_same(piece: int) -> None:
    said = "one\n\x1b[31mtwo lines\x1b[0m\n\nMESSAGE=three\n"
    data = entry(b"plain", 1) + entry(said.encode(), 2) + entry("caf\u00e9 \u2588".encode(), 3) + entry(b"", 4)
    whole = read(data)
    assert whole[1] == [EXPORT]
    assert read(data, piece) == whole
    rows = [json.loads(line) for line in whole[0].splitlines()]
    assert [r["MESSAGE"] for r in rows] == ["plain", list(said.encode()), list("caf\u00e9 \u2588".encode()), ""]
    assert rows[1]["timestamp"] == "2026-07-02T13:46:40.002000Z"
    assert {r["_SYSTEMD_UNIT"] for r in rows} == {"llm.service"}
    played = cast("first\nsecond \u2588\n", 2, random.Random(1)).encode()
    assert read(played, piece) == ("first\r\nsecond \u2588\r\n".encode(), [CAST])


def test_a_traceback_in_one_entry_is_read(tmp_path: Path) -> None:
    """Its lines go into one value, which is then given with its length."""
    text = SAMPLES[1].read_bytes().decode()
    path = tmp_path / "journal.export"
    path.write_bytes(b"".join(entry(b"".join(p), n) for n, p in enumerate(pairs(text.encode().splitlines(True)))))
    whole, found = explain([str(SAMPLES[1])]), explain([str(path)])
    assert found.runs[0].failure is not None and whole.runs[0].failure is not None
    assert found.runs[0].failure.cause == whole.runs[0].failure.cause


def pairs(lines: list[bytes]) -> Iterator[list[bytes]]:
    for at in range(0, len(lines), 2):
        yield lines[at : at + 2]


@pytest.mark.parametrize(
    "data",
    [
        b'{"version": 2, "name": "a package"}\n{"log": "x"}\n' + b"y" * 100,
        b'{"version": 2, "width": \n' + b"y" * 100,
        b"__init__.py=7 is no journal\n" * 9,
        b"",
        b"short",
        b"[1, 2]\n" * 20,
    ],
)
def test_what_is_no_recording_passes_as_it_is(data: bytes) -> None:
    assert read(data) == (data, [])
    assert read(data, 5) == (data, [])


def test_what_is_cut_or_torn_gives_what_there_is() -> None:
    data = entry(b"one", 1) + entry("tw\u00f6".encode(), 2)
    for end in range(len(data)):
        out = read(data[:end])[0] if end > 40 else b""
        assert out.count(b"\n") <= 2
    torn = entry(b"one", 1) + b"MESSAGE\n" + b"\xff" * 8 + b"rest\n\n" + entry(b"three", 3)
    assert [json.loads(line)["MESSAGE"] for line in read(torn)[0].splitlines()] == ["one", "three"]
    played = cast("first\nsecond\n", 2, random.Random(1))
    assert read(played[:-9].encode())[1] == [CAST]


def test_memory_does_not_grow_with_one_value() -> None:
    data = entry(b"\x01" + b"x" * (3 * MOST), 1) + entry(b"next", 2)
    rows = [json.loads(line) for line in read(data)[0].splitlines()]
    assert [len(r["MESSAGE"]) for r in rows] == [MOST, 4]


def test_an_error_of_the_source_comes_after_what_was_read() -> None:
    def chunks() -> Iterator[bytes]:
        yield entry(b"one", 1)
        raise UserError("cut", status=3)

    out = out_of_recordings(chunks(), [])
    assert b'"one"' in next(out)
    with pytest.raises(UserError, match="cut"):
        next(out)


def test_a_member_of_a_folder_and_events(tmp_path: Path) -> None:
    (tmp_path / "a.export").write_bytes(entry(b"\x01", 0) + export(SAMPLES[0].read_bytes().decode()))
    done = run("events", tmp_path, "--kind", "kv_cache_allocated")
    assert done.stdout.count(b"tokens=774,081") == 2
