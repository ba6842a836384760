"""HTML and XML made of nested calls, in which text is escaped unless it was made here.

``el("p", "a < b")`` is ``<p>a &lt; b</p>``: a plain string can never become markup, so a log line cannot either.
"""

from __future__ import annotations

import base64
import hashlib
import re
from html import escape
from pathlib import Path

_VOID = frozenset(("br", "hr", "link", "meta", "rect", "line", "path", "circle", "col"))
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9-]*")


class Html(str):
    """Text that is markup already. Only this module and its callers' own constants make one."""

    __slots__ = ()


Child = str | Html | None


def el(name: str, /, *children: Child, **attributes: str | float | bool | None) -> Html:
    """An element. Attribute names: ``class_`` is ``class``, ``data_x`` is ``data-x``; None and False leave one out."""
    parts = [f"<{name}"]
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        written = key.rstrip("_").replace("_", "-")
        if not _NAME.fullmatch(written):
            raise ValueError(f"not an attribute name: {key!r}")
        parts.append(f" {written}" if value is True else f' {written}="{escape(_text(value))}"')
    if name in _VOID:
        return Html("".join(parts) + ("/>" if name in ("rect", "line", "path", "circle") else ">"))
    return Html("".join(parts) + ">" + join(*children) + f"</{name}>")


def join(*children: Child) -> Html:
    """``children`` one after the other, plain text escaped."""
    return Html("".join(c if isinstance(c, Html) else escape(c) for c in children if c is not None))


def _text(value: str | float) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def asset(name: str) -> str:
    """The text of a shipped style sheet or script."""
    return (Path(__file__).parent / "assets" / name).read_text(encoding="utf-8")


def page(title: str, body: Html, *, styles: str, script: str = "") -> str:
    """A whole page that needs no other file and may load none: its policy admits this style and this script only."""
    scripts = _hash(script) if script else "'none'"
    policy = (
        f"default-src 'none'; style-src {_hash(styles)}; script-src {scripts}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    head = join(
        el("meta", charset="utf-8"),
        el("meta", name="generator", content="kvautopsy"),
        Html(f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">'),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", name="color-scheme", content="light dark"),
        el("meta", name="referrer", content="no-referrer"),
        el("link", rel="icon", href="data:,"),
        el("title", title),
        Html(f"<style>{styles}</style>"),
    )
    code = Html(f"<script>{script}</script>") if script else Html("")
    document = Html(f'<html lang="en"><head>{head}</head><body>{body}{code}</body></html>')
    return f"<!doctype html>\n{document}\n"


def _hash(text: str) -> str:
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"
