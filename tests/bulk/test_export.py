"""The exported tables hold the very events that the grammar reads one by one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from analyzer.bulk.export import export
from analyzer.cli.events import command
from analyzer.errors import OutputError
from analyzer.framing import frame
from analyzer.parsing import default_catalog
from benchmarks.generate import write_log
from tests.bulk.disturbed import FAULTS

SECRET = "hf_abcdefghijklmnop"


def _expected(path: Path) -> dict[str, list[dict[str, Any]]]:
    """Line, rank and fields of each event, by kind."""
    found: dict[str, list[dict[str, Any]]] = {}
    catalog, engine = default_catalog(), ""
    for record in frame([path.read_bytes()], str(path)):
        event = catalog.match(record, engine)
        if event is not None:
            engine = event.engine if event.engine != "common" else engine
            found.setdefault(f"{event.engine}.{event.kind}", []).append(
                {"line": record.line, "rank": record.rank, "time": record.time, **event.fields}
            )
    return found


def _differs(cell: Any, value: Any) -> bool:
    if isinstance(value, float) and value != value:
        return not (isinstance(cell, float) and cell != cell)
    if isinstance(value, int) and abs(value) >> 63:
        return cell is not None
    return bool(cell != (value if isinstance(value, int | float | str | bool | None) else cell))


@pytest.mark.parametrize("engine", ["sglang", "vllm"])
def test_the_same_events(engine: str, tmp_path: Path) -> None:
    path = write_log(tmp_path / "run.log", 2, engine, 3, 11)
    lines = path.read_text().splitlines(keepends=True)
    for place, fault in enumerate(FAULTS, 1):
        lines.insert(place * len(lines) // (len(FAULTS) + 1), fault)
    path.write_bytes("".join(lines).encode())
    export([str(path)], tmp_path / "out")
    expected = _expected(path)
    assert {part.name for part in (tmp_path / "out").iterdir()} == expected.keys()
    for kind, events in expected.items():
        table = pl.read_parquet(tmp_path / "out" / kind / "*.parquet").sort("line", maintain_order=True)
        assert table.height == len(events), kind
        for row, event in zip(table.iter_rows(named=True), events, strict=True):
            time = event.pop("time")
            assert (row["time"] is None) == (time is None)
            if time is not None:
                assert abs((row["time"] - row["time"].__class__(1970, 1, 1)).total_seconds() - time) < 0.01
            assert not [name for name, value in event.items() if _differs(row[name], value)], (kind, row, event)
            assert all(row[name] is None for name in row.keys() - event.keys() - {"source", "time", "process"})


def test_secrets_stay_out(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    line = f'[2026-09-12 10:00:00] INFO:     10.0.0.1:5000 - "GET /v1/models?token={SECRET} HTTP/1.1" 200 OK\n'
    path.write_text(line * 2000)
    export([str(path)], tmp_path / "out")
    paths = pl.read_parquet(tmp_path / "out" / "common.http_access" / "*.parquet")["path"].unique().to_list()
    assert paths == ["/v1/models?token=[redacted]"]


def test_a_folder_that_exists_is_left_alone(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="exists already"):
        export([str(Path("samples/sglang/wrapper_nextn.log"))], tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_nested_values_are_json(tmp_path: Path) -> None:
    export(["samples/sglang/wrapper_nextn.log"], tmp_path / "out")
    table = pl.read_parquet(tmp_path / "out" / "sglang.server_args" / "*.parquet")
    assert json.loads(table["args"][0])["tp_size"] == 1


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status = command(["samples/sglang/wrapper_nextn.log"], kind=["decode_batch"], output=tmp_path / "out")
    assert status == 0
    assert [part.name for part in (tmp_path / "out").iterdir()] == ["sglang.decode_batch"]
    assert "events of 1 kinds" in capsys.readouterr().out


@pytest.mark.parametrize(("engine", "kind"), [("sglang", "decode_batch"), ("vllm", "stats"), ("vllm", "http_access")])
def test_one_kind_alone(engine: str, kind: str, tmp_path: Path) -> None:
    path = write_log(tmp_path / "run.log", 2, engine, 3, 13)
    lines = path.read_text().splitlines(keepends=True)
    for place, fault in enumerate(FAULTS * 3, 1):
        lines.insert(place * len(lines) // (3 * len(FAULTS) + 1), fault)
    path.write_bytes("".join(lines).encode())
    all_rows = export([str(path)], tmp_path / "all")
    rows = export([str(path)], tmp_path / "one", frozenset({kind}))
    (wanted,) = [key for key in all_rows if key[1] == kind]
    assert rows == {wanted: all_rows[wanted]}
    name = ".".join(wanted)
    one, every = (pl.read_parquet(tmp_path / place / name / "*.parquet").sort("line") for place in ("one", "all"))
    assert one.equals(every)
