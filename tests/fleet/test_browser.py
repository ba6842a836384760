"""The fleet page in a real browser: silent console, sorting, filtering, and links that lead to the runs' pages."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from analyzer.fleet.command import run_audit
from analyzer.resources import data_dir
from tests.report.browser import chromium, probed, with_probe

pytestmark = pytest.mark.browser


def test_the_fleet_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "fleet.html"
    run_audit(
        [str(data_dir("samples") / "sglang"), str(data_dir("samples") / "vllm")], [page], engine="local", workers=2,
        ray_address=None, events=False, rule_dirs=(), fail_on="never",
    )  # fmt: skip
    dom, console = chromium(page, "--dump-dom", profile=tmp_path / "profile")
    assert console == []
    assert "17 of 17 runs" in dom
    probe = """
      const table = document.querySelector('table.runs'), seen = {};
      const shown = () => [...table.tBodies[0].rows].filter((r) => !r.hidden);
      const pools = () => shown().map((r) => Number(r.cells[5].dataset.value)).filter((n) => !Number.isNaN(n));
      seen.links = [...table.querySelectorAll('a')].map((a) => a.getAttribute('href'));
      seen.high = Math.max(...shown().map((r) => r.getBoundingClientRect().height));
      seen.flags = table.querySelector('.flags').textContent;
      table.tHead.rows[0].cells[5].querySelector('button').click(); seen.up = pools();
      table.tHead.rows[0].cells[5].querySelector('button').click(); seen.down = pools();
      seen.sort = table.tHead.rows[0].cells[5].getAttribute('aria-sort');
      const engine = document.querySelector('select[aria-label=engine]');
      engine.value = 'vllm'; engine.dispatchEvent(new Event('change')); seen.vllm = shown().length;
      engine.value = ''; engine.dispatchEvent(new Event('change'));
      const bar = document.querySelector('[data-cause=pool-cell-inflation]'); bar.click();
      seen.cause = shown().map((r) => r.cells[4].textContent);
      seen.count = document.querySelector('#count').textContent;
      return seen;
    """
    probed_page = tmp_path / "probe.html"
    probed_page.write_text(with_probe(page.read_text(), probe))
    found = json.loads(probed(chromium(probed_page, "--dump-dom", profile=tmp_path / "profile")[0]))
    assert found["up"] == sorted(found["up"]) and len(found["up"]) > 10
    assert found["down"] == found["up"][::-1]
    assert found["sort"] == "descending"
    assert found["high"] < 100  # the many launch arguments are folded
    assert " flags" in found["flags"] and "mem_fraction_static=" in found["flags"]
    assert found["vllm"] == 7
    assert found["cause"] and set(found["cause"]) == {"pool-cell-inflation"}
    assert found["count"] == f"{len(found['cause'])} of 17 runs"
    assert len(found["links"]) == 17
    dom, console = chromium(tmp_path / found["links"][0], "--dump-dom", profile=tmp_path / "profile")
    assert console == [] and "<h2" in dom
