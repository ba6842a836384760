"""From records to events: order of trying, values, places, limits."""

from __future__ import annotations

from pathlib import Path

import pytest

from analyzer import resources
from analyzer.framing.record import Record
from analyzer.parsing.catalog import Catalog
from analyzer.parsing.table import load_table

GIB = 1 << 30

FILES = {
    "sglang/a.lark": """
// 0.4..0.5 | INFO | pool
//= KV: 10 tokens, 1.50 GB
//= KV: 1,000 tokens
pool: "KV: " tokens " tokens" [", " size " GB"]
tokens: TOKENS
size: GIB
// 0.5.. | INFO | a better known pool
//= KV: 10 tokens, 1.50 GB, dtype torch.bfloat16
pool_typed: "KV: " tokens " tokens, " size " GB, dtype " dtype
dtype: DTYPE
// 0.5.. | INFO | either way
//= mode one: 5 or 7
//= mode two: True and None
mode: "mode one: " value " or " other | "mode two: " flag " and " other
value: INT
other: INT_OR_NONE
flag: BOOL
// 0.5.. | INFO | begins with a field
//= fa3 backend is used at 25.0%
backend: name " backend is used at " share "%" END
name: NAME
share: PERCENT
// 0.5.. | INFO | dump
//= server_args=ServerArgs(a=1, b='x')
dump: "server_args=" values
values: NESTED
// 0.5.. | INFO | short
//= Killed
killed: BEGIN "Killed" END
""",
    "vllm/a.lark": """
// 0.10.. | INFO | the same text in another engine
//= KV: 10 tokens
v_pool: "KV: " tokens " tokens"
tokens: TOKENS
// 0.10.. | INFO | sizes
//= Tried to allocate 20.00 MiB. took 01:02:03, 1e-05 ms
sizes: "Tried to allocate " size ". took " clock ", " took " ms"
size: SIZE
clock: CLOCK
took: MILLISECONDS
""",
    "common/a.lark": """
// 1.. | INFO | shared
//= up on host:80
up: "up on " host ":" port
host: HOST
port: INT
""",
}


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    folder = tmp_path_factory.mktemp("grammars")
    for name, text in FILES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text.lstrip())
    (folder / "terminals.lark").write_text((resources.data_dir("grammars") / "terminals.lark").read_text())
    made = Catalog.load(folder)
    assert made.problems == []
    return made


def _read(catalog: Catalog, text: str, engine: str = "") -> tuple[str, dict[str, object]] | None:
    event = catalog.match(Record("log", 7, 7, text), engine)
    return (event.kind, event.fields) if event else None


def test_values_are_in_base_units(catalog: Catalog) -> None:
    assert _read(catalog, "KV: 1,525,201 tokens, 1.50 GB") == ("pool", {"tokens": 1525201, "size": 1.5 * GIB})
    assert _read(catalog, "fa3 backend is used at 25.0%  ") == ("backend", {"name": "fa3", "share": 0.25})
    assert _read(catalog, "Tried to allocate 20.00 MiB. took 01:02:03, 5 ms") == (
        "sizes",
        {"size": 20.0 * (1 << 20), "clock": 3723.0, "took": 0.005},
    )
    assert _read(catalog, "mode two: true and None") == ("mode", {"flag": True, "other": None})
    assert _read(catalog, "mode one: -3 or -1") == ("mode", {"value": -3, "other": None})


def test_units_and_absent_fields(catalog: Catalog) -> None:
    event = catalog.match(Record("log", 1, 1, "KV: 5 tokens"), "sglang")
    assert event is not None
    assert event.units == {"tokens": "tokens", "size": "bytes"}
    assert "size" not in event.fields
    assert event.engine == "sglang"
    assert event.record.line == 1


