"""A real headless Chromium for the tests of the HTML page, driven by its command line only."""

from __future__ import annotations

import re
import shutil
import subprocess
from html import unescape
from pathlib import Path

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--hide-scrollbars", "--enable-logging=stderr", "--v=0",
    "--virtual-time-budget=2000",
)  # fmt: skip


def chromium(page: Path, *flags: str, profile: Path) -> tuple[str, list[str]]:
    """What Chromium prints for ``page`` with ``flags``, and its console messages. Skips where there is no Chromium."""
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine")
    command = [CHROMIUM, *FLAGS, f"--user-data-dir={profile}", *flags, page.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    return done.stdout, re.findall(r":CONSOLE[:(]\d+\)?\] (.*)", done.stderr)


def with_probe(html: str, probe: str) -> str:
    """``html`` without its policy and with ``probe``, a script whose value is written into the page as JSON."""
    html = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", html)
    code = f"addEventListener('load', () => {{ const r = (() => {{ {probe} }})(); \
document.body.insertAdjacentHTML('beforeend', '<pre id=probe></pre>'); \
document.getElementById('probe').textContent = JSON.stringify(r); }});"
    return html.replace("</body>", f"<script>{code}</script></body>")


def probed(dom: str) -> str:
    """The JSON that a probe left in ``dom``."""
    found = re.search(r'<pre id="probe">(.*?)</pre>', dom, re.DOTALL)
    assert found, "the probe did not run"
    return unescape(found[1])
