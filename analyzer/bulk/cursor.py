"""Walks many lines at once, token by token: one position a line, in arrays.

A column of figures costs some operations on arrays of one cell a line, a third of what the capture groups of a
regular expression cost. Eight bytes are looked at together; the arithmetic on their digits is the one known as SWAR.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Words64 = npt.NDArray[Any]
"""Eight bytes of each line, as np.uint64; the types of numpy lose it in arithmetic with int."""

DIGIT = 0
"""Stands for any digit in a fixed text; no plain line holds this byte."""
MOST_DIGITS = 7
"""Digits before, and digits after the point that a decimal figure may have here: their quotient is the nearest
double, as ``float`` gives it, while both together are below 2**53."""
_EACH = 0x0101010101010101
_ZEROS, _DOTS, _LOW, _NINES, _HIGH = (byte * _EACH for byte in (0x30, 0x2E, 0x7F, 0x76, 0x80))
_DOT, _TRUE, _FALSE = ord("."), b"True", b"False"
_POWERS = 10.0 ** np.arange(9)
_ONE = np.uint64(1)
_FIRST = np.asarray([(1 << 8 * count) - 1 for count in range(9)], np.uint64)
"""Masks for the first bytes of a word."""


class Windows:
    """The eight bytes from each place of ``data`` on, as whole numbers; behind its end there are zeros."""

    def __init__(self, data: bytes) -> None:
        data = data.ljust(8, b"\0")
        self._data = data
        self._last = len(data) - 8
        self._words: Words64 = np.ndarray((self._last + 1,), dtype="<u8", buffer=data, strides=(1,))

    def at(self, places: Ints) -> Words64:
        """The eight bytes from each of ``places`` on."""
        try:
            return self._words[places]
        except IndexError:  # some are in the last bytes
            beyond = np.clip(places - self._last, 0, 8).astype(np.uint64) << 3
            return np.where(beyond < 64, self._words[np.minimum(places, self._last)] >> beyond, np.uint64(0))

    def find(self, places: Ints, char: int) -> Ints:
        """How many bytes before the first ``char`` from each of ``places`` on; 8 if it is not among so many."""
        marks = _zeros(self.at(places) ^ (char * _EACH))
        return (_ones_below(marks) >> 3).astype(np.int64)

    def over(self, places: Ints, width: int) -> list[Words64]:
        """All ``width`` bytes from each of ``places`` on, eight at a time; where they overlap, some twice."""
        return [self.at(places + at) for at in _windows_over(width)]

    def are(self, places: Ints, text: bytes) -> Mask | None:
        """Where ``text``, which holds no zero, stands; None if some place is too near to the end to look."""
        try:
            same: Mask = self.texts(places, len(text)) == text  # a string of fixed length costs as much as one window
        except IndexError:
            return None
        return same

    def texts(self, places: Ints, width: int) -> npt.NDArray[np.bytes_]:
        """The ``width`` bytes from each of ``places`` on. Raises ``IndexError`` if there are not so many."""
        count = max(0, len(self._data) - width + 1)
        return np.ndarray((count,), f"S{width}", self._data, strides=(1,))[places]

    def between(self, begin: Ints, end: Ints, most: int) -> list[Words64]:
        """The bytes between two places, eight at a time, 0 behind them; none if there are more than ``most``."""
        widths = end - begin
        width = int(widths.max(initial=0))
        if width > most:
            return []
        left = (np.clip(widths - at, 0, 8) for at in range(0, max(width, 1), 8))
        return [self.at(begin + 8 * number) & _FIRST[bytes_left] for number, bytes_left in enumerate(left)]

    def whole(self, begin: Ints, end: Ints) -> list[Words64]:
        """What tells texts between two places apart: all bytes, eight at a time, and their number.

        Each text has eight bytes at least; the last ones may come several times.
        """
        widths = end - begin
        last = end - 8
        words = [self.at(np.minimum(begin + at, last)) for at in range(0, int(widths.max(initial=0)), 8)]
        return [*words, widths.astype(np.uint64)]


class Cursor:
    """A position in each of some lines of ``windows``.

    Lines that do not go on as they must are bad from there on, wherever their positions go; what was taken from them
    means nothing.
    """

    def __init__(self, windows: Windows, places: Ints) -> None:
        self._windows = windows
        self.places = places
        self._wrong: Words64 = np.zeros(len(places), np.uint64)
        self._bad: Mask = np.zeros(len(places), np.bool_)

    def good(self) -> Mask:
        """Which lines have gone on as they must so far."""
        good: Mask = self._wrong == 0
        good &= ~self._bad
        return good

    def end(self, places: Ints) -> None:
        """Asks for the end of the lines, which are at ``places``."""
        self.refuse(self.places != places)

    def jump(self, places: Ints) -> None:
        """Goes to ``places``."""
        self.places = places

    def fixed(self, text: bytes) -> None:
        """Passes ``text``, in which ``DIGIT`` is any digit."""
        first, last = text.find(DIGIT), text.rfind(DIGIT) + 1
        if len(text) <= 8:
            self.form(text)
            return
        if last == 0:
            self._same(text)
            return
        self._same(text[:first])
        self.form(text[first:last])
        self._same(text[last:])

    def _same(self, text: bytes) -> None:
        """Passes ``text``, which holds no ``DIGIT``."""
        if not text:
            return
        same = self._windows.are(self.places, text)
        if same is None:
            self.form(text)
            return
        self.refuse(~same)
        self.places = self.places + len(text)

    def form(self, text: bytes) -> None:
        """The same as ``fixed``, eight bytes at a time: quicker for a short text."""
        for at in _windows_over(len(text)):
            part = text[at : at + 8]
            word = self._windows.at(self.places + at)
            word ^= _number(part.replace(bytes([DIGIT]), b"0"))  # now a digit is at most nine, and the rest is zero
            if DIGIT in part:
                marks = word & _LOW
                marks += _number(bytes(0x76 if char == DIGIT else 0x7F for char in part))
                word |= marks
                word &= _HIGH
            if len(part) < 8:
                word &= _number(b"\xff" * len(part))
            self._wrong |= word
        self.places = self.places + len(text)

    def whole(self) -> Ints:
        """Takes a whole number of at most 15 digits."""
        value, count = self._digits(self.places)
        self.refuse(count == 0)
        self.places = self.places + count
        if (count == 8).any():
            more, further = self._digits(self.places)
            further *= count == 8
            self.refuse(further == 8)
            value = np.where(further > 0, value * 10 ** np.minimum(further, 7) + more, value)
            self.places = self.places + further
        return value

    def decimal(self) -> Floats:
        """Takes a figure with a point and at most ``MOST_DIGITS`` on each side of it, as ``float`` reads it."""
        word = self._windows.at(self.places)
        other = _no_digits(word)
        before = _ones_below(other)  # eight bits a byte
        other &= other - 1
        length = _ones_below(other)
        if (length == 64).any():
            return self._long_decimal()
        self.refuse(((word >> before) & 0xFF != _DOT) | (before == 0) | (length == before + 8))
        low = (_ONE << before) - 1
        digits = (word & low) | (word >> 8 & ~low)
        after = (length - before >> 3) - 1
        self.places = self.places + (length >> 3).astype(np.int64)
        values: Floats = _value(digits, length - 8) / _POWERS[after & 7]
        return values

    def _long_decimal(self) -> Floats:
        """The same for figures of eight characters or more."""
        whole, before = self._digits(self.places)
        point = self.places + before
        self.refuse((self._windows.at(point) & 0xFF) != _DOT)
        parts, after = self._digits(point + 1)
        self.refuse((before == 0) | (before == 8) | (after == 0) | (after == 8))
        self.places = point + 1 + after
        power = _POWERS[after]
        values: Floats = (whole * power + parts) / power
        return values

    def dotted(self) -> None:
        """Passes digits and points, at least one and fewer than 24 of them."""
        left = np.arange(len(self.places))
        places = self.places
        for part in range(3):
            word = self._windows.at(places[left])
            length = (_ones_below(_no_digits(word) & ~_zeros(word ^ _DOTS)) >> 3).astype(np.int64)
            if not part:
                self.refuse(length == 0)
                places = places + length
            else:
                places[left] += length
            left = left[length == 8]
            if not len(left):
                break
        self._bad[left] = True
        self.places = places

    def printable(self) -> None:
        """Asks for a printable character that is no space, and stays before it."""
        char = self._windows.at(self.places) & 0xFF
        self.refuse((char <= ord(" ")) | (char > ord("~")))

    def truth(self) -> Mask:
        """Takes ``True`` or ``False``."""
        word = self._windows.at(self.places)
        true: Mask = (word & _number(b"\xff" * 4)) == _number(_TRUE)
        false = (word & _number(b"\xff" * 5)) == _number(_FALSE)
        self.refuse(~(true | false))
        self.places = self.places + np.where(true, 4, 5)
        return true

    def refuse(self, wrong: Mask) -> None:
        """Says which lines are bad."""
        self._bad |= wrong

    def _digits(self, places: Ints) -> tuple[Ints, Ints]:
        """Up to eight digits: their value and their number."""
        word = self._windows.at(places)
        length = _ones_below(_no_digits(word))
        return _value(word, length), (length >> 3).astype(np.int64)


def telling(text: bytes) -> tuple[int, bytes]:
    """Where in ``text`` the last eight bytes with the fewest figures stand, and these; of a short one, all."""
    at = max(range(max(len(text) - 7, 1)), key=lambda at: (-text.count(DIGIT, at, at + 8), at))
    return at, text[at : at + 8]


def _value(word: Words64, length: Words64) -> Ints:
    """The whole number of the first digits of ``word``, which take ``length`` bits."""
    # the first digit is in the lowest byte; the digits go to the top, zeros come before them
    word = word & 0x0F0F0F0F0F0F0F0F
    word <<= 64 - length
    word *= 1 + (10 << 8)
    word >>= 8
    word &= 0x00FF00FF00FF00FF
    word *= 1 + (100 << 16)
    word >>= 16
    word &= 0x0000FFFF0000FFFF
    word *= 1 + (10_000 << 32)
    word >>= 32
    return word.view(np.int64)


def _ones_below(marks: Words64) -> Words64:
    """The number of bits in the bytes below the first marked one; 64 without any."""
    below = -marks
    below &= marks
    below -= 1
    count: Words64 = (np.bitwise_count(below) & 0x78).astype(np.uint64)
    return count


def _zeros(word: Words64) -> Words64:
    """The highest bit of each byte that is zero."""
    marks: Words64 = ~(((word & _LOW) + _LOW) | word) & _HIGH
    return marks


def _no_digits(word: Words64) -> Words64:
    """The highest bit of each byte that is no digit."""
    apart = word ^ _ZEROS
    marks: Words64 = apart & _LOW
    marks += _NINES
    marks |= apart
    marks &= _HIGH
    return marks


def _windows_over(length: int) -> list[int]:
    """Where windows must begin that cover ``length`` bytes; the last may overlap the one before it."""
    if length <= 8:
        return [0]
    return [*range(0, length - 8, 8), length - 8]


def _number(part: bytes) -> int:
    return int.from_bytes(part, "little")