def test_more_fixed_text_wins(catalog: Catalog) -> None:
    text = "KV: 10 tokens, 1.50 GB, dtype torch.bfloat16"
    assert _read(catalog, text) == ("pool_typed", {"tokens": 10, "size": 1.5 * GIB, "dtype": "bfloat16"})
    assert _read(catalog, f"[glued] {text}") == _read(catalog, text)


def test_the_run_s_engine_is_preferred(catalog: Catalog) -> None:
    assert _read(catalog, "KV: 10 tokens", "sglang") == ("pool", {"tokens": 10})
    assert _read(catalog, "KV: 10 tokens", "vllm") == ("v_pool", {"tokens": 10})
    assert _read(catalog, "up on [::1]:80", "vllm") == ("up", {"host": "[::1]", "port": 80})
    assert _read(catalog, "mode one: 5 or 7", "vllm") == ("mode", {"value": 5, "other": 7})


def test_found_anywhere_but_places_hold(catalog: Catalog) -> None:
    assert _read(catalog, "progress 50%|### KV: 7 tokens and more") == ("pool", {"tokens": 7})
    assert _read(catalog, "first line\nKilled  ") == ("killed", {})
    assert _read(catalog, "Killed by hand") is None
    assert _read(catalog, "was Killed") is None
    assert _read(catalog, "fa3 backend is used at 25.0% mostly") is None


def test_dumps_are_parsed_and_cuts_are_told(catalog: Catalog) -> None:
    whole = catalog.match(Record("log", 1, 1, "server_args=ServerArgs(a=1, b=[1, 2])"))
    assert whole is not None
    assert whole.fields == {"values": {"__class__": "ServerArgs", "a": 1, "b": [1, 2]}}
    assert not whole.cut
    cut = catalog.match(Record("log", 1, 1, "server_args=ServerArgs(a=1, b=[1, 2"))
    assert cut is not None
    assert cut.cut
    assert cut.fields["values"]["a"] == 1


def test_long_texts(catalog: Catalog) -> None:
    """A message far inside a long record is found; a dump is read to its end, however long."""
    assert _read(catalog, "x" * 40_000 + " KV: 7 tokens") == ("pool", {"tokens": 7})
    assert _read(catalog, "- " * 20_000 + "\nfa3 backend is used at 5%\n" + "y" * 40_000) == (
        "backend",
        {"name": "fa3", "share": 0.05},
    )
    dump = "server_args=ServerArgs(" + ", ".join(f"a{n}={n}" for n in range(20_000)) + ")"
    found = _read(catalog, dump)
    assert found is not None
    assert len(found[1]["values"]) == 20_001  # type: ignore[arg-type]


def test_numbers_no_machine_can_hold_are_left_out(catalog: Catalog) -> None:
    assert _read(catalog, f"KV: {'9' * 5000} tokens") == ("pool", {})


def test_literals_are_in_all_that_is_recognised(catalog: Catalog) -> None:
    """The bulk search may not lose a line that ``match`` would recognise."""
    literals = catalog.literals
    for text in ("KV: 1 tokens", "mode one: 5 or 7", "mode two: True and 1", "Killed", "a backend is used at 1%"):
        assert catalog.match(Record("log", 1, 1, text)) is not None
        assert any(literal in text for literal in literals)


def test_stored_table_is_the_built_one(catalog: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cache gives what was built, and a change of a grammar file is seen."""
    monkeypatch.setenv("KVAUTOPSY_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "grammars"
    (folder / "sglang").mkdir(parents=True)
    (folder / "terminals.lark").write_text("INT: /[0-9]+/\n")
    (folder / "sglang" / "a.lark").write_text('// 1 | x\n//= abcdef 1\none: "abcdef " n\nn: INT\n')
    first = load_table(folder)
    assert load_table(folder) == first
    assert len(list((tmp_path / "cache").iterdir())) == 1
    (folder / "sglang" / "a.lark").write_text('// 1 | x\n//= abcdef 1\ntwo: "abcdef " n\nn: INT\n')
    assert [shape["kind"] for shape in load_table(folder)["shapes"]] == ["two"]
