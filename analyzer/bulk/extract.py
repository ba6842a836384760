"""The lines of a template in a block, with their fields."""

from __future__ import annotations

import re
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import numpy as np

from analyzer.bulk.claim import Claim, Values, Words
from analyzer.bulk.cursor import Cursor, Floats, Ints, Mask, Words64
from analyzer.bulk.lines import LONGEST_TAGS, Lines
from analyzer.bulk.quiet import UNFIT
from analyzer.bulk.template import ANSWER_COLUMN, Template
from analyzer.bulk.tokens import Column, Dotted, Figure, Fixed, Span, Tail, Token

if TYPE_CHECKING:
    import polars as pl

_RANKS = re.compile(r"(?: [A-Z][A-Z_]*[0-9]+)+")
_MOST_RANKS = 1024
"""Different rank tags in a block; lines that have others are left to be read one by one."""
_SHORTEST_ANSWER, _LONGEST_ANSWER = 8, 256
"""Others are left to be read one by one."""
_MIX = np.uint64(0x9E3779B97F4A7C15)
"""Odd and without a pattern, so that texts that differ hardly ever become the same number."""
_FEW = 4
"""Texts of which less than one in so many is new are looked at once each."""


def extract(template: Template, lines: Lines, rows: Ints) -> tuple[Claim, Mask]:
    """The lines of ``template`` among ``rows``, and which of them these are."""
    at, text = template.probe
    begins = lines.closings if template.ranked else lines.starts
    cursor = Cursor(lines.windows, begins[rows] + at)
    cursor.form(text)
    has = cursor.good()
    if not has.any():
        return Claim(template, rows[:0], Words([], rows[:0])), has
    claim, good = _Walk(template, lines, rows[has]).claim()
    if not good.all():
        has[np.flatnonzero(has)[~good]] = False
    return claim, has


