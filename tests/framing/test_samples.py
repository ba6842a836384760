"""The shipped samples inside many wrappings: the same records come out, whatever a collector put around the lines."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from analyzer.framing import frame
from analyzer.resources import data_dir

SAMPLES = sorted(data_dir("samples").rglob("*.log"))

WRAPPINGS: dict[str, Callable[[bytes], bytes]] = {
    "crlf": lambda line: line + b"\r",
    "compose": lambda line: b"server-1  | " + line,
    "cri": lambda line: b"2026-06-24T17:38:02.436246479Z stdout F " + line,
    "kubectl": lambda line: b"[pod/server-7f9/main] 2026-06-24T17:38:02.436246479Z " + line,
    "journald": lambda line: b"Nov 30 03:24:15 node7 server[812]: " + line,
    "build log": lambda line: b"[2025-05-20T05:24:25Z] " + line,
    "json-file": lambda line: json.dumps(
        {"log": line.decode("utf-8", "replace") + "\n", "stream": "stderr", "time": "2026-11-30T02:55:49.5Z"}
    ).encode(),
}


@pytest.mark.parametrize("wrapping", WRAPPINGS)
@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_wrapped(path: Path, wrapping: str) -> None:
    data = path.read_bytes()
    lines = data.removesuffix(b"\n").split(b"\n")
    wrapped = b"".join(WRAPPINGS[wrapping](line) + b"\n" for line in lines)
    plain = [(record.form, record.line, record.text, record.rank, record.process) for record in frame([data], "log")]
    found = [(record.form, record.line, record.text, record.rank, record.process) for record in frame([wrapped], "log")]
    assert found == plain
