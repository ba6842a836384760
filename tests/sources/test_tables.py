"""Tables that log services export: their rows are lines, whatever the columns, the delimiter and the quotes."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from analyzer.errors import UserError
from analyzer.listing import list_events
from analyzer.pipeline import explain
from analyzer.resources import data_dir
from analyzer.sources import open_sources
from analyzer.sources.newest_first import TURNED
from analyzer.sources.table_rows import LONGEST, RowReader, fields
from analyzer.sources.table_times import iso
from analyzer.sources.tables import NOTE, SAMPLE, rows_of_tables

SAMPLES = sorted(data_dir("samples").rglob("*.log"))
LOG = data_dir("samples") / "sglang" / "wrapper_nextn.log"
LINES = LOG.read_text().rstrip("\n").split("\n")


def taken(data: bytes, piece: int = 1 << 16) -> tuple[bytes, list[str]]:
    notes: list[str] = []
    pieces = (data[at : at + piece] for at in range(0, len(data), piece))
    return b"".join(rows_of_tables(pieces, notes)), notes


def messages(data: bytes, piece: int = 1 << 16) -> list[str]:
    said, notes = taken(data, piece)
    assert notes == [NOTE]
    return [json.loads(line)["message"] for line in said.splitlines() if line]


def second(n: int) -> str:
    return f"10:{n // 60:02}:{n % 60:02}"


def table(
    header: list[str],
    row: Callable[[int, str], list[str]],
    *,
    back: bool = False,
    mark: str = ",",
    all: bool = True,
) -> bytes:
    out = io.StringIO(newline="")
    rows = [row(n, line) for n, line in enumerate(LINES)]
    writer = csv.writer(out, delimiter=mark, quoting=csv.QUOTE_ALL if all else csv.QUOTE_MINIMAL)
    writer.writerows([header] * bool(header) + (rows[::-1] if back else rows))
    return out.getvalue().encode()


LABELS = '{"app":"sglang","pod":"llm-0"}'
TABLES = {
    "grafana": table(["Time", "Line"], lambda n, t: [f"2026-07-01 {second(n)}.5", t], back=True),
    "grafana, labels": table(
        ["labels", "Time", "Line", "tsNs", "id"],
        lambda n, t: [LABELS, str(1_783_000_000_000 + n), t, f"{1_783_000_000_000 + n}000000", f"x_{n}"],
        back=True, all=False,
    ),
    "grafana, labels, head cut off": table(
        [], lambda n, t: [LABELS, str(1_783_000_000_000 + n), t, f"{1_783_000_000_000 + n}000000"], all=False
    ),
    "cloudwatch insights": table(
        ["@timestamp", "@message"], lambda n, t: [f"2026-07-01 {second(n)}.123", t + "\n"], back=True, all=False
    ),
    "cloudwatch console": table(["timestamp", "message"], lambda n, t: [str(1_783_000_000_000 + n), t], all=False),
    "datadog": table(
        ["Date", "Host", "Service", "Message"], lambda n, t: [f"2026-07-01T{second(n)}Z", "gpu", "sglang", t], back=True
    ),
    "google": table(
        ["insertId", "resource.labels.pod_name", "severity", "textPayload", "timestamp"],
        lambda n, t: [f"x{n}", "llm-0", "ERROR", t, f"2026-07-01T{second(n)}.5Z"], back=True, all=False,
    ),
    "azure": table(
        ["TimeGenerated [UTC]", "Computer", "LogEntry"],
        lambda n, t: [f"7/1/2026, {second(n)}.123 PM", "aks", t], back=True,
    ),
    "kibana": table(["@timestamp", "message"], lambda n, t: [f"Jul 1, 2026 @ {second(n)}.123", t], back=True),
    "splunk": table(["_time", "host", "_raw"], lambda n, t: [f"2026-07-01T{second(n)}.5+0800", "h", t], back=True),
    "message first": table(["Message", "Timestamp"], lambda n, t: [t, f"2026-07-01T{second(n)}Z"], all=False),
    "messages only": table(["message"], lambda n, t: [t]),
    "an index": table(["", "timestamp", "message"], lambda n, t: [str(n), f"2026-07-01T{second(n)}Z", t], all=False),
    "semicolons": table(["timestamp", "message"], lambda n, t: [second(n), t], mark=";", all=False),
    "tabs": table(["timestamp", "message"], lambda n, t: [second(n), t], mark="\t", all=False),
    "tabs, no quotes": "\n".join(["timestamp\tmessage", *(f"{second(n)}\t{t}" for n, t in enumerate(LINES))]).encode(),
    "no header": table([], lambda n, t: [f"2026-07-01 {second(n)}.5", t]),
    "no header, few quotes": table([], lambda n, t: [f"2026-07-01T{second(n)}Z", t], all=False),
    "byte order mark": b"\xef\xbb\xbf" + table(["timestamp", "message"], lambda n, t: [second(n), t]),
    "quotes not doubled": "\n".join(
        ["timestamp,message", *(f'"2026-07-01T{second(n)}Z","{t}"' for n, t in enumerate(LINES))]
    ).encode(),
}  # fmt: skip


@pytest.mark.parametrize("name", TABLES)
def test_the_report_is_that_of_the_log_itself(name: str, tmp_path: Path) -> None:
    export = tmp_path / "export.csv"
    export.write_bytes(TABLES[name])
    whole, read = explain([str(LOG)]), explain([str(export)])
    assert [r.verdict for r in read.runs] == [r.verdict for r in whole.runs]
    assert [[f.rule for f in r.findings] for r in read.runs] == [[f.rule for f in r.findings] for r in whole.runs]
    assert read.inputs[0].recognised_lines >= whole.inputs[0].recognised_lines


@pytest.mark.parametrize("name", TABLES)
def test_the_pieces_do_not_matter(name: str) -> None:
    data = TABLES[name]
    assert taken(data, 997) == taken(data, 1) == taken(data)


def test_line_numbers_count_rows() -> None:
    data = table(["timestamp", "message"], lambda n, t: [f"2026-07-01T{second(n)}Z", t])
    lines = taken(data)[0].split(b"\n")
    assert lines[0] == b""
    assert [json.loads(line)["message"] for line in lines[1:-1]] == LINES


def test_what_was_done_is_said(tmp_path: Path) -> None:
    export = tmp_path / "export.csv"
    export.write_bytes(TABLES["datadog"])
    (source,) = open_sources([str(export)])
    list(source.chunks())
    assert source.notes == [NOTE, TURNED]


@pytest.mark.parametrize("format", ["text", "jsonl"])
def test_events_are_those_of_the_log_itself(format: str, tmp_path: Path) -> None:
    export = tmp_path / "export.csv"
    export.write_bytes(TABLES["message first"])
    kinds = [[_kind(line, format) for line in list_events([str(path)], format)] for path in (LOG, export)]
    assert kinds[0] == kinds[1]


def _kind(line: str, format: str) -> str:
    return json.loads(line)["kind"] if format == "jsonl" else line[7:].split("  ")[1]


@pytest.mark.parametrize("log", SAMPLES, ids=[log.stem for log in SAMPLES])
def test_a_log_is_no_table(log: Path) -> None:
    data = log.read_bytes()
    assert taken(data) == (data, [])


@pytest.mark.parametrize(
    "data",
    [
        b"2026-11-30 02:55:49,123 - lmdeploy - INFO - a, b\n" * 20,
        b"2026-11-30 02:55:49,123\n" * 20,
        b"timestamp, name, utilization.gpu [%]\n" + b"2026/11/30 02:55:49.123, NVIDIA H100, 3 %\n" * 20,
        b"message\nINFO 11-30 02:55:49 [core.py:1] a\nINFO 11-30 02:55:50 [core.py:1] b\n" * 20,
        b"time, message\n" + b"no such row\n" * 20,
        b'{"time": 1, "message": "a"}\n' * 20,
        b"timestamp,message\n",
        b"timestamp,message",
        b'"',
        b"",
    ],
)
def test_everything_else_passes_as_it_is(data: bytes) -> None:
    for piece in (1, 100, 1 << 20):
        assert taken(data, piece) == (data, [])


def test_a_row_of_several_lines() -> None:
    data = (
        b'Date,Host,Message\r\n"2026-07-01T10:00:00Z","h","Traceback (most recent call last):\n  File ""a.py"", line 1'
    )
    data += b'\nValueError: x"\r\n"2026-07-01T10:00:01Z","h","next, ""one"""\r\n'
    assert messages(data) == ['Traceback (most recent call last):\n  File "a.py", line 1\nValueError: x', 'next, "one"']


