"""What a log, a file name or an argument says is never more than text on any way out, and secrets stay inside."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

from analyzer.report import FORMATS
from tests.security.run_cli import run

API_KEY, HF, PASSWORD, TOKEN = "hunter2secretvalue", "hf_QwErTyUiOpAsDfGhJkLz", "pa55w0rdInUrl", "tok3nOfTheAdmin99"
SECRETS = (API_KEY, HF, PASSWORD, TOKEN)
EVIL = "\x1b]8;;http://evil.example\x07\x1b[2J\u202e\u2066<img src=x onerror=alert(1)>[c](javascript:alert(1))"
SGLANG = (
    f"$ python -m sglang.launch_server --model-path /m --api-key {API_KEY} --admin-api-key {TOKEN}\n"
    f"[2026-11-30 02:58:11] server_args=ServerArgs(model_path='/m/{EVIL}', api_key='{API_KEY}', "
    f"admin_api_key='{TOKEN}', dist_init_addr='http://u:{PASSWORD}@h:1', mem_fraction_static=0.8, tp_size=1)\n"
    "[2026-11-30 02:58:35] Load weight begin. avail mem=79.13 GB\n"
    f"[2026-11-30 02:58:37] Load weight end. elapsed=2.25 s, type={EVIL.replace(',', '')}, avail mem=62.98 GB, "
    "mem usage=16.14 GB.\n"
    "[2026-11-30 02:58:38] KV Cache is allocated. dtype: torch.bfloat16, #tokens: 392228, K size: 2.99 GB, "
    "V size: 2.99 GB\n"
    f"[2026-11-30 02:58:39] Scheduler hit an exception: Traceback (most recent call last):\n"
    f'  File "/x/{EVIL}.py", line 1, in f\n'
    f"    login(token='{HF}', headers={{'Authorization': 'Bearer {TOKEN}'}})\n"
    f"RuntimeError: {EVIL} HF_TOKEN={HF} https://u:{PASSWORD}@hub.example/x --api-key {API_KEY}\n\n"
)
VLLM = (
    "(APIServer pid=7) INFO 11-30 02:58:11 [api_server.py:1] vLLM API server version 0.11.0\n"
    f"(APIServer pid=7) INFO 11-30 02:58:11 [utils.py:233] non-default args: {{'model': '/m/{EVIL}', "
    f"'api_key': ['{API_KEY}'], 'hf_token': '{HF}', 'served_model_name': ['{EVIL}']}}\n"
    "(EngineCore_DP0 pid=9) INFO 11-30 02:58:37 [kv_cache_utils.py:1087] GPU KV cache size: 14,161 tokens\n"
    f"(EngineCore_DP0 pid=9) ERROR 11-30 02:58:39 [core.py:1] ValueError: {EVIL} api_key={API_KEY} HF_TOKEN={HF}\n"
)
_BAD = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


@pytest.fixture(params=["sglang", "vllm"])
def log(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    folder = tmp_path / "a\x1b[31m\u202e<b>[x](javascript:1)"
    folder.mkdir()
    path = folder / f"{request.param}.log"
    path.write_text(SGLANG if request.param == "sglang" else VLLM, encoding="utf-8")
    return path


def assert_clean(page: str) -> None:
    assert page.strip()
    assert not [secret for secret in SECRETS if secret in page]
    assert _BAD.search(page) is None, _BAD.search(page)


@pytest.mark.parametrize("format", FORMATS)
def test_each_format(log: Path, format: str, tmp_path: Path) -> None:
    done = run("explain", log, "--format", format, "--noise")
    page = done.stdout.decode()
    assert_clean(page)
    assert_clean("x" + done.stderr.decode())
    if format == "html":
        _check_html(page)
    elif format == "junit":
        tags = {node.tag for node in ElementTree.fromstring(page).iter()}
        assert tags <= {
            "testsuites",
            "testsuite",
            "testcase",
            "failure",
            "error",
            "skipped",
            "system-out",
            "properties",
            "property",
        }
    elif format in ("json", "sarif"):
        json.loads(page)
    elif format == "markdown":
        _check_markdown(page)


def _check_html(page: str) -> None:
    class Reader(HTMLParser):
        def __init__(self) -> None:
            super().__init__()
            self.bad: list[object] = []

        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            for name, value in attrs:
                if name.startswith("on") or (value or "").strip().lower().startswith("javascript:"):
                    self.bad.append((tag, name, value))
            if tag in ("img", "iframe", "object", "embed", "base", "form"):
                self.bad.append(tag)

    reader = Reader()
    reader.feed(page)
    assert not reader.bad


def _check_markdown(page: str) -> None:
    """Outside code, nothing of the log's is an element or a link of its own making."""
    text = re.sub(r"(?s)(`{3,}).*?\1", "", page)
    text = re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", text)
    assert re.search(r"(?<!\\)<img", text) is None, text
    assert re.search(r"(?<!\\)\]\(javascript:", text) is None, text


@pytest.mark.parametrize("args", [["--format", "text"], ["--format", "jsonl"], ["--unrecognised"]])
def test_events(log: Path, args: list[str]) -> None:
    done = run("events", log, *args)
    page = done.stdout.decode()
    assert_clean(page or "x")
    if "jsonl" in args:
        for line in page.splitlines():
            json.loads(line)


def test_why_not_follow_and_compare(log: Path) -> None:
    for args in (["explain", log, "--why-not", "KV012"], ["compare", log, log], ["prove-spec", log]):
        done = run(*args)
        assert_clean("x" + done.stdout.decode() + done.stderr.decode())
    for view in ([], ["--plain"]):
        done = run("follow", "-", *view, stdin=log.read_bytes())
        assert_clean("x" + done.stdout.decode() + done.stderr.decode())


@pytest.mark.parametrize("extension", [".csv", ".jsonl", ".html", ""])
def test_audit(log: Path, tmp_path: Path, extension: str) -> None:
    out = tmp_path / f"out{extension}"
    done = run("audit", log, "-o", out, "-j", "1")
    assert done.returncode == 0, done.stderr
    assert_clean("x" + done.stdout.decode() + done.stderr.decode())
    files = [path for path in ([out] if out.is_file() else out.rglob("*")) if path.is_file()]
    files += [path for path in tmp_path.rglob("*.html") if path != out]
    assert files
    for path in files:
        if path.suffix == ".parquet":
            import polars

            assert_clean("x" + polars.read_parquet(path).write_json().encode().decode("unicode_escape", "ignore"))
        else:
            assert_clean("x" + path.read_text(encoding="utf-8"))
            if path.suffix == ".html":
                _check_html(path.read_text(encoding="utf-8"))


def test_a_complaint_about_a_hostile_name_is_clean() -> None:
    done = run("explain", f"/no/{EVIL}/{HF}.log".replace("\x07", ""))
    assert done.returncode == 3
    assert_clean(done.stderr.decode())


def test_usage_errors_are_clean() -> None:
    for args in ([f"--x{EVIL}"], [f"x{EVIL}"], ["explain", "--format", EVIL], ["explain", f"--{EVIL}"]):
        done = run(*args)
        assert done.returncode in (2, 3)
        assert _BAD.search(done.stderr.decode()) is None, args
