"""Which lines of a block are of a known template, which say nothing to anybody, and which must be read one by one."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from analyzer.bulk.quiet import is_marked
from analyzer.bulk.template import Template, learn
from analyzer.framing.plain import read_plain
from analyzer.parsing import Catalog

if TYPE_CHECKING:
    import polars as pl

MOST_TEMPLATES = 24
"""Polars keeps about as many expressions compiled."""
_WORTH, _MOST_RARE = 64, 1024
"""Lines of a block that a template must find to stay known; how many that did not are remembered."""
_SAMPLE = 384
"""Lines without a template that are looked at in one block, spread evenly."""
_COMMON = 2
"""How often a form must be in the sample to be worth a template."""


@dataclass(slots=True)
class Claim:
    """The lines of one template in a block: ``frame`` has ``row``, ``rank`` and the columns in base units."""

    template: Template
    frame: pl.DataFrame


@dataclass(slots=True)
class Claims:
    """What a block of lines holds. ``rest`` are the rows to be read one by one, in order."""

    found: list[Claim] = field(default_factory=list)
    rest: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Templates:
    """The templates known so far, those of which most lines were found last time first."""

    catalog: Catalog
    every: bool = False
    """Whether all fields become columns, not only those that a run looks at."""
    kinds: frozenset[str] = frozenset()
    """The kinds wanted; all if there are none."""
    known: list[Template] = field(default_factory=list)
    _hits: dict[str, int] = field(default_factory=dict)
    _rare: set[str] = field(default_factory=set)
    """Expressions that were known and found next to nothing."""

    def claim(self, lines: Sequence[str], column: pl.Series, engine: str) -> Claims:
        """Sorts the ``lines`` of a block, also given as a ``column``; ``engine`` is that of the run."""
        import polars as pl

        left = pl.DataFrame({"line": column}).with_row_index("row")
        result = Claims()
        for template in sorted(self.known, key=lambda t: -self._hits[t.expression]):
            left = self._take(template, left, result)
        for template in self._learnt(lines, left["row"], engine):
            self.known.append(template)
            left = self._take(template, left, result)
        result.rest = left["row"].to_list()
        self._retire(len(lines))
        return result

    def _retire(self, lines: int) -> None:
        """Forgets templates that found next to nothing: a few lines are read sooner one by one."""
        self.known.sort(key=lambda t: -self._hits[t.expression])
        least = min(_WORTH, lines // 100)
        for template in self.known:
            if self._hits[template.expression] < least and len(self._rare) < _MOST_RARE:
                self._rare.add(template.expression)
        self.known[:] = [t for t in self.known[:MOST_TEMPLATES] if self._hits[t.expression] >= least]

    def _take(self, template: Template, left: pl.DataFrame, result: Claims) -> pl.DataFrame:
        """Moves the rows of ``template`` from ``left`` to ``result``."""
        import polars as pl

        self._hits[template.expression] = 0
        if not left.height:
            return left
        names = ["stamp"] * template.stamped + ["rank"] * template.ranked
        names += [column.name for column in template.columns]
        if names:
            groups = left["line"].str.extract_groups(template.expression)
            mask = groups.struct.field(groups.struct.fields[0]).is_not_null()
        else:
            mask = left["line"].str.contains(template.expression)
        hits = int(mask.sum())
        self._hits[template.expression] = hits
        if not hits:
            return left
        frame = left.select("row").filter(mask)
        if names:
            texts = groups.filter(mask).struct.rename_fields(names).struct.unnest()
            frame = frame.hstack(texts.select(_values(template)))
        if not template.ranked:
            frame = frame.with_columns(pl.lit(template.rank).alias("rank"))
        if frame.null_count().sum_horizontal().item():
            return left  # a figure that no column can hold: the ordinary way reads it
        result.found.append(Claim(template, frame))
        return left.filter(~mask)

    def _learnt(self, lines: Sequence[str], rows: pl.Series, engine: str) -> list[Template]:
        """Templates of the forms that are common among the lines that none was known for, most common first."""
        known = self._rare | {template.expression for template in self.known}
        counts: Counter[str] = Counter()
        found: dict[str, Template] = {}
        size = _SAMPLE if len(rows) > len(lines) // 8 else _SAMPLE // 8
        for row in rows.gather_every(max(1, len(rows) // size)):
            template = self._of(lines[row], engine)
            if template is not None and template.expression not in known:
                found[template.expression] = template
                counts[template.expression] += 1
        return [found[expression] for expression, count in counts.most_common() if count >= _COMMON]

    def _of(self, line: str, engine: str) -> Template | None:
        plain = None if is_marked(line) else read_plain("", 1, line)
        found = self.catalog.find(plain.record.text, engine) if plain is not None else None
        if plain is None or found is None or (self.kinds and found[0].kind not in self.kinds):
            return None
        return learn(plain, line, *found, self.every)


def _values(template: Template) -> list[pl.Expr]:
    """The groups of a template as values."""
    import polars as pl

    result = [pl.col("stamp")] if template.stamped else []
    if template.ranked:
        result.append(pl.col("rank").str.strip_prefix(" "))
    for column in template.columns:
        text = pl.col(column.name)
        if column.kind == "rates":
            result.append(text.str.split(", ").cast(pl.List(pl.Float64)).list.sum())
        elif column.kind == "int":
            result.append(text.cast(pl.Int64, strict=False))
        elif column.kind == "bool":
            result.append((text == "True").alias(column.name))
        elif column.kind == "str":
            result.append(text)
        else:
            value = text.cast(pl.Float64, strict=False)
            result.append(value if column.scale == 1.0 else value * column.scale)
    return result


def runs_of(rows: Sequence[int]) -> Iterable[tuple[int, int]]:
    """Sorted ``rows`` as half-open ranges of consecutive ones."""
    at = 0
    while at < len(rows):
        end = at + 1
        while end < len(rows) and rows[end] == rows[end - 1] + 1:
            end += 1
        yield rows[at], rows[end - 1] + 1
        at = end


def last_below(rows: Sequence[int], bound: int, first: int) -> int | None:
    """The last of the sorted ``rows`` that is below ``bound`` and not below ``first``."""
    at = bisect_left(rows, bound) - 1
    return rows[at] if at >= 0 and rows[at] >= first else None
