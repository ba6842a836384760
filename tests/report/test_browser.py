"""The HTML page in a real browser: no console message, its script admitted, zoom works, hostile text inert."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from analyzer.report.html import to_html
from analyzer.report.model import Report
from tests.report.browser import chromium, probed, with_probe

pytestmark = pytest.mark.browser


def opened(html: str, tmp_path: Path) -> tuple[str, list[str]]:
    page = tmp_path / "report.html"
    page.write_text(html, encoding="utf-8")
    return chromium(page, "--dump-dom", profile=tmp_path / "profile")


def test_the_page_runs_its_script_under_its_own_policy_without_a_message(report: Report, tmp_path: Path) -> None:
    dom, console = opened(to_html(report), tmp_path)
    assert console == []
    assert '<html lang="en" class="scripted">' in dom
    assert 'data-zoom="1.00"' in dom and ">00:16:40<" in dom


def test_hostile_text_runs_nothing_and_breaks_nothing(hostile: Report, tmp_path: Path) -> None:
    dom, console = opened(to_html(hostile), tmp_path)
    assert console == []
    assert len(re.findall(r"<script", dom)) == 1


def test_an_injected_script_would_be_refused_by_the_policy(report: Report, tmp_path: Path) -> None:
    html = to_html(report).replace("</main>", "</main><script>document.title = 'owned'</script>")
    dom, console = opened(html, tmp_path)
    assert "<title>owned" not in dom
    assert any("Content Security Policy" in message for message in console)


def test_zoom_by_button_by_drag_and_back(report: Report, tmp_path: Path) -> None:
    probe = """
      const group = document.querySelector('.series'), seen = [group.dataset.zoom];
      const press = (act) => { group.querySelector(`[data-act=${act}]`).click(); seen.push(group.dataset.zoom); };
      press('in'); press('in'); press('out'); press('all');
      const plot = group.querySelector('.plot'), box = plot.querySelector('svg').getBoundingClientRect();
      const point = (type, part) => plot.dispatchEvent(new PointerEvent(type,
        {clientX: box.left + box.width * part, clientY: box.top + 5, button: 0, bubbles: true}));
      point('pointerdown', 0.25); point('pointermove', 0.5); point('pointerup', 0.75);
      seen.push(group.dataset.zoom);
      const from = group.querySelector('.from').textContent, read = group.querySelector('.read').textContent;
      plot.dispatchEvent(new MouseEvent('dblclick', {bubbles: true}));
      seen.push(group.dataset.zoom);
      return {seen, from, read, boxes: [...group.querySelectorAll('svg')].map((s) => s.getAttribute('viewBox'))};
    """
    dom, _ = opened(with_probe(to_html(report), probe), tmp_path)
    found = json.loads(probed(dom))
    assert found["seen"] == ["1.00", "2.00", "4.00", "2.00", "1.00", "2.00", "1.00"]
    assert found["from"] == "00:19:08"  # a quarter of 595 s after 00:16:40
    assert re.fullmatch(r"45 at 00:2\d:\d\d", found["read"])
    assert set(found["boxes"]) == {"0 0 1000 100"}


def test_proofs_unfold_in_context_and_the_page_fits_a_phone(report: Report, tmp_path: Path) -> None:
    probe = """
      const proof = document.querySelector('details.proof'), shut = proof.offsetHeight;
      proof.querySelector('summary').click();
      return {shut, open: proof.offsetHeight, hit: proof.querySelector('.hit').textContent,
        wide: document.documentElement.scrollWidth - document.documentElement.clientWidth};
    """
    page = tmp_path / "report.html"
    page.write_text(with_probe(to_html(report), probe), encoding="utf-8")
    dom, _ = chromium(page, "--window-size=500,900", "--dump-dom", profile=tmp_path / "profile")
    found = json.loads(probed(dom))
    assert 0 < found["shut"] < found["open"] - 20
    assert found["hit"].startswith("30Load weight end.")
    assert found["wide"] <= 0


def test_a_picture_of_it_is_not_blank(report: Report, tmp_path: Path) -> None:
    page, picture = tmp_path / "report.html", tmp_path / "page.png"
    page.write_text(to_html(report), encoding="utf-8")
    chromium(page, "--window-size=1100,2600", f"--screenshot={picture}", profile=tmp_path / "profile")
    assert picture.stat().st_size > 60_000
