"""Logs that were printed newest first (``journalctl -r``, exports of log consoles): noticed, and turned round.

Only a log whose times descend through almost all of its lines is touched. The first lines decide whether it may be
one; then it is held, up to a bound, and given from its last line to its first. What is larger is given as it stands,
with a note that says what to do: no guess, and no more memory than the bound.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from analyzer.errors import UserError

UNDECIDED = 1 << 20
"""Bytes after which a log without changes of time is taken as it is."""
MOST = 32 << 20
"""Bytes that are held to be turned round."""
STEPS = 4
"""Changes of time below which nothing is said of their direction."""
STRAY = 0.05
"""Share of changes that may go the other way: lines of several processes are never quite in order."""
PIECE = 1 << 20

TURNED = "printed newest first: read from its last line to its first, so that line numbers count from its end (tac)"
TOO_LARGE = (
    "printed newest first, and too large to be turned round here: this report read it the wrong way round and is not "
    "to be trusted; run `tac LOG | kvautopsy`"
)

_STAMP = re.compile(
    rb"(?P<full>\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?)"
    rb"|(?P<month>[A-Z][a-z]{2}) {1,2}(?P<day>\d{1,2})(?P<year>, \d{4} @)? (?P<clock>\d\d:\d\d:\d\d(?:[.,]\d{1,9})?)"
    rb"|(?P<short>\b\d\d-\d\d \d\d:\d\d:\d\d)"
)
_KEY = re.compile(rb'\s+"(\w{1,40})": ')
_OWN = re.compile(rb'"(?:@?timestamp|time|ts)": ?"(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d{1,9})?)')
"""The time of an entry of a log service, in an object on one line."""
_MONTHS = (b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec")
_REACH, _REACH_JSON = 200, 4000
"""Bytes of a line in which its time is looked for."""


_TRACEBACK = b"Traceback (most recent call last)"
_FRAMES = (b'  File "', b'  File \\"')
"""A frame as it is, and in an entry in JSON."""


def in_order(chunks: Iterable[bytes], notes: list[str]) -> Iterator[bytes]:
    """The bytes of one log, oldest first; ``notes`` is told if they came the other way.

    An error of ``chunks`` is raised after what could be read was given.
    """
    source, trend = iter(chunks), Trend()
    held: list[bytes] = []
    size, ended = 0, True
    failure: UserError | None = None
    try:
        for chunk in source:
            held.append(chunk)
            size += len(chunk)
            trend.feed(chunk)
            if trend.ascends or size > (MOST if trend.descends else UNDECIDED):
                ended = False
                break
    except UserError as error:
        failure = error
    if ended and trend.descends:
        notes.append(TURNED)
        yield from _turned(b"".join(held), by_entry=trend.reads_down > trend.reads_up)
    else:
        if trend.descends:
            notes.append(TOO_LARGE)
        held.reverse()
        while held:
            yield held.pop()
        if not ended:
            yield from source
    if failure is not None:
        raise failure


class Trend:
    """Which way the times of a log's lines go, fed piece by piece until it is known that they ascend."""

    def __init__(self) -> None:
        self._rest = b""
        self._last: dict[str, bytes] = {}
        self._before = b""
        self._ups = self._downs = 0
        self.reads_down = self.reads_up = 0
        """Tracebacks whose first frame stands below their head, and above it."""

    @property
    def ascends(self) -> bool:
        """Whether the log is surely not newest first."""
        return self._ups >= STEPS and self._ups > STRAY * (self._ups + self._downs)

    @property
    def descends(self) -> bool:
        """Whether the times went down in almost all of the changes so far, or all tracebacks read upwards."""
        changes = self._ups + self._downs
        if self._ups == 0 and self.reads_up and not self.reads_down:
            return True
        return changes >= STEPS and self._ups <= STRAY * changes

    def feed(self, chunk: bytes) -> None:
        """Takes the next bytes."""
        *lines, rest = (self._rest + chunk).split(b"\n")
        self._rest = rest[-_REACH_JSON:]
        for line in lines:
            self.reads_down += _TRACEBACK in self._before and _is_frame(line)
            self.reads_up += _TRACEBACK in line and _is_frame(self._before)
            self._before = line
            if (found := _time(line)) is None:
                continue
            form, key = found
            last = self._last.get(form, key)
            self._last[form] = key
            if key != last:
                self._ups += key > last
                self._downs += key < last
                if self.ascends:
                    return


def _is_frame(line: bytes) -> bool:
    return any(frame in line for frame in _FRAMES)


def _time(line: bytes) -> tuple[str, bytes] | None:
    """The form of the first time in ``line``, and the time as bytes that sort."""
    json = line.startswith(b"{")
    if json and (own := _OWN.search(line, 0, _REACH_JSON)) is not None:
        return "entry", own[1].replace(b"T", b" ")
    match = _STAMP.search(line, 0, _REACH_JSON if json else _REACH)
    if match is None:
        return None
    if match["full"]:
        key = _KEY.match(line)  # in an export with a key on each line, the service's time is not the server's
        form = "full" if key is None else f"full {key[1].decode(errors='replace')}"
        return form, match["full"].replace(b"T", b" ").replace(b",", b".")
    if match["short"]:
        return "short", match["short"]
    if match["month"] not in _MONTHS:
        return None
    number = _MONTHS.index(match["month"]) + 1
    year = (match["year"] or b"")[2:6]
    return "month", b"%s %02d %02d %s" % (year, number, int(match["day"]), match["clock"].replace(b",", b"."))


def _turned(data: bytes, *, by_entry: bool) -> Iterator[bytes]:
    """``data`` with its entries the other way round, in pieces.

    An entry is a line, as log services keep it. ``by_entry``: the lines without a time below one that has it belong to
    it and stay there, as a traceback shows that reads downwards although the entries do not.
    """
    lines = data.removeprefix(b"\xef\xbb\xbf").removesuffix(b"\n").split(b"\n")
    entries = list(_entries(lines)) if by_entry else [[line] for line in lines]
    piece: list[bytes] = []
    size = 0
    for entry in reversed(entries):
        for line in entry:
            piece.append(line)
            size += len(line) + 1
        if size >= PIECE:
            yield b"\n".join(piece) + b"\n"
            piece, size = [], 0
    if piece:
        yield b"\n".join(piece) + b"\n"


def _entries(lines: list[bytes]) -> Iterator[list[bytes]]:
    """Each line that has a time, with the lines below it that have none."""
    entry: list[bytes] = []
    for line in lines:
        if entry and _time(line) is not None:
            yield entry
            entry = []
        entry.append(line)
    if entry:
        yield entry
