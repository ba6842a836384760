"""From a hostile log to every page: no secret, no live escape sequence, no markup of the log's making."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from analyzer.pipeline import explain
from analyzer.report import render, to_terminal
from analyzer.report.model import Report

SECRETS = ("hunter2secret", "hf_AbCdEfGhIjKlMnOpQrSt", "sk-abcdef0123456789", "pa55word")
LOG = (
    "[2026-11-30 02:58:11] server_args=ServerArgs(model_path='/m/<img src=x onerror=alert(1)>', "
    "api_key='hunter2secret', hf_token='hf_AbCdEfGhIjKlMnOpQrSt', mem_fraction_static=0.8, tp_size=1, "
    "served_model_name='sk-abcdef0123456789', dist_init_addr='http://u:pa55word@h:1')\n"
    "[2026-11-30 02:58:35] Load weight begin. avail mem=79.13 GB\n"
    "[2026-11-30 02:58:37] Load weight end. elapsed=2.25 s, type=<script>alert(1)</script>, avail mem=62.98 GB, "
    "mem usage=16.14 GB.\n"
    "[2026-11-30 02:58:38] KV Cache is allocated. dtype: torch.bfloat16, #tokens: 392228, K size: 2.99 GB, "
    "V size: 2.99 GB\n"
    "[2026-11-30 02:58:38] Memory pool end. avail mem=15.81 GB\n"
    "[2026-11-30 02:58:45] max_total_num_tokens=392228, chunked_prefill_size=8192, max_prefill_tokens=16384, "
    "max_running_requests=45, context_len=262144, available_gpu_mem=15.51 GB\n"
    "[2026-11-30 02:58:47] The server is fired up and ready to roll!\n"
    "ERROR \x1b]0;owned\x07\x1b[2J \u202egnp.exe Bearer hunter2secret ``` </pre> @everyone #1\n"
    "Traceback (most recent call last):\n"
    '  File "/x/<b>.py", line 1, in f\n'
    "RuntimeError: \x1b[31m<script>alert(2)</script> --api-key hunter2secret ]]> \x1b[0m\n"
)


@pytest.fixture
def attacked(tmp_path: Path) -> Report:
    path = tmp_path / "server.log"
    path.write_text(LOG, encoding="utf-8")
    return explain([str(path)])


def test_the_log_was_understood(attacked: Report) -> None:
    assert attacked.runs[0].facts["pool.tokens"].value == 392228
    assert attacked.runs[0].facts["args.api_key"].value == "[redacted]"


@pytest.mark.parametrize("format", ["json", "markdown", "html", "sarif", "junit", "text"])
def test_no_secret_and_no_escape_reaches_a_page(attacked: Report, format: str) -> None:
    page = render(attacked, format, noise=True)
    assert not [secret for secret in SECRETS if secret in page]
    assert not [c for c in page if (ord(c) < 32 and c not in "\n\t") or 0x7F <= ord(c) < 0xA0 or c == "\u202e"]


def test_markup_of_the_log_is_text(attacked: Report) -> None:
    page = render(attacked, "html", noise=True)
    assert "<img" not in page and page.count("<script") == 1
    assert "&lt;script&gt;" in page
    assert "<script" not in render(attacked, "junit")


def test_colours_of_a_terminal_are_ours_only(attacked: Report) -> None:
    out = io.StringIO()
    to_terminal(attacked, Console(file=out, width=80, force_terminal=True, color_system="standard"), noise=True)
    assert "\x1b]" not in out.getvalue() and "\x1b[2J" not in out.getvalue()
