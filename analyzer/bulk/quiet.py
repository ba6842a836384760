"""Finds text in which nothing can be recognised and nothing frightens, without reading it line by line."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from analyzer.framing.decode import clean
from analyzer.parsing import Catalog
from analyzer.run.classify import CLIENT_HEAD
from analyzer.run.dull import SCARY_WORDS
from analyzer.run.tracebacks import HEADED, HEADER

if TYPE_CHECKING:
    import polars as pl

_EMBEDDED = r"\[20| pid=|INFO|WARNING |ERROR |DEBUG |x across cluster\]"
"""What ``analyzer.framing.engine.looks_embedded`` looks for."""
_CONTROLS = r"[\x00-\x09\x0b-\x1f]"
SINGLE_SIGNS = ("\\", "^", "&")
_LONG_SIGNS = ("[0m", "[0;0m", "#033[", "\u241b")
"""What decoding may have to clean, as far as it is printable: one character, or more."""
LONG_SIGNS = "|".join(map(re.escape, _LONG_SIGNS))
SIGNS = rf"[\\^&]|{LONG_SIGNS}"
MARKED = f"{_CONTROLS}|{SIGNS}"
"""The same, control characters, and carriage returns."""
_UNCLEAR_END = r"[: ]\n"
"""The end of a line that the next one may belong to."""
_NAMES = r"Exit|Interrupt|Timeout|NotFound|Died|Dead|Closed|Group|NotImpl|NoSuchModule|Empty|OutOfMemory|refleaks"
"""Parts of the names of exceptions, and the end of a line that another may be glued to."""

_SCARY = "|".join(map(re.escape, SCARY_WORDS))
_RANKS = r"(?: [A-Z][A-Z_]*[0-9]+)*"
_DAY = r"[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}"
_MOST_PIDS = 64


def is_marked(line: str) -> bool:
    """Whether decoding cleans ``line``: escape sequences, Markdown's and HTML's escapes."""
    if line.isprintable() and not any(map(line.__contains__, (*SINGLE_SIGNS, *_LONG_SIGNS))):
        return False
    return clean(line) != line


def _unlike(classes: Iterable[str]) -> str:
    """An expression that fits where the text is not one of each of ``classes`` in turn."""
    out = ""
    for chars in reversed(list(classes)):
        out = f"(?:[^{chars}]|[{chars}]{out})" if out else f"[^{chars}]"
    return out


@cache
def _stamp() -> tuple[str, ...]:
    """Classes of the characters of a plain line's beginning, up to the first of its message."""
    number = "0-9"
    day = (r"\[", *[number] * 4, r"\-", number, number, r"\-", number, number, " ")
    return (*day, number, number, ":", number, number, ":", number, number, r"\]", " ", "!-~")


@dataclass(frozen=True, slots=True)
class Quiet:
    """What text must lack to be of no interest: made from the catalog, every shape of which needs one of its keys."""

    keys: list[str]
    """Of the kinds wanted."""
    key: str
    """Fits each of them."""
    piece: str
    """Fits a piece that may hold more than plain SGLang lines of no interest; in Rust's syntax, as all of these."""

    @classmethod
    def of(cls, catalog: Catalog, kinds: Collection[str] = ()) -> Quiet:
        """``kinds``: those wanted, if not all are."""
        keys = "|".join(map(re.escape, catalog.literals))
        piece = rf"{keys}|(?i:{_SCARY})|{MARKED}|{_NAMES}|[^\n]{_EMBEDDED}|\n{_unlike(_stamp())}|{_UNCLEAR_END}"
        wanted = {key for shape in catalog.shapes if shape.kind in kinds for key in shape.keys}
        if not kinds:
            return cls(list(catalog.literals), keys, piece)
        return cls(sorted(wanted), "|".join(map(re.escape, sorted(wanted))), piece)

    def loud_pieces(self, data: bytes, places: Iterable[tuple[int, int]]) -> list[bool]:
        """Which pieces of ``data``, each of whole lines, may hold more than plain SGLang lines of no interest."""
        import polars as pl

        # with the line feed before it, a piece shows that its first line is plain, too
        parts = pl.Series([data[max(0, begin - 1) : end] for begin, end in places], dtype=pl.Binary)
        try:
            loud: list[bool] = parts.cast(pl.String).str.contains(self.piece).to_list()
        except pl.exceptions.PolarsError:  # no UTF-8
            return [True] * len(parts)
        return loud

    def loud(self, messages: pl.Series) -> pl.Series:
        """Which messages may be of interest.

        One expression for everything is slower: it has too many states to be kept.
        """
        return messages.str.contains(self.key) | messages.str.contains(_LOUD)


UNFIT = f"{MARKED}|{_EMBEDDED}|[: ]$|{re.escape(HEADER)}|{CLIENT_HEAD.pattern}|{HEADED.pattern}"
"""Fits a message that is not plain, or of meaning whatever its kind is."""
_LOUD = f"(?i:{_SCARY})|{MARKED}|{_NAMES}|{_EMBEDDED}|[: ]$"


PLAIN = (
    rf"^(?:\[{_DAY}{_RANKS}\] |(?:\([^()]+\) ?)?(?:INFO|DEBUG|WARNING|ERROR)"
    r"(?: [0-9-]{5} [0-9:]{8} \[[^\]\s\[]+:[0-9]+\] |:\s+))[!-~]"
)
"""Fits the beginning of a plain line of any level, up to the first character of its message."""


def messages(lines: pl.Series, pids: Iterable[int]) -> tuple[pl.Series, pl.Series]:
    """Which ``lines`` are plain, and the messages of those; of vLLM's, of the processes ``pids`` alone."""
    known = "|".join(map(str, list(pids)[:_MOST_PIDS]))
    tag = rf"(?:\([A-Za-z][A-Za-z0-9_.+-]*(?: rank=[0-9]+)? pid=(?:{known})\) )?" if known else ""
    vllm = rf"{tag}(?:INFO|DEBUG) [0-9-]{{5}} [0-9:]{{8}} \[[^\]\s\[]+:[0-9]+\] "
    head = rf"^(?:\[{_DAY}{_RANKS}\] |{vllm})"
    return lines.str.contains(f"{head}[!-~]"), lines.str.replace(head, "")
