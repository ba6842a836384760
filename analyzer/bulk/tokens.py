"""What the lines of one kind and form are made of, one token after the other."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Column:
    """A field that becomes a column: the type of its terminal, and the factor to base units.

    ``rates`` is a list of rates of which the sum counts, ``figures`` a text of figures and their signs.
    """

    name: str
    kind: str = "str"
    scale: float = 1.0


@dataclass(frozen=True, slots=True)
class Fixed:
    """The same text in every line; ``analyzer.bulk.cursor.DIGIT`` in it is any digit."""

    text: bytes
    column: Column | None = None


@dataclass(frozen=True, slots=True)
class Figure:
    """A whole or a decimal figure."""

    decimal: bool
    column: Column | None = None


@dataclass(frozen=True, slots=True)
class Dotted:
    """Digits and points, such as an address."""


@dataclass(frozen=True, slots=True)
class Truth:
    """``True`` or ``False``."""

    column: Column | None = None


@dataclass(frozen=True, slots=True)
class Span:
    """Tokens that are one value together, a text or a list of rates."""

    tokens: tuple[Fixed | Figure | Dotted, ...]
    column: Column


Token = Fixed | Figure | Dotted | Truth | Span


@dataclass(frozen=True, slots=True)
class Tail:
    """The end of a line as an expression with a group for each of ``columns``; without a text, the line ends here."""

    expression: str = ""
    columns: tuple[Column, ...] = ()
    back: int = 0
    """So many characters before the end of the tokens belong to what ``expression`` fits."""
    reach: int | None = None
    """For free text, which differs in more than figures: so many characters of it ``expression`` sees, 0 for all."""


NOTHING = Fixed(b"")
END = Tail()
