"""A template fits the lines that differ from its example in their figures, and no others."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

from analyzer.bulk.extract import extract
from analyzer.bulk.lines import Lines
from analyzer.bulk.template import Template, learn
from analyzer.bulk.tokens import Column, Fixed, Tail
from analyzer.framing.plain import read_plain
from analyzer.parsing import default_catalog

DECODE = (
    "[2026-09-12 10:00:00 DP0 TP0] Decode batch, #running-req: 3, #token: 1200, token usage: 0.04, accept len: 2.50, "
    "cuda graph: True, gen throughput (token/s): 123.45, #queue-req: 0"
)
STATS = (
    "(APIServer pid=7) INFO 09-12 10:00:00 [loggers.py:248] Engine 000: Avg prompt throughput: 8.0 tokens/s, Avg "
    "generation throughput: 32.0 tokens/s, Running: 10 reqs, Waiting: 3 reqs, GPU KV cache usage: 99.9%, "
    "Prefix cache hit rate: 0.0%"
)
ACCESS = '(APIServer pid=7) INFO:     10.0.0.1:5000 - "POST /v1/chat/completions HTTP/1.1" 200 OK'


def _template(line: str, every: bool = False) -> Template | None:
    plain = read_plain("x", 1, line)
    assert plain is not None
    found = default_catalog().find(plain.record.text)
    assert found is not None
    return learn(plain, line, *found, every)


def _fields(template: Template, line: str) -> dict[str, Any] | None:
    """The fields of ``line`` by columns; None if it is not of the template."""
    lines = Lines.of(f"{line}\n".encode())
    assert lines is not None
    claim, taken = extract(template, lines, np.arange(1))
    if not len(claim):
        assert not taken.any()
        return None
    row = claim.frame().row(0, named=True)
    if claim.answers is not None:
        row["answer"] = claim.answers.texts[claim.answers.codes[0]]
    assert row.pop("row") == 0
    return row


def test_figures_and_ranks_may_differ() -> None:
    template = _template(DECODE)
    assert template is not None
    assert [c.name for c in template.columns] == [
        "running",
        "tokens",
        "usage",
        "accept_length",
        "decode_rate",
        "queued",
    ]
    other = DECODE.replace("10:00:00 DP0 TP0", "23:59:59 DP12 TP3 EP3").replace("-req: 3", "-req: 31")
    assert _fields(template, other) == {
        "rank": "DP12 TP3 EP3", "running": 31, "tokens": 1200, "usage": 0.04, "accept_length": 2.5,
        "decode_rate": 123.45, "queued": 0,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("accept len: 2.50, ", ""),
        ("0.04", "nan"),
        ("0.04", "4"),
        ("1200", "1,200"),
        ("1200", "-1"),
        ("#queue-req: 0", "#queue-req: 0 and more"),
        ("Decode batch", "Decode Batch"),
        (" DP0 TP0", " Dp0"),
        ("10:00:00", "10:00:00.123"),
        ("True", "true"),
    ],
)
def test_anything_else_may_not(old: str, new: str) -> None:
    template = _template(DECODE)
    assert template is not None
    assert _fields(template, DECODE.replace(old, new)) is None


def test_a_process_is_part_of_the_template() -> None:
    template = _template(STATS)
    assert template is not None
    assert (template.pid, template.engine, template.kind) == (7, "vllm", "stats")
    assert _fields(template, STATS.replace("pid=7", "pid=8")) is None
    assert _fields(template, STATS.replace("INFO", "WARNING")) is None
    assert _fields(template, STATS.replace("Engine 000", "Engine 013")) is not None


def test_an_access_line_keeps_its_request() -> None:
    template = _template(ACCESS)
    assert template is not None
    other = ACCESS.replace("10.0.0.1:5000", "192.168.7.31:1").replace("/v1/chat/completions", "/health")
    assert _fields(template, other) == {"rank": "", "answer": 'POST /health HTTP/1.1" 200 OK'}
    assert _fields(template, ACCESS.replace("10.0.0.1:5000", "client:5000")) is None


def test_every_field() -> None:
    template = _template(STATS, every=True)
    assert template is not None
    assert _fields(template, STATS) == {
        "rank": "", "stamp": "09-12 10:00:00", "engine_index": 0, "prefill_rate": 8.0, "decode_rate": 32.0,
        "running": 10, "queued": 3, "pool_device": "GPU", "usage": 0.01 * 99.9, "prefix_hit": 0.0,
    }  # fmt: skip


def test_every_field_of_an_access_line() -> None:
    template = _template(ACCESS, every=True)
    assert template is not None
    assert _fields(template, ACCESS) == {
        "rank": "", "client": "10.0.0.1:5000", "method": "POST", "path": "/v1/chat/completions", "status": 200,
    }  # fmt: skip


def test_a_list_of_rates() -> None:
    line = (
        "(APIServer pid=7) INFO 09-12 10:00:00 [metrics.py:101] SpecDecoding metrics: Mean acceptance length: 2.65, "
        "Accepted throughput: 12.30 tokens/s, Drafted throughput: 22.50 tokens/s, Accepted: 123 tokens, Drafted: 225 "
        "tokens, Per-position acceptance rate: 0.801, 0.553, 0.296, Avg Draft acceptance rate: 54.7%"
    )
    together, apart = _template(line), _template(line, every=True)
    assert together is not None and apart is not None
    fields = _fields(together, line)
    assert fields is not None and fields["positions"] == 0.801 + 0.553 + 0.296
    fields = _fields(apart, line)
    assert fields is not None and fields["positions"] == "0.801, 0.553, 0.296"
    assert _fields(apart, line.replace("0.801, 0.553", "0.801")) is None


def test_no_template_without_certainty() -> None:
    assert _template(DECODE.replace("123.45", "123.4567890123")) is None, "more digits than a cursor reads"
    assert _template(DECODE.replace("10:00:00", "10:00:00.123")) is None


def test_truths_behind_a_name_stay_truths() -> None:
    columns = (Column("name"), Column("on", "bool"))
    template = Template("x", "vllm", None, tokens=(Fixed(b"set "),), tail=Tail("^([a-z0-9]+) (True|False)$", columns))
    lines = Lines.of(b"set a1 True\nset b2 False\nset c3 Perhaps\n" * 9)
    assert lines is not None
    frame = extract(template, lines, np.arange(27))[0].frame()
    assert frame["on"].to_list() == [True, False] * 9
    assert frame["name"].to_list() == ["a1", "b2"] * 9


def test_tags_that_are_no_ranks_are_left() -> None:
    template = _template(DECODE)
    assert template is not None
    texts = [DECODE.replace(" DP0 TP0", f" dp{number}") for number in range(3000)]
    lines = Lines.of("".join(f"{text}\n" for text in [*texts, DECODE]).encode())
    assert lines is not None
    started = time.monotonic()
    claim, _ = extract(template, lines, np.arange(len(lines)))
    assert len(claim) <= 1
    assert time.monotonic() - started < 2
