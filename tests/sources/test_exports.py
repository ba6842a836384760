"""Answers of log services, one JSON document each: their entries are lines, oldest first."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from analyzer.errors import UserError
from analyzer.pipeline import explain
from analyzer.resources import data_dir
from analyzer.sources import open_sources
from analyzer.sources.exports import NOTE, entries_of_exports
from analyzer.sources.newest_first import TURNED

SAMPLE = data_dir("samples") / "sglang" / "wrapper_nextn.log"


def taken(data: bytes, piece: int = 100) -> tuple[bytes, list[str]]:
    notes: list[str] = []
    pieces = (data[at : at + piece] for at in range(0, len(data), piece))
    return b"".join(entries_of_exports(pieces, notes)), notes


def loki(lines: list[str], start: int = 1_750_000_000_000_000_000, **labels: str) -> dict[str, Any]:
    return {"stream": labels, "values": [[str(start + n), line] for n, line in enumerate(lines)]}


def answer(*streams: dict[str, Any]) -> dict[str, Any]:
    return {"status": "success", "data": {"resultType": "streams", "result": list(streams)}}


def gcp(lines: list[str], seconds: int = 1) -> list[dict[str, Any]]:
    return [
        {
            "insertId": f"x{n}", "timestamp": f"2026-07-01T10:{seconds * n // 60:02}:{seconds * n % 60:02}.5Z",
            "textPayload": line, "resource": {"labels": {"pod_name": "a"}},
        }
        for n, line in enumerate(lines)
    ]  # fmt: skip


LINES = SAMPLE.read_text().split("\n")
DOCUMENTS = {
    "loki": answer(loki(LINES, pod="a")),
    "loki, newest first": answer({"stream": {}, "values": loki(LINES)["values"][::-1]}),
    "cloudwatch": {"events": [{"timestamp": 1_750_000_000_000 + n, "message": t} for n, t in enumerate(LINES)]},
    "gcp": gcp(LINES),
    "gcp, newest first": gcp(LINES)[::-1],
    "gcp, newest first, one time": gcp(LINES, 0)[::-1],
    "elastic": {
        "took": 3,
        "hits": {
            "hits": [{"_source": {"@timestamp": g["timestamp"], "message": g["textPayload"]}} for g in gcp(LINES)]
        },
    },
}


def journal(lines: list[str]) -> list[dict[str, str]]:
    return [
        {"__REALTIME_TIMESTAMP": f"{1_783_000_000_000_000 + n}", "_PID": "1", "MESSAGE": t} for n, t in enumerate(lines)
    ]


TEXTS = {
    "journalctl -o json-pretty": "\n".join(json.dumps(entry, indent=8) for entry in journal(LINES)),
    "journalctl -r -o json-pretty": "\n".join(json.dumps(entry, indent=8) for entry in journal(LINES)[::-1]),
    "gcloud logging read": "".join(
        f"---\ninsertId: x{n}\ntextPayload: {json.dumps(t)}\ntimestamp: '2026-07-01T10:{n // 60:02}:{n % 60:02}.5Z'\n"
        for n, t in reversed(list(enumerate(LINES)))
    ),
    "a list of lines": json.dumps(LINES, indent=1),
    "a log in one string": json.dumps("\n".join(LINES)),
    "a log in one string of Python": repr("\n".join(LINES).encode()),
}


@pytest.mark.parametrize("name", TEXTS)
def test_other_forms_of_json(name: str, tmp_path: Path) -> None:
    export = tmp_path / "export.txt"
    export.write_text(TEXTS[name])
    whole, read = explain([str(SAMPLE)]).runs, explain([str(export)]).runs
    assert [r.verdict for r in read] == [r.verdict for r in whole]
    assert [[f.rule for f in r.findings] for r in read] == [[f.rule for f in r.findings] for r in whole]


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("name", DOCUMENTS)
def test_the_report_is_that_of_the_log_itself(name: str, indent: int | None, tmp_path: Path) -> None:
    export = tmp_path / "export.json"
    export.write_text(json.dumps(DOCUMENTS[name], indent=indent))
    whole, read = explain([str(SAMPLE)]).runs, explain([str(export)]).runs
    assert [r.verdict for r in read] == [r.verdict for r in whole]
    assert [[f.rule for f in r.findings] for r in read] == [[f.rule for f in r.findings] for r in whole]


def test_a_note_says_what_was_done(tmp_path: Path) -> None:
    export = tmp_path / "export.json"
    export.write_text(json.dumps(DOCUMENTS["gcp, newest first, one time"]))
    (source,) = open_sources([str(export)])
    list(source.chunks())
    assert source.notes == [NOTE, TURNED]


def test_streams_are_merged_by_time_and_named() -> None:
    data, notes = taken(json.dumps(answer(loki(["a", "c"], 10, pod="p"), loki(["b", "d"], 10, pod="q"))).encode())
    assert notes == [NOTE]
    said = [json.loads(line) for line in data.splitlines()]
    assert said == [
        {"message": "a", "pod": "p"}, {"message": "b", "pod": "q"}, {"message": "c", "pod": "p"},
        {"message": "d", "pod": "q"},
    ]  # fmt: skip


@pytest.mark.parametrize(
    "data",
    [
        b"[2026-07-01 10:00:00] Load weight begin. avail mem=139.13 GB\n" * 20,
        b'{"log": "a\\n", "time": "2026-07-01T10:00:00Z"}\n' * 20,
        b'{"status": "x", "message": "a"}\n{"status": "y", "message": "b"}\n' * 20,
        json.dumps(DOCUMENTS["loki"]).encode()[:-3],
        b'[{"message": "the only one"}]',
        b'[{"a": 1}, {"b": [2, {"c": "d"}]}]',
        b'{"data": ' + b"[" * 5000,
        b"",
        b"[ {",
        b'{\n "message": "a"\n}\n{\n "message": "b"\n}\nand text\n',
        b'"' + b"a" * 200,
        b"b'" + b"a" * 200 + b"' + f()",
        b"---\ninsertId: x\ntextPayload: [unended\n",
        b"---\ninsertId: &a [x, x]\nlabels: [*a, *a]\ntextPayload: a\n---\ntextPayload: b\n",
        b"---\ninsertId: " + b"[" * 100_000,
        b"b'" + b"a" * 200 + b"\\n'",
    ],
)
def test_everything_else_passes_as_it_is(data: bytes) -> None:
    for piece in (1, 100, 1 << 20):
        assert taken(data, piece) == (data, [])


def test_what_is_too_large_passes_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("analyzer.sources.exports.MOST", 1000)
    data = json.dumps(DOCUMENTS["gcp"]).encode()
    assert taken(data) == (data, [])


def test_an_error_comes_after_what_was_read() -> None:
    def damaged() -> Any:
        yield b'[{"message": "a"}, '
        raise UserError("cut", status=3)

    reading = entries_of_exports(damaged(), [])
    assert next(reading) == b'[{"message": "a"}, '
    with pytest.raises(UserError, match="cut"):
        next(reading)