def test_pods_stay_apart() -> None:
    data = b"Time,pod,Line\n" + b"".join(b"2026-07-01T10:00:0%dZ,p%d,text\n" % (n, n % 2) for n in range(6))
    assert [json.loads(line).get("pod") for line in taken(data)[0].splitlines() if line] == ["p0", "p1"] * 3


def test_one_time_for_all_hides_nothing() -> None:
    data = b"timestamp,message\n" + b"2026-07-01T10:00:00Z,text\n" * 5
    assert b"2026" not in taken(data)[0]


def test_a_table_that_was_cut_at_both_ends() -> None:
    rows = [f'"2026-07-01T10:00:{n:02}Z","Traceback ""{n}""\nValueError: x"' for n in range(9)]
    data = "\n".join(rows).encode()[40:-6]
    said, notes = taken(data)
    assert notes == [NOTE]
    first, *rest = said.splitlines()
    assert first == b"ValueError: x"
    wanted = [f'Traceback "{n}"\nValueError: x' for n in range(1, 8)] + ['Traceback "8"\nValueErr']
    assert [json.loads(line)["message"] for line in rest] == wanted


def test_a_quote_that_is_never_closed_costs_one_row() -> None:
    rows = [f'2026-07-01T10:{n // 60:02}:{n % 60:02}Z,"message {n}"' for n in range(400)]
    rows[100] = '2026-07-01T10:01:40Z,"message 100'
    for header in (["timestamp,message"], []):
        assert messages("\n".join(header + rows).encode()) == [f"message {n}" for n in range(400)]


