"""Logs printed newest first: turned round when their times say so, left alone when not, with a note in each case."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from analyzer.errors import UserError
from analyzer.fleet import AuditOptions, audit
from analyzer.fleet.summary import load
from analyzer.pipeline import explain
from analyzer.resources import data_dir
from analyzer.sources import newest_first, open_sources
from analyzer.sources.newest_first import TOO_LARGE, TURNED, in_order

SAMPLES = sorted(data_dir("samples").rglob("*.log"))
SAMPLE = data_dir("samples") / "sglang" / "wrapper_nextn.log"


def upside_down(data: bytes) -> bytes:
    return b"\n".join(reversed(data.removesuffix(b"\n").split(b"\n"))) + b"\n"


def ordered(data: bytes, piece: int = 1 << 16) -> tuple[bytes, list[str]]:
    notes: list[str] = []
    chunks = [data[at : at + piece] for at in range(0, len(data), piece)]
    return b"".join(in_order(chunks, notes)), notes


@pytest.mark.parametrize("log", SAMPLES, ids=[log.stem for log in SAMPLES])
def test_a_log_in_order_is_never_touched(log: Path) -> None:
    data = log.read_bytes()
    assert ordered(data) == (data, [])


@pytest.mark.parametrize("log", SAMPLES, ids=[log.stem for log in SAMPLES])
def test_a_turned_log_comes_out_as_it_was(log: Path) -> None:
    data = log.read_bytes()
    got, notes = ordered(upside_down(data))
    if log.stem == "field_nextn_27b_paste":  # no times, no traceback: left alone
        assert (got, notes) == (upside_down(data), [])
    else:
        assert notes == [TURNED]
        assert got == data.removesuffix(b"\n") + b"\n"


def test_the_pieces_do_not_matter() -> None:
    data = upside_down(SAMPLE.read_bytes())
    wanted = ordered(data)
    for piece in (1, 7, 333, 5000):
        assert ordered(data, piece) == wanted


@pytest.mark.parametrize(
    "stamp",
    [
        "{month} {day:2} 12:{minute:02}:07 host sglang[4711]: ",  # journalctl -r
        "2026-11-{day:02}T12:{minute:02}:07.123456789Z ",  # docker logs -t, kubectl logs --timestamps
        '"{month} {day}, 2026 @ 12:{minute:02}:07.123","',  # a CSV export of Kibana
        "INFO 11-{day:02} 12:{minute:02}:07 [core.py:1] ",  # vLLM itself
        '{{"stream":"stdout","time":"2026-11-{day:02}T12:{minute:02}:07Z","log":"',
    ],
)
def test_the_forms_of_times(stamp: str) -> None:
    places = [("Nov", day, minute) for day in (9, 10) for minute in (5, 9, 10, 58)]
    lines = [stamp.format(month=m, day=d, minute=n) + f"line {d} {n}" for m, d, n in places]
    data = ("\n".join(lines) + "\n").encode()
    assert ordered(data) == (data, [])
    assert ordered(upside_down(data)) == (data, [TURNED])


def test_a_month_is_no_word() -> None:
    """December comes after November, which its letters do not say."""
    lines = [f"{month} 30 12:00:0{i} host x: y" for i, month in enumerate(("Aug", "Sep", "Oct", "Nov", "Dec"))]
    data = ("\n".join(lines) + "\n").encode()
    assert ordered(data) == (data, [])


def test_some_lines_out_of_order_do_not_hide_it() -> None:
    chance = random.Random(1)
    seconds = [s + (30 if chance.random() < 0.02 else 0) for s in range(1000)]
    lines = [f"[2026-11-30 12:{s // 60 % 60:02}:{s % 60:02}] line {i}" for i, s in enumerate(seconds)]
    data = ("\n".join(lines) + "\n").encode()
    assert ordered(upside_down(data)) == (data, [TURNED])
    assert ordered(data) == (data, [])


def test_half_of_it_is_not_enough() -> None:
    """Two excerpts, each in order, the later one first: not newest first."""
    late = b"".join(b"[2026-11-30 13:00:%02d] late\n" % i for i in range(30))
    early = b"".join(b"[2026-11-30 12:00:%02d] early\n" % i for i in range(30))
    assert ordered(late + early) == (late + early, [])
    half = upside_down(late) + early
    assert ordered(half) == (half, [])


def test_entries_of_several_lines_stay_whole() -> None:
    """A console that keeps a traceback as one entry prints it downwards, under its own time."""
    entries = [
        f"2026-11-30 12:00:{i:02} ERROR it failed\nTraceback (most recent call last):\n"
        f'  File "a.py", line {i}, in f\n    g()\nValueError: {i}\n'
        for i in range(8)
    ]
    assert ordered("".join(reversed(entries)).encode()) == ("".join(entries).encode(), [TURNED])


def test_a_large_one_is_said_to_be_upside_down(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(newest_first, "MOST", 10_000)
    data = upside_down(SAMPLE.read_bytes())
    assert len(data) > 10_000
    got, notes = ordered(data, 3000)
    assert (got, notes) == (data, [TOO_LARGE])
    assert "tac LOG" in notes[0] and "not to be trusted" in " ".join(notes[0].split())


def test_no_more_is_held_than_the_bound() -> None:
    """What is read before the first piece is handed on: little for a log in order, the bound for one without times."""
    line = b"no time in this line, and nothing else either\n" * 1000

    def handed_on(lines: bytes) -> int:
        taken = 0

        def chunks() -> Iterator[bytes]:
            nonlocal taken
            while taken < 200 << 20:
                taken += len(lines)
                yield lines

        next(in_order(chunks(), []))
        return taken

    assert handed_on(line) <= newest_first.UNDECIDED + len(line)
    rising = b"".join(b"[2026-11-30 12:%02d:%02d] x\n" % (i // 60, i % 60) for i in range(600))
    assert handed_on(rising) == len(rising)
    falling = b"[2026-11-30 12:00:00] x\n" * 500
    count = iter(range(10**6, 0, -1))
    taken = 0

    def falls() -> Iterator[bytes]:
        nonlocal taken
        while taken < 200 << 20:
            when = next(count)
            piece = falling.replace(b"12:00:00", b"%02d:%02d:%02d" % (when // 3600 % 24, when // 60 % 60, when % 60))
            taken += len(piece)
            yield piece

    notes: list[str] = []
    next(in_order(falls(), notes))
    assert newest_first.MOST < taken <= newest_first.MOST + 2 * len(falling)
    assert notes == [TOO_LARGE]


def test_a_cut_archive_gives_what_it_held_and_its_error(tmp_path: Path) -> None:
    path = tmp_path / "up.log.gz"
    path.write_bytes(gzip.compress(upside_down(SAMPLE.read_bytes()))[:-300])
    (source,) = open_sources([path])
    got = []
    with pytest.raises(UserError, match="cut"):
        for chunk in source.chunks():
            got.append(chunk)
    assert source.notes == [TURNED]
    assert SAMPLE.read_bytes().endswith(b"".join(got)[-500:])


def test_the_report_says_so_and_is_the_same(tmp_path: Path) -> None:
    path = tmp_path / "up.log"
    path.write_bytes(upside_down(SAMPLE.read_bytes()))
    turned, straight = explain([str(path)]), explain([str(SAMPLE)])
    assert turned.inputs[0].note == TURNED
    one, other = turned.runs[0], straight.runs[0]
    assert (one.outcome, one.verdict) == (other.outcome, other.verdict)
    assert [f.rule for f in one.findings] == [f.rule for f in other.findings]
    assert [e.line for f in one.findings for e in f.evidence] == [e.line for f in other.findings for e in f.evidence]


def test_an_audit_reads_it_too(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "up.log").write_bytes(upside_down(SAMPLE.read_bytes()))
    audit([str(tmp_path / "in")], tmp_path / "out", AuditOptions(workers=1))
    runs = load(tmp_path / "out", "runs")
    assert runs["pool_tokens"].to_list() == [774081.0]
    assert runs["outcome"].to_list() == ["stopped"]


def test_events_are_listed_as_they_stand(tmp_path: Path) -> None:
    from analyzer.listing import records_and_events

    path = tmp_path / "up.log"
    data = upside_down(SAMPLE.read_bytes())
    path.write_bytes(data)
    lines = data.split(b"\n")
    place = next(
        record.line for record, event in records_and_events([str(path)]) if event and event.kind == "kv_cache_allocated"
    )
    assert b"KV Cache is allocated" in lines[place - 1]


def test_an_entry_s_own_time_decides_not_one_in_its_text(tmp_path: Path) -> None:
    lines = SAMPLE.read_text().split("\n")
    entries = [
        json.dumps({"textPayload": line, "timestamp": f"2020-07-01T10:{n // 60:02}:{n % 60:02}.5Z"})
        for n, line in enumerate(lines)
    ]
    log = tmp_path / "export.jsonl"
    log.write_text("\n".join(reversed(entries)) + "\n")
    (read,), (whole,) = explain([str(log)]).runs, explain([str(SAMPLE)]).runs
    assert (read.verdict, [f.rule for f in read.findings]) == (whole.verdict, [f.rule for f in whole.findings])


def test_keys_on_lines_of_their_own_are_followed_apart() -> None:
    entry = '  "textPayload": "[2026-11-30 03:00:{0:02}] x",\n  "timestamp": "2026-11-30T05:00:{0:02}.5Z"\n'
    data = "".join(entry.format(n) for n in range(30, 0, -1)).encode()
    assert ordered(data) == (upside_down(data), [TURNED])
    data = "".join(entry.format(n) for n in range(30)).encode()
    assert ordered(data) == (data, [])
