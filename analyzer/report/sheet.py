"""A sheet of fixed width: lines of styled pieces, wrapped and clipped by what a terminal shows of each character."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

Piece = tuple[str, str]
"""A text and its style (a rich style, ``""`` for none)."""

_EIGHTHS = " ▏▎▍▌▋▊▉"
_HEIGHTS = "▁▂▃▄▅▆▇█"
_ASCII_HEIGHTS = "_.-=+*#@"


def cells(text: str) -> int:
    """How many columns a terminal needs for ``text``."""
    if text.isascii():
        return len(text)
    return sum(_cell(char) for char in text)


def _cell(char: str) -> int:
    if unicodedata.combining(char) or unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def clip(text: str, width: int) -> str:
    """``text`` on one line in at most ``width`` columns; what is cut off is shown by two dots."""
    text = " ".join(text.split())
    if cells(text) <= width:
        return text
    kept, used = [], 0
    for char in text:
        used += _cell(char)
        if used > width - 2:
            break
        kept.append(char)
    return "".join(kept).rstrip() + ".."


def clip_path(path: str, width: int) -> str:
    """The end of ``path`` in at most ``width`` columns: a file's name tells more than the folders before it."""
    if cells(path) <= width:
        return path
    name = path.rsplit("/", 1)[-1]
    return clip(f".../{name}" if cells(name) + 4 <= width else name, width)


def wrap(text: str, width: int) -> Iterator[str]:
    """``text`` in lines of at most ``width`` columns; a word that is longer is broken."""
    width = max(width, 8)
    for paragraph in text.split("\n"):
        line, used = "", 0
        for word in paragraph.split():
            while cells(word) > width:
                room = width - used - 1 if line else width
                if line and room < 8:
                    yield line
                    line, used, room = "", 0, width
                head = _head(word, room) or word[0]
                yield f"{line} {head}" if line else head
                line, used, word = "", 0, word[len(head) :]
            if line and used + 1 + cells(word) > width:
                yield line
                line, used = "", 0
            line, used = (f"{line} {word}", used + 1 + cells(word)) if line else (word, cells(word))
        yield line


def fitted(text: str, width: int, most: int) -> list[str]:
    """``text`` in at most ``most`` rows of ``width`` columns, of which the last is clipped; none for an empty text."""
    rows = list(wrap(text, width)) if text else []
    return rows if len(rows) <= most else [*rows[: most - 1], clip(" ".join(rows[most - 1 :]), width)]


def _head(word: str, width: int) -> str:
    used = 0
    for index, char in enumerate(word):
        used += _cell(char)
        if used > width:
            return word[:index]
    return word


def bar(value: float, full: float, width: int, *, blocks: bool = True, freed: float = 0.0) -> str:
    """A bar of ``value`` where ``width`` columns are ``full``; its part ``freed`` is drawn lighter, at its end."""
    if full <= 0 or value <= 0:
        return ""
    length = min(float(width), width * value / full)
    light = min(round(width * freed / full), int(length))
    solid = length - light
    if not blocks:
        return ("#" * (round(solid) or (0 if light else 1)) + "-" * light)[:width]
    whole, rest = int(solid), solid - int(solid)
    text = "█" * whole + (_EIGHTHS[int(rest * 8)] if int(rest * 8) and not light else "")
    return (text or ("" if light else "▏")) + "░" * light


def sparkline(values: Sequence[float | None], width: int, *, blocks: bool = True, low: float = 0.0) -> str:
    """The known ``values`` in ``width`` columns, each as high as its group's maximum, from ``low`` up."""
    known = [v for v in values if v is not None]
    if not known:
        return ""
    heights = _HEIGHTS if blocks else _ASCII_HEIGHTS
    low = min(low, min(known))
    span = (max(known) - low) or 1.0
    width = min(width, len(known))
    groups = (known[i * len(known) // width : (i + 1) * len(known) // width] for i in range(width))
    return "".join(heights[int((max(group) - low) / span * (len(heights) - 1) + 0.5)] for group in groups)


class Sheet:
    """Collects lines, then prints them on a console that need not know colours or anything but ASCII."""

    def __init__(self, width: int, *, blocks: bool = True) -> None:
        self.width = width
        self.blocks = blocks
        self.lines: list[list[Piece]] = []

    def add(self, *pieces: Piece | str) -> None:
        """One line of ``pieces``; what does not fit the width is cut off."""
        line: list[Piece] = []
        room = self.width
        for piece in pieces:
            text, style = (piece, "") if isinstance(piece, str) else piece
            text = text.replace("\n", " ").replace("\t", " ")
            if (need := cells(text)) > room:
                text, need = _head(text, room) if room > 0 else "", room
            room -= need
            line.append((text, style))
        self.lines.append(line)

    def gap(self) -> None:
        """An empty line, unless there is one already."""
        if self.lines and self.lines[-1]:
            self.lines.append([])

    def text(self, text: str, indent: int = 0, style: str = "", first: Piece | None = None) -> None:
        """A paragraph, wrapped; ``first`` stands in the margin of its first line."""
        for number, line in enumerate(wrap(text, self.width - indent)):
            margin = " " * indent
            if number == 0 and first is not None:
                pad = " " * max(0, indent - cells(first[0]))
                self.add(first, pad, (line, style))
            else:
                self.add(margin, (line, style))

    def ends(self, left: Sequence[Piece], right: Sequence[Piece]) -> None:
        """One line with ``left`` at its start and ``right`` at its end; on two lines if they do not fit."""
        used = sum(cells(text) for text, _ in left)
        need = sum(cells(text) for text, _ in right)
        if not right:
            self.add(*left)
        elif used + need + 2 <= self.width:
            self.add(*left, " " * (self.width - used - need), *right)
        else:
            self.add(*left)
            self.add(" " * max(0, self.width - need), *right)

    def print(self, console: Console) -> None:
        """Prints the lines on ``console``; characters that its encoding lacks are spelled out."""
        from rich.text import Text

        encoding = console.encoding or "ascii"
        unicode = encoding.lower().replace("-", "") in ("utf8", "utf16", "utf32")
        for pieces in self.lines:
            line = Text(no_wrap=True, overflow="ignore", end="")
            for text, style in _without_trailing_space(pieces):
                shown = text if unicode else text.encode(encoding, "backslashreplace").decode(encoding)
                line.append(shown, style or None)
            console.print(
                line, no_wrap=True, overflow="ignore", crop=False, highlight=False, markup=False, soft_wrap=True
            )


def _without_trailing_space(pieces: list[Piece]) -> list[Piece]:
    kept = list(pieces)
    while kept:
        text, style = kept.pop()
        if text := text.rstrip():
            return [*kept, (text, style)]
    return kept
