"""The lines of one template in a block with their fields, and the lines of several templates together."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from analyzer.bulk.cursor import Ints, Mask
from analyzer.bulk.template import Template

if TYPE_CHECKING:
    import polars as pl

Values = npt.NDArray[Any]
"""Figures or truths, one a line."""


@dataclass(slots=True)
class Words:
    """Texts of which most are alike: each one once, and which of them stands in each line."""

    texts: list[str]
    codes: Ints

    def some(self, which: Mask | slice) -> Words:
        """The lines that ``which`` names."""
        return Words(self.texts, self.codes[which])

    def column(self) -> pl.Series:
        """The text of each line."""
        import polars as pl

        return pl.Series(self.texts, dtype=pl.String).gather(self.codes)


@dataclass(slots=True)
class Claim:
    """The lines of one template: their ``rows`` in the block in order, ranks, and fields in base units."""

    template: Template
    rows: Ints
    ranks: Words
    figures: dict[str, Values] = field(default_factory=dict)
    texts: dict[str, pl.Series] = field(default_factory=dict)
    stamps: Words | None = None
    """The stamps as they are printed, if they are wanted."""
    answers: Words | None = None
    """Of access lines, everything from the method on; not where every field is wanted."""

    def __len__(self) -> int:
        return len(self.rows)

    def where(self, mask: Mask) -> Claim:
        """The lines for which ``mask`` is true."""
        return self if mask.all() else self._some(mask)

    def between(self, begin: int, end: int) -> Claim:
        """The lines in the rows from ``begin`` to before ``end``."""
        first, last = (int(at) for at in np.searchsorted(self.rows, (begin, end)))
        return self if last - first == len(self) else self._some(slice(first, last))

    def _some(self, which: Mask | slice) -> Claim:
        import polars as pl

        return Claim(
            self.template, self.rows[which], self.ranks.some(which),
            {name: values[which] for name, values in self.figures.items()},
            {
                name: values[which] if isinstance(which, slice) else values.filter(pl.Series(which))
                for name, values in self.texts.items()
            },
            self.stamps and self.stamps.some(which),
            self.answers and self.answers.some(which),
        )  # fmt: skip

    def without(self, rows: Collection[int]) -> Claim:
        """The lines that are not in ``rows``."""
        return self.where(~np.isin(self.rows, np.fromiter(rows, np.int64))) if rows else self

    def rank(self, index: int) -> str:
        """The rank of a line."""
        return self.ranks.texts[int(self.ranks.codes[index])]

    def frame(self) -> pl.DataFrame:
        """``row``, ``rank`` and the fields as columns."""
        import polars as pl

        columns = {"row": pl.Series(self.rows), "rank": self.ranks.column()}
        if self.stamps is not None:
            columns["stamp"] = self.stamps.column()
        return pl.DataFrame({**columns, **self.figures, **self.texts})


class Merged:
    """The lines of several claims in the order of the log. A figure that a line lacks is 0 there."""

    def __init__(self, claims: Sequence[Claim]) -> None:
        self._claims = claims
        rows = np.concatenate([claim.rows for claim in claims])
        self._order = None if len(claims) == 1 else np.argsort(rows, kind="stable")
        self.rows: Ints = self._sorted(rows)
        self.names = dict.fromkeys(name for claim in claims for name in claim.figures)

    def _sorted(self, values: Values) -> Values:
        return values if self._order is None else values[self._order]

    def ranks(self) -> Iterator[tuple[str, Ints]]:
        """The ranks in the order in which they appear, and the places of their lines."""
        known: dict[str, int] = {}
        parts = []
        for claim in self._claims:
            numbers = [known.setdefault(rank, len(known)) for rank in claim.ranks.texts]
            parts.append(np.asarray(numbers, np.int64)[claim.ranks.codes])
        codes = self._sorted(np.concatenate(parts))
        if len(known) == 1:
            yield next(iter(known)), np.arange(len(codes))
            return
        together = np.argsort(codes, kind="stable")
        ends = np.cumsum(np.bincount(codes, minlength=len(known)))
        places = {rank: together[ends[code - 1] if code else 0 : ends[code]] for rank, code in known.items()}
        yield from sorted(((rank, at) for rank, at in places.items() if len(at)), key=lambda item: item[1][0])

    def flags(self, flags: Iterable[bool]) -> Mask:
        """One of ``flags`` for each claim, for every line."""
        parts = [np.full(len(claim), flag) for flag, claim in zip(flags, self._claims, strict=True)]
        return self._sorted(np.concatenate(parts))

    def has(self, name: str) -> Mask:
        """Which lines have a figure."""
        return self.flags(name in claim.figures for claim in self._claims)

    def figures(self, name: str) -> Values:
        """A figure of every line."""
        parts = [claim.figures.get(name) for claim in self._claims]
        kind = np.result_type(*(part.dtype for part in parts if part is not None)) if name in self.names else np.int64
        zeros = (np.zeros(len(claim), kind) for claim in self._claims)
        return self._sorted(
            np.concatenate([zero if part is None else part for part, zero in zip(parts, zeros, strict=True)])
        )