def test_a_quote_that_is_never_closed_costs_no_memory() -> None:
    reader = RowReader(quoted=True)
    line = b"x" * 1000 + b"\n"
    assert reader.feed(b'a,"b\n') == []
    held = 0
    for _ in range(3 * LONGEST // len(line)):
        held += len(line) - sum(len(row) + 1 for row in reader.feed(line))
        assert held < 2 * LONGEST


def test_no_more_is_held_than_the_sample() -> None:
    given = 0

    def chunks() -> Iterator[bytes]:
        nonlocal given
        yield b"timestamp,message\n"
        for n in range(100_000):
            given += 1
            yield b"2026-07-01T10:00:%02dZ,text %d\n" % (n % 60, n)

    reading = rows_of_tables(chunks(), [])
    next(reading)
    next(reading)
    assert given * 20 < 2 * SAMPLE


def test_an_error_comes_after_what_was_read() -> None:
    def damaged() -> Iterator[bytes]:
        yield b"timestamp,message\n2026-07-01T10:00:00Z,one\n2026-07-01T10:00:01Z,two\n2026-07-01T10:00:02Z,th"
        raise UserError("cut", status=3)

    said = b""
    with pytest.raises(UserError, match="cut"):
        for piece in rows_of_tables(damaged(), []):
            said += piece
    assert [json.loads(line)["message"] for line in said.splitlines() if line] == ["one", "two", "th"]


@pytest.mark.parametrize(
    ("row", "wanted"),
    [
        ("a,b,c", ["a", "b", "c"]),
        ('"a,1","b ""x""",', ["a,1", 'b "x"', ""]),
        ('a,5" long,b', ["a", '5" long', "b"]),
        ('a,"he said "no", twice"', ["a", 'he said "no", twice']),
        (r'a,"model=\"x\", y"', ["a", 'model="x", y']),
        ('a,"open', ["a", "open"]),
        ('"",""', ["", ""]),
    ],
)
def test_fields(row: str, wanted: list[str]) -> None:
    assert fields(row, ",", quoted=True, width=2 if len(wanted) == 2 else 0) == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("2026-07-01T10:00:00.5Z", "2026-07-01T10:00:00.5Z"),
        ("1783000000", "2026-07-02T13:46:40"),
        ("1783000000123", "2026-07-02T13:46:40.123"),
        ("1783000000123456789", "2026-07-02T13:46:40.123456789"),
        ("Jul 2, 2026 @ 13:46:40.123", "2026-07-02T13:46:40.123"),
        ("7/2/2026, 12:05:00 AM", "2026-07-02T00:05:00"),
        ("7/2/2026, 1:05:00.1 PM", "2026-07-02T13:05:00.1"),
        ("7/2/2026 13:05:00", ""),
        ("four", ""),
        ("12", ""),
    ],
)
def test_times(text: str, wanted: str) -> None:
    assert iso(text) == wanted


CELLS = st.text(alphabet="ab,;\"'\n\r\t\\{}:19", max_size=12)


def _line_feeds(text: str) -> str:
    """The text with a line feed alone for each end of a line; a second time, nothing changes."""
    return re.sub(r"\r+\n", "\n", text)


@example([("", ""), ("", ""), ("", "\r\r\n1")], ",", 1)
@given(st.lists(st.tuples(CELLS, CELLS), min_size=3, max_size=20), st.sampled_from(",;\t"), st.integers(1, 40))
def test_what_a_writer_wrote_is_read(rows: list[tuple[str, str]], mark: str, piece: int) -> None:
    out = io.StringIO(newline="")
    writer = csv.writer(out, delimiter=mark, quoting=csv.QUOTE_ALL)
    writer.writerow(["id", "message"])
    writer.writerows(rows)
    data = out.getvalue().encode()
    wanted = [_line_feeds(text).rstrip("\r\n") for _, text in rows]
    assert [_line_feeds(text) for text in messages(data)] == wanted
    assert taken(data, piece) == taken(data)


@given(st.binary(max_size=400), st.integers(1, 50))
def test_anything_behind_a_header_is_read_the_same_in_any_pieces(data: bytes, piece: int) -> None:
    data = b'timestamp,message\n2026-07-01T10:00:00Z,"a"\n' + data
    assert taken(data, piece) == taken(data)
