"""Events as lines of JSON: quick ones and odd ones say the same, and no secret and no broken JSON gets out."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from analyzer.event_lines import EventLines, as_json, json_line
from analyzer.events import Event
from analyzer.framing.record import Record
from analyzer.listing import records_and_events
from analyzer.resources import data_dir

SAMPLES = sorted(data_dir("samples").glob("*/*.log"))


def event(**fields: Any) -> Event:
    record = Record("a.log", 7, 8, "text", "log", 1.0, "2026-01-01 00:00:00", rank="TP0", process="EngineCore")
    return Event("some_kind", "sglang", record, fields, dict.fromkeys(fields, "tokens"))


@pytest.mark.parametrize("path", SAMPLES, ids=lambda p: p.name)
def test_every_event_of_the_samples_is_written_as_the_contract_says(path: Any) -> None:
    write = EventLines({"type": "event"}).line
    for _, found in records_and_events([str(path)]):
        if found is not None:
            assert write(found) == json_line({"type": "event", **as_json(found)})


@pytest.mark.parametrize(
    "value",
    [
        0,
        -3,
        10**30,
        0.1,
        1e300,
        True,
        None,
        "",
        "100 % %s",
        'a "quoted" \\ text\n',
        "naïve \u2603",
        [1, "x"],
        {"a": None},
    ],
)
def test_values_come_back(value: object) -> None:
    write = EventLines().line
    for _ in range(2):
        row = json.loads(write(event(one=1, it=value, two="two")))
        assert row["fields"]["it"] == {"value": value, "unit": "tokens"}
        assert (row["source"], row["line"], row["last_line"], row["time"]) == ("a.log", 7, 8, "2026-01-01 00:00:00")
        assert (row["rank"], row["process"], row["engine"], row["kind"]) == ("TP0", "EngineCore", "sglang", "some_kind")


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_numbers_that_json_does_not_have(value: float) -> None:
    write = EventLines().line
    assert json.loads(write(event(it=1.5)))["fields"]["it"]["value"] == 1.5
    row = json.loads(write(event(it=value)), parse_constant=pytest.fail)
    assert row["fields"]["it"]["value"] == str(value)


def test_two_infinities_do_not_cancel_out() -> None:
    row = json.loads(EventLines().line(event(a=math.inf, b=-math.inf)), parse_constant=pytest.fail)
    assert [row["fields"][name]["value"] for name in "ab"] == ["inf", "-inf"]


@pytest.mark.parametrize(
    ("fields", "secret"),
    [
        ({"path": "/v1/models?api_key=abcdef123456"}, "abcdef123456"),
        ({"text": "Authorization: Bearer abcdef123456"}, "abcdef123456"),
        ({"api_key": "abcdef123456"}, "abcdef123456"),
        ({"arguments": {"hf_token": "abcdef123456"}}, "abcdef123456"),
        ({"text": "x" * 300 + " hf_Abcdef123456"}, "hf_Abcdef123456"),
        ({"text": "xoxb-12345678-abcdefgh"}, "xoxb-12345678"),
        ({"text": "eyJhbGciOiJI.eyJzdWIiOiIx"}, "eyJhbGciOiJI"),
    ],
)
def test_secrets_stay_out(fields: dict[str, Any], secret: str) -> None:
    write = EventLines().line
    for _ in range(2):  # the second time from what was remembered
        line = write(event(**fields))
        assert secret not in line
        assert "[redacted]" in line
        json.loads(line)


def test_control_characters_are_spelled_out() -> None:
    line = EventLines().line(event(text="a\x1b[2Jb\u202ec"))
    assert line.isprintable()
    assert json.loads(line)["fields"]["text"]["value"] == "a\\x1b[2Jb<U+202E>c"


def test_a_cut_dump_says_so() -> None:
    found = event(a=1)
    found.cut = True
    assert json.loads(EventLines().line(found))["cut"] is True
