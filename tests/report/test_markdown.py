"""Markdown: text stays text, code spans hold any backticks, and the page has every part."""

from __future__ import annotations

import re

import pytest
from markdown_it import MarkdownIt

from analyzer.report.markdown import block, code, plain, to_markdown
from analyzer.report.model import Report
from tests.report.conftest import HOSTILE, poison


def rendered(text: str) -> str:
    return MarkdownIt("commonmark").enable("table").enable("strikethrough").render(text)


def test_the_page_has_every_part(report: Report) -> None:
    page = to_markdown(report)
    for said in ("> **The pool holds", "### Where 139.13 GiB", "**KV010**", "**Fix:**", "### Not decided", "arguments"):
        assert said in page
    assert page.endswith("\n") and "\n\n\n" not in page


@pytest.mark.parametrize(
    "text",
    [
        "# title",
        "1. one",
        "- item",
        "+ item",
        "---",
        "a_b_c *d* **e**",
        "`x`",
        "<b>&amp;</b>",
        "[a](b)",
        "~~x~~",
        HOSTILE,
    ],
)
def test_plain_text_is_shown_letter_by_letter(text: str) -> None:
    html = rendered(plain(text))
    assert re.fullmatch(r"<p>[^<]*</p>\n", html), html


def test_trackers_make_no_mention_and_no_reference_of_it() -> None:
    shown = plain("@user #123 https://x.org www.x.org")
    assert "@user" not in shown and "#123" not in shown and "https://" not in shown and "www.x" not in shown


@pytest.mark.parametrize("text", ["a`b", "``", "`", "x ``` y", " padded "])
def test_a_code_span_holds_backticks(text: str) -> None:
    html = rendered(code(text))
    assert html.count("<code>") == 1 and html.startswith("<p><code>") and html.endswith("</code></p>\n")


def test_a_fence_outlasts_its_content() -> None:
    assert rendered(block(["```", "````", "<b>"])).count("<pre>") == 1


def test_hostile_text_adds_no_markup(report: Report) -> None:
    friendly = set(re.findall(r"<(/?[a-z0-9]+)", rendered(to_markdown(report))))
    poison(report)
    assert set(re.findall(r"<(/?[a-z0-9]+)", rendered(to_markdown(report)))) <= friendly | {"hr"}
