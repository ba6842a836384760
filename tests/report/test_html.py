"""The HTML page: one file, no way out of it, nothing from a log becomes markup."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from analyzer.report.html import to_html
from analyzer.report.markup import Html, el, join, page
from analyzer.report.model import Report

VOID = {"meta", "link", "br", "hr", "col"}


class Tree(HTMLParser):
    """Collects elements and texts, and demands that every element is closed in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open.pop() == tag, f"</{tag}> closes nothing"

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] not in ("style", "script"):
            self.text.append(data)


def parsed(text: str) -> Tree:
    tree = Tree()
    tree.feed(text)
    tree.close()
    assert tree.open == []
    return tree


def test_the_page_is_well_formed_and_tells_everything(report: Report) -> None:
    tree = parsed(to_html(report))
    text = " ".join(tree.text)
    for said in (
        "The pool holds 3,922,281 tokens",
        "203,707",
        "KV010",
        "give --model-dir",
        "mem_fraction_static",
        "l. 36",
    ):
        assert said in text
    assert sum(tag == "details" for tag, _ in tree.seen) >= 6


def test_hostile_text_stays_text(report: Report, hostile: Report) -> None:
    clean_page, page_text = parsed(to_html(report)), to_html(hostile)
    tree = parsed(page_text)
    assert sum(tag == "script" for tag, _ in tree.seen) == 1
    assert {tag for tag, _ in tree.seen} == {tag for tag, _ in clean_page.seen}
    assert not any(key.startswith("on") for _, attributes in tree.seen for key in attributes)
    assert "<script>alert(1)</script>" in "".join(tree.text)


def test_only_web_addresses_become_links(report: Report) -> None:
    report.runs[0].findings[0].see = ["javascript:alert(1)", 'https://example.org/a?b=1&c="2', "data:text/html,x"]
    links = [attributes["href"] for tag, attributes in parsed(to_html(report)).seen if tag == "a"]
    assert links == ["#run-1", "#run-2", 'https://example.org/a?b=1&c="2']


def test_nothing_is_loaded_from_elsewhere(report: Report) -> None:
    tree = parsed(to_html(report))
    for tag, attributes in tree.seen:
        assert "src" not in attributes
        assert tag != "link" or attributes["href"] == "data:,"
    policy = next(a["content"] for t, a in tree.seen if t == "meta" and a.get("http-equiv"))
    assert policy is not None and policy.startswith("default-src 'none'") and "unsafe-inline" not in policy
    assert not re.search(r"url\(|@import", to_html(report))


def test_no_element_carries_an_inline_style_that_the_policy_would_drop(report: Report) -> None:
    assert not any("style" in attributes for _, attributes in parsed(to_html(report)).seen)


def test_an_empty_report_is_a_page_too() -> None:
    assert "Nothing in the input was recognised" in to_html(Report())


def test_text_is_escaped_unless_it_was_made_as_markup() -> None:
    assert el("p", "a < b & c", class_='x"y') == '<p class="x&quot;y">a &lt; b &amp; c</p>'
    assert join("<", Html("<br>"), None) == "&lt;<br>"
    assert el("input", disabled=True, value=None, hidden=False) == "<input disabled></input>"
    with pytest.raises(ValueError, match="attribute"):
        el("p", **{"x onload=alert": "1"})


def test_style_and_script_are_admitted_by_their_digest() -> None:
    assert page("t", Html("<p></p>"), styles="p{}") != page("t", Html("<p></p>"), styles="p{ }")
    assert "script-src &#x27;none&#x27;" in page("t", Html(""), styles="")


def test_no_line_ends_inside_an_engine_s_flag(report: Report) -> None:
    report.runs[0].findings[0].fix = "Set --mem-fraction-static 0.9, not a--b or --<i>; --" + "x" * 60 + " is too long."
    flags = re.findall('<span class="flag">([^<]*)</span>', to_html(report))
    assert "--mem-fraction-static" in flags
    assert not {flag for flag in flags if not re.fullmatch(r"--[a-z][\w-]{0,39}", flag)}
    assert "not a--b or --&lt;i&gt;; --xxx" in to_html(report)
