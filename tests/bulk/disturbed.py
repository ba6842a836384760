"""Runtime logs with what else a log holds: other programs' lines, tracebacks, torn lines, collectors' prefixes."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.generate import write_log

FAULTS = (
    "Traceback (most recent call last):\n"
    '  File "/app/sglang/srt/entrypoints/http_server.py", line 12, in generate\n'
    "    x = y\n"
    "ValueError: request was bad\n",
    "a raw line of another program\n",
    "\n",
    "torn \x1b[31mcolour\x1b[0m and \r a bar 10%|#   | 1/10\r 20%|##  | 2/10\n",
    "[2026-09-12 10:00:00] Something fails to work: error 17\n",
    "[2026-09-12 10:00:00] A list of what follows:\n",
    "  indented\n",
    "(EngineCore pid=77) ERROR 09-12 10:00:00 [core.py:1] Traceback (most recent call last):\n"
    '(EngineCore pid=77) ERROR 09-12 10:00:00 [core.py:1]   File "/app/vllm/v1/engine/core.py", line 1, in run\n'
    "(EngineCore pid=77) ERROR 09-12 10:00:00 [core.py:1] KeyError: 'x'\n",
    "[2026-09-12 10:00:00 DP0 TP0] Decode batch, #running-req: 9, #full token: 800, full token usage: 0.99, "
    "accept len: 2.50, cuda graph: True, gen throughput (token/s): 12.00, #queue-req: 99999999999999999999\n",
    "[2026-09-12 10:00:00] Decode batch, #running-req: 9, #token: 800, token usage: 0.99, "
    "gen throughput (token/s): nan, #queue-req: 3\n",
    "(APIServer pid=1) INFO 09-12 10:00:00 [a.py:1] said by a process not seen before\n",
    '[2026-09-12 10:00:00] INFO:     10.0.0.1:5000 - "POST /v1/KV cache is allocated. HTTP/1.1" 200 OK\n',
    '[2026-09-12 10:00:00] INFO:     10.0.0.1:5000 - "GET /a%2Ferror?KV=1 HTTP/1.1" 500 Internal Server Error\n',
    "two glued [2026-09-12 10:00:00] The server is fired up and ready to roll!\n",
    "caf\u00e9 \u2588 \U0001f6a8\n",
    "[2026-09-12 10:00:00] Receive: obj=GenerateReqInput(rid='ab', text='caf\u00e9, not an error, KV cache is full')\n",
    "[2026-09-12 10:00:00] Receive: obj=GenerateReqInput(rid='ab', text='cut in the middle:\n",
    "(APIServer pid=4711) INFO 09-12 10:00:00 [logger.py:39] Received request cmpl-1: prompt: 'Request 7 failed (bad"
    " luck) INFO 09-12 10:00:00', params: SamplingParams(n=1)\n",
    "(APIServer pid=4711) INFO 09-12 10:00:00 [logger.py:39] Received request of another form, not to be taken\n",
)

COLLECTORS = {
    "docker": "2026-09-12T10:{m:02}:{s:02}.{n:09}Z ",
    "cri": "2026-09-12T10:{m:02}:{s:02}.{n:09}+02:00 stdout F ",
    "compose": "inference-1  | ",
    "journal": "Sep 12 10:{m:02}:{s:02} host-7 python3[4711]: ",
    "kubectl": "[pod/llm-0/server] ",
}
_START = 1500
"""Lines that are left alone: the start of the server."""


def with_faults(text: str, chance: random.Random, count: int) -> list[str]:
    """The lines of ``text`` with ``count`` of ``FAULTS`` among them."""
    lines = text.splitlines(keepends=True)
    for _ in range(count):
        lines.insert(chance.randrange(_START, len(lines)), chance.choice(FAULTS))
    return "".join(lines).splitlines(keepends=True)


def behind(collector: str, lines: Sequence[str]) -> Iterator[str]:
    """``lines`` as a collector shows them."""
    form = COLLECTORS[collector]
    for i, line in enumerate(lines):
        yield form.format(m=i // 6000 % 60, s=i // 100 % 60, n=i * 7919 % 10**9) + line


def as_objects(lines: Sequence[str], chance: random.Random) -> Iterator[str]:
    """``lines`` as docker's json-file driver writes them."""
    for number, line in enumerate(lines):
        stream = chance.choice(("stdout", "stderr"))
        time = f"2026-09-12T10:{number // 6000 % 60:02}:{number // 100 % 60:02}.{number * 7919 % 10**9:09}Z"
        parts = [line] if chance.random() < 0.99 else [line[:7], line[7:]]  # what is long comes in parts
        for part in filter(None, parts):
            text = json.dumps({"log": part, "stream": stream, "time": time}, separators=(",", ":"), ensure_ascii=False)
            yield text.replace("<", "\\u003c").replace("&", "\\u0026") + "\n"


def disturbed_log(seed: int, folder: Path) -> Path:
    """A log of one to three megabytes with anything of that in it."""
    chance = random.Random(seed)
    engine, ranks = chance.choice(("sglang", "vllm")), chance.choice((1, 2, 5))
    path = write_log(folder / "run.log", chance.choice((1, 2, 3)), engine, ranks, seed)
    lines = with_faults(path.read_text(), chance, chance.choice((0, 5, 50, 400)))
    if chance.random() < 0.3:
        for _ in range(200):
            at = chance.randrange(_START, len(lines))
            lines[at] = lines[at][: chance.randrange(len(lines[at]))] + "\n"
    if chance.random() < 0.3:
        for _ in range(200):
            at = chance.randrange(_START, len(lines))
            place = chance.randrange(len(lines[at]))
            lines[at] = lines[at][:place] + chance.choice('0-+.eE: [](),"\\\u00e9\x1b\r') + lines[at][place + 1 :]
    if chance.random() < 0.2:
        at = chance.randrange(_START, len(lines) - 400)
        some = lines[at : at + 300]
        chance.shuffle(some)
        lines[at : at + 300] = some
    form = chance.random()
    if form < 0.2:
        lines = list(behind(chance.choice(sorted(COLLECTORS)), lines))
    elif form < 0.3:
        lines = list(as_objects(lines, chance))
    elif form < 0.4:
        lines = [line.removesuffix("\n") + "\r\n" for line in lines]
    path.write_bytes("".join(lines).encode())
    return path
