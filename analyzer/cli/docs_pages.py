"""The reference as HTML pages: rules, message shapes, facts, cause codes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from analyzer.errors import UserError
from analyzer.report.markup import Html, asset, el, join, page
from analyzer.whole import write_whole

if TYPE_CHECKING:
    from analyzer.diagnosis.describe import Description

PAGES = (
    ("rules.html", "Rules"),
    ("lines.html", "Message shapes"),
    ("facts.html", "Facts"),
    ("causes.html", "Cause codes"),
)


def write_docs(folder: Path) -> Iterator[Path]:
    """Writes every page into ``folder`` and yields its path. Raises ``UserError`` if that cannot be done."""
    makers = {"rules.html": _rules, "lines.html": _lines, "facts.html": _facts, "causes.html": _causes}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, title in (("index.html", "kvautopsy: reference"), *PAGES):
            path = folder / name
            body = makers[name]() if name in makers else _index()
            anchors = [el("a", text, href=href) for href, text in (("index.html", "Reference"), *PAGES)]
            links = el("nav", *itertools.chain.from_iterable((anchor, "  ") for anchor in anchors))
            whole = join(el("header", el("h1", title), links, class_="top"), el("main", body))
            write_whole(path, page(title, whole, styles=asset("page.css")).encode())
            yield path
    except OSError as error:
        raise UserError(f"cannot write to {folder}: {error.strerror or error}") from None


def _table(heads: tuple[str, ...], rows: list[Html]) -> Html:
    head = el("tr", *[el("th", text, scope="col") for text in heads])
    return el("table", el("thead", head), el("tbody", *rows))


def _index() -> Html:
    from analyzer.diagnosis import RuleSet
    from analyzer.parsing import default_catalog
    from analyzer.run.vocabulary import VOCABULARY

    counts = {
        "rules.html": f"{len(RuleSet.load().rules)} rules: what is diagnosed, when, on which versions, and the fix",
        "lines.html": f"{len(default_catalog().shapes)} message shapes that the grammars read, with their versions",
        "facts.html": f"{len(VOCABULARY)} facts: the one vocabulary of both engines",
        "causes.html": "the cause codes of findings",
    }
    return el("ul", *[el("li", el("a", title, href=name), ": ", counts[name]) for name, title in PAGES])


def _rules() -> Html:
    from analyzer.diagnosis import RuleSet
    from analyzer.diagnosis.describe import describe

    described = [describe(rule) for rule in RuleSet.load().rules]
    parts: list[Html] = []
    for topic, group in itertools.groupby(described, key=lambda about: about.topic):
        parts.append(el("h2", topic[:1].upper() + topic[1:]))
        parts += [_rule(about) for about in group]
    return join(*parts)


def _rule(about: Description) -> Html:
    cells = [el("tr", el("th", name, scope="row"), el("td", text)) for name, text in about.rows()]
    title = el("h4", el("a", about.id, href=f"#{about.id}"), f"  {about.title}")
    return el("section", title, el("table", el("tbody", *cells)), class_="finding", id=about.id)


def _lines() -> Html:
    from analyzer.parsing import default_catalog

    parts: list[Html] = []
    shapes = sorted(default_catalog().shapes, key=lambda s: (s.engine, s.place.rpartition(":")[0], s.kind))
    for place, group in itertools.groupby(shapes, key=lambda s: s.place.rpartition(":")[0]):
        rows = []
        for shape in group:
            notes = [f"{_versions(first, last)}: {text}" for first, last, text in shape.notes]
            fields = ", ".join(f"{name} ({unit})" if unit != "any" else name for name, unit in shape.units.items())
            versions = [el("p", note) for note in notes] or [el("p", shape.meaning)]
            rows.append(el("tr", el("td", shape.kind, class_="mono"), el("td", *versions), el("td", fields)))
        parts += [el("h2", f"grammars/{place}"), _table(("kind", "versions and meaning", "fields"), rows)]
    return join(*parts)


def _versions(first: str, last: str) -> str:
    """``0.5.13 to 0.5.23``; ``0`` stands for the first version of all."""
    first = "" if first == "0" else first
    if first and last:
        return first if first == last else f"{first} to {last}"
    return f"from {first} on" if first else f"up to {last}" if last else "all versions"


def _facts() -> Html:
    from analyzer.run.vocabulary import OPEN_PREFIXES, VOCABULARY

    rows = [
        el("tr", el("td", name, class_="mono"), el("td", spec.unit), el("td", spec.reduce), el("td", spec.meaning))
        for name, spec in sorted({**VOCABULARY, **{f"{p}*": s for p, s in OPEN_PREFIXES.items()}}.items())
    ]
    return _table(("fact", "unit", "of ranks", "meaning"), rows)


def _causes() -> Html:
    from analyzer.diagnosis.causes import CAUSES

    return _table(
        ("code", "meaning"),
        [el("tr", el("td", code, class_="mono"), el("td", text)) for code, text in CAUSES.items()],
    )
