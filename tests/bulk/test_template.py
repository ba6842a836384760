"""A template fits the lines that differ from its example in their figures, and no others."""

from __future__ import annotations

import re

import pytest

from analyzer.bulk.template import Template, learn
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


def _groups(template: Template, line: str) -> tuple[str, ...] | None:
    match = re.fullmatch(template.expression, line)
    return match.groups() if match else None


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
    assert _groups(template, other) == (" DP12 TP3 EP3", "31", "1200", "0.04", "2.50", "123.45", "0")


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
    assert _groups(template, DECODE.replace(old, new)) is None


def test_a_process_is_part_of_the_template() -> None:
    template = _template(STATS)
    assert template is not None
    assert (template.pid, template.engine, template.kind) == (7, "vllm", "stats")
    assert _groups(template, STATS.replace("pid=7", "pid=8")) is None
    assert _groups(template, STATS.replace("INFO", "WARNING")) is None
    assert _groups(template, STATS.replace("Engine 000", "Engine 013")) is not None


def test_an_access_line_keeps_its_request() -> None:
    template = _template(ACCESS)
    assert template is not None
    other = ACCESS.replace("10.0.0.1:5000", "192.168.7.31:1").replace("/v1/chat/completions", "/health")
    assert _groups(template, other) == ('POST /health HTTP/1.1" 200 OK',)
    assert _groups(template, ACCESS.replace("10.0.0.1:5000", "client:5000")) is None


def test_every_field() -> None:
    template = _template(STATS, every=True)
    assert template is not None
    assert template.stamped
    groups = _groups(template, STATS)
    assert groups is not None
    assert dict(zip(["stamp", *(c.name for c in template.columns)], groups, strict=True)) == {
        "stamp": "09-12 10:00:00", "engine_index": "000", "prefill_rate": "8.0", "decode_rate": "32.0",
        "running": "10", "queued": "3", "pool_device": "GPU", "usage": "99.9", "prefix_hit": "0.0",
    }  # fmt: skip