class _Walk:
    """One walk through the lines in ``rows``."""

    def __init__(self, template: Template, lines: Lines, rows: Ints) -> None:
        self._template = template
        self._lines = lines
        self._rows = rows
        self._starts, self._ends = lines.starts[rows], lines.ends[rows]
        self._cursor = Cursor(lines.windows, self._starts)
        self._claim = Claim(template, rows, Words([template.rank], np.zeros(len(rows), np.int64)))

    def claim(self) -> tuple[Claim, Mask]:
        """The lines that are of the template, and which of all these are."""
        template, cursor = self._template, self._cursor
        cursor.fixed(template.head.text)
        if template.ranked:
            self._ranks()
        for token in template.tokens:
            self._token(token)
        if template.tail.expression:
            good = self._tail(template.tail, cursor.good())
        else:
            cursor.end(self._ends)
            good = cursor.good()
        if template.stamp[1]:
            self._claim.stamps = self._stamps(*template.stamp)
        return self._claim.where(good), good

    def _ranks(self) -> None:
        """Passes the rank tags."""
        begin, end = self._cursor.places, self._lines.closings[self._rows]
        words = self._lines.windows.between(begin, end, LONGEST_TAGS)
        codes = np.full(len(begin), -1)
        texts: list[str] = []
        left = np.arange(len(begin)) if words else np.arange(0)
        for _ in range(_MOST_RANKS):
            if not len(left):
                break
            first = left[0]
            same = np.logical_and.reduce([word[left] == word[first] for word in (*words, end - begin)])
            tags = self._lines[int(self._rows[first])].encode()[begin[first] - self._starts[first] :]
            text = tags[: end[first] - begin[first]].decode(errors="replace")
            if end[first] > begin[first] and _RANKS.fullmatch(text):
                codes[left[same]] = len(texts)
                texts.append(text[1:])
            left = left[~same]
        self._cursor.refuse(codes < 0)
        self._cursor.jump(end)
        self._claim.ranks = Words(texts or [""], np.maximum(codes, 0))

    def _stamps(self, begin: int, width: int) -> Words:
        """The stamps; most lines have that of the line before."""
        places = self._starts + begin
        words = self._lines.windows.over(places, width)
        new = np.append(True, np.logical_or.reduce([word[1:] != word[:-1] for word in words]))
        codes: Ints = np.cumsum(new) - 1
        stamps = self._lines.windows.texts(places[new], width).tolist()
        return Words([stamp.decode(errors="replace") for stamp in stamps], codes)

    @cached_property
    def _texts(self) -> pl.Series:
        """The lines as texts."""
        return self._lines.texts(self._rows)

    def _token(self, token: Token) -> None:
        """Passes a token and keeps its values."""
        import polars as pl

        cursor = self._cursor
        if isinstance(token, Fixed):
            cursor.fixed(token.text)
            if token.column is not None:
                text = pl.repeat(token.text.decode(), len(self._rows), dtype=pl.String, eager=True)
                self._claim.texts[token.column.name] = text
        elif isinstance(token, Figure):
            self._keep(token.column, cursor.decimal() if token.decimal else cursor.whole())
        elif isinstance(token, Dotted):
            cursor.dotted()
        elif isinstance(token, Span):
            self._span(token)
        else:
            self._keep(token.column, cursor.truth())

    def _span(self, span: Span) -> None:
        begin = self._cursor.places
        total: Floats | None = None
        for token in span.tokens:
            if isinstance(token, Fixed):
                self._cursor.fixed(token.text)
                continue
            if isinstance(token, Dotted):
                self._cursor.dotted()
                continue
            values: Floats = self._cursor.decimal() if token.decimal else self._cursor.whole().astype(np.float64)
            if span.column.kind == "rates":  # one after the other, as they would be added line by line
                total = values if total is None else np.add(total, values)
        if total is not None:
            self._keep(span.column, total)
        else:
            self._claim.texts[span.column.name] = self._between(begin, self._cursor.places)

    def _keep(self, column: Column | None, values: Values) -> None:
        if column is None:
            return
        if column.kind == "float":
            values = values.astype(np.float64) * column.scale
        self._claim.figures[column.name] = values

    def _between(self, begin: Ints, end: Ints) -> pl.Series:
        """The texts between two places of each line. What is before them is ASCII in all lines that count."""
        import polars as pl

        at = pl.Series(np.clip(begin - self._starts, 0, None))
        return self._texts.str.slice(at, pl.Series(np.clip(end - begin, 0, None)))

    def _answers(self, tail: Tail, good: Mask) -> Mask:
        """The ends of access lines, of which a log has few; which of ``good`` still are."""
        rows = np.flatnonzero(good)
        begin, end = self._cursor.places[rows], self._ends[rows]
        short = (end - begin >= _SHORTEST_ANSWER) & (end - begin <= _LONGEST_ANSWER)
        if not short.all():
            rows, begin, end = rows[short], begin[short], end[short]
        first, codes, same = _grouped(self._lines.windows.whole(begin, end))
        lines = self._rows[rows[first]].tolist()
        texts = [self._lines.rest_of(row, at) for row, at in zip(lines, begin[first].tolist(), strict=True)]
        fits = np.asarray([re.fullmatch(tail.expression, text) is not None for text in texts], np.bool_)
        still = np.zeros(len(good), np.bool_)
        still[rows] = same & fits[codes]
        every = np.zeros(len(good), np.int64)
        every[rows] = codes
        self._claim.answers = Words(texts, every)
        return still

    def _tail(self, tail: Tail, good: Mask) -> Mask:
        """Matches the ends of the lines; which of ``good`` still are."""
        import polars as pl

        if tail.columns == (ANSWER_COLUMN,):
            return self._answers(tail, good)
        texts = self._between(self._cursor.places - tail.back, self._ends).alias("tail")
        if tail.reach is not None:
            seen = texts.str.head(tail.reach) if tail.reach else texts
            unfit = texts.str.contains(UNFIT)
            free: Mask = (seen.str.contains(tail.expression) & ~unfit).to_numpy()
            return good & free
        words = texts.unique(maintain_order=True)
        codes: Ints | None = None
        if len(words) * _FEW < len(texts):
            table = words.to_frame().with_row_index("code")
            codes = texts.to_frame().join(table, on="tail", how="left", maintain_order="left")["code"].to_numpy()
            codes = codes.astype(np.int64)
        few = texts if codes is None else words
        fits: Mask = few.str.contains(tail.expression).to_numpy()
        if tail.columns:
            names = [column.name for column in tail.columns]
            groups = few.str.extract_groups(tail.expression).struct.rename_fields(names).struct.unnest()
            for column in tail.columns:
                values = _cast(groups[column.name], column)
                fits &= values.is_not_null().to_numpy()
                values = values if codes is None else values.gather(codes)
                if values.dtype == pl.String:
                    self._claim.texts[column.name] = values
                else:
                    nothing = False if values.dtype == pl.Boolean else 0
                    self._claim.figures[column.name] = values.fill_null(nothing).to_numpy()
        return good & (fits if codes is None else fits[codes])


def _grouped(words: list[Words64]) -> tuple[Ints, Ints, Mask]:
    """Texts that some words tell apart: the first of each, which one each line has, and which lines truly have it."""
    mixed = words[0] * _MIX
    for word in words[1:]:
        mixed = (mixed ^ word) * _MIX
        mixed ^= mixed >> 29
    _, first, codes = np.unique(mixed, return_index=True, return_inverse=True)
    return first, codes, np.logical_and.reduce([word == word[first][codes] for word in words])


def _cast(texts: pl.Series, column: Column) -> pl.Series:
    """Texts of a column as values."""
    import polars as pl

    if column.kind == "rates":
        return texts.str.split(", ").cast(pl.List(pl.Float64)).list.sum()
    if column.kind == "int":
        return texts.cast(pl.Int64, strict=False)
    if column.kind == "bool":
        return texts == "True"
    if column.kind in ("str", "figures"):
        return texts
    values = texts.cast(pl.Float64, strict=False)
    return values * column.scale


@lru_cache(maxsize=256)
def is_rust(expression: str) -> bool:
    """Whether polars takes ``expression``."""
    import polars as pl

    try:
        pl.Series([""]).str.contains(expression)
    except pl.exceptions.PolarsError:
        return False
    return True
