"""One log in many clothes: what editors, collectors, shells and sites make of it changes nothing of what is said."""

from __future__ import annotations

import functools
import html
import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from analyzer.pipeline import explain
from analyzer.resources import data_dir
from tests.framing.test_unwrap import wrapped

SAMPLES = {path.stem: path for path in data_dir("samples").rglob("*.log")}
NAMES = ("wrapper_nextn", "sglang_0.5.17_dense_too_small_mf", "sglang_0.5.23_bad_path", "vllm_0.10.2_quant_mismatch")
OTHERS = (
    '127.0.0.1 - - [30/Nov/2026:02:55:49 +0000] "GET /health HTTP/1.1" 200 2 "-" "kube-probe/1.29"',
    "2026/11/30 02:55:49 [error] 29#29: *1 connect() failed (111: Connection refused) while connecting to upstream",
    "1:C 30 Nov 2026 02:55:48.001 # WARNING Memory overcommit must be enabled!",
)


def each(form: Callable[[int, str], str]) -> Callable[[list[str]], str]:
    return lambda lines: "".join(form(n, line) + "\n" for n, line in enumerate(lines))


def clock(n: int) -> str:
    return f"{n // 3600 % 24:02}:{n // 60 % 60:02}:{n % 60:02}"


def composed(lines: list[str], names: Sequence[str] = ("server  | ", "nginx   | ")) -> str:
    chance, out = random.Random(1), []
    for line in lines:
        out.append(names[0] + line)
        if chance.random() < 0.3:
            out.append(names[1] + chance.choice(OTHERS))
    return "\n".join(out) + "\n"


def page(line: str) -> str:
    return f'<span class="line">{html.escape(line)}</span>'


VARIANTS: dict[str, Callable[[list[str]], str | bytes]] = {
    "UTF-16": lambda lines: "\r\n".join(lines).encode("utf-16"),
    "UTF-16 without a mark": lambda lines: "\r\n".join(lines).encode("utf-16-le"),
    "UTF-16 added to UTF-8": lambda lines: (
        ("\n".join(lines[:9]) + "\n").encode() + ("\r\n".join(lines[9:]) + "\r\n").encode("utf-16-le")
    ),
    "a mark and CRLF": lambda lines: b"\xef\xbb\xbf" + "\r\n".join(lines).encode(),
    "NUL in front": lambda lines: b"\0" * 4096 + "\n".join(lines).encode(),
    "colours": each(lambda n, t: f"\x1b[32m{t[:20]}\x1b[0m{t[20:]}\x1b[K"),
    "blanks that do not break": each(lambda n, t: t.replace(" ", "\xa0")),
    "typographic quotes": each(lambda n, t: t.replace("'", "\u2019")),
    "HTML": each(lambda n, t: page(t)),
    "HTML, escaped twice": each(lambda n, t: html.escape(html.escape(t))),
    "HTML, a table": each(lambda n, t: f'<tr><td class="n">{n}</td><td>{html.escape(t)}</td></tr>'),
    "Markdown": lambda lines: "### Describe the bug\n\n```bash\n" + "\n".join(lines) + "\n```\n\n### Environment\n",
    "Markdown, details": lambda lines: (
        "<details><summary>log</summary>\n<pre>\n" + "\n".join(lines) + "\n</pre></details>"
    ),
    "Markdown, indented": each(lambda n, t: f"    {t}"),
    "Markdown, a list": lambda lines: "1. Start it\n   ```\n" + each(lambda n, t: f"   {t}")(lines) + "   ```\n2. See",
    "Markdown, quoted": each(lambda n, t: f"> {t}"),
    "each line as code": each(lambda n, t: f"`{t}`" if t else ""),
    "each line a string": each(lambda n, t: json.dumps(t) + ","),
    "typescript": lambda lines: (
        "Script started on 2026-11-30\n\x1b[?2004h\x1b]0;u@gpu: ~\x07$ ./run\r\n"
        + "\r\n".join(lines)
        + "\r\n$ exit\r\n"
    ),
    "wrapped": lambda lines: wrapped(lines, 119),
    "compose": composed,
    "compose, coloured": lambda lines: composed(lines, ("\x1b[36mserver  |\x1b[0m ", "\x1b[33mnginx   |\x1b[0m ")),
    "kubectl": each(lambda n, t: f"[pod/llm-7d9f8b-x2x4z/server] 2026-11-30T{clock(n)}.123456789Z {t}"),
    "CRI": each(lambda n, t: f"2026-11-30T{clock(n)}.123456789Z stderr F {t}"),
    "docker": each(lambda n, t: json.dumps({"log": t + "\n", "stream": "stderr", "time": f"2026-11-30T{clock(n)}.1Z"})),
    "stern": each(lambda n, t: f"llm-7d9f8b6c5d-x2x4z server {t}"),
    "journal": each(lambda n, t: f"Nov 30 {clock(n)} gpu01 vllm[4711]: {t}"),
    "journal, JSON": each(lambda n, t: json.dumps({"_SYSTEMD_UNIT": "vllm.service", "MESSAGE": list(t.encode())})),
    "fluentd": each(
        lambda n, t: f"2026-11-30 {clock(n)}.0 +0000 kube.a: " + json.dumps({"stream": "stderr", "log": t})
    ),
    "fluent-bit": each(lambda n, t: f"[0] kube.a: [[1783000000.{n:09}, {{}}], " + json.dumps({"log": t, "a": 1}) + "]"),
    "events of a server": each(lambda n, t: "data: " + json.dumps({"_SYSTEMD_UNIT": "a", "MESSAGE": t})),
    "logfmt": each(lambda n, t: f"time=2026-11-30T{clock(n)}Z level=info msg=" + json.dumps(t)),
    "a level in JSON": each(lambda n, t: json.dumps({"time": f"2026-11-30T{clock(n)}Z", "level": "INFO", "msg": t})),
    "a message within": each(lambda n, t: json.dumps({"jsonPayload": {"message": t}, "severity": "ERROR"})),
    "syslog": each(lambda n, t: f"<14>1 2026-11-30T{clock(n)}.123456Z gpu01 vllm 4711 - - {t}"),
    "ts": each(lambda n, t: f"Nov 30 {clock(n)} {t}"),
    "grep": each(lambda n, t: f"server.log:{n}:{t}"),
    "numbered": each(lambda n, t: f"{n:6}\t{t}"),
    "srun": each(lambda n, t: f"0: {t}"),
    "ray": each(lambda n, t: f"(ServeReplica:default:LLM pid=1234, ip=10.0.0.2) {t}"),
    "CI": each(lambda n, t: f"test\tRun server\t2026-11-30T{clock(n)}.1234567Z {t}"),
}


Said = list[tuple[str, str, list[str]]]


def said_of(path: Path) -> Said:
    return [
        (run.engine or "", run.outcome, [finding.rule for finding in run.findings]) for run in explain([str(path)]).runs
    ]


@functools.cache
def said_of_sample(name: str) -> Said:
    return said_of(SAMPLES[name])


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("name", NAMES)
def test_the_same_is_said(name: str, variant: str, tmp_path: Path) -> None:
    made = VARIANTS[variant](SAMPLES[name].read_text().rstrip("\n").split("\n"))
    log = tmp_path / "server.log"
    log.write_bytes(made if isinstance(made, bytes) else made.encode())
    assert said_of(log) == said_of_sample(name)
