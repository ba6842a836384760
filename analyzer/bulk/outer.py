"""The prefix that a collector put before each line of a log, where it is the same one but for its time."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from analyzer.bulk.lines import Lines, packed_text
from analyzer.framing.outer import Peeler
from analyzer.framing.plain import Plain, read_plain

_FEW = 24
_TIME = re.compile(
    r"[0-9]{4}-[0-9][0-9]-[0-9][0-9][T ][0-9][0-9]:[0-9][0-9]:[0-9][0-9](?:[.,][0-9]+)?"
    r"|[A-Z][a-z][a-z] [ 0-9][0-9] [0-9][0-9]:[0-9][0-9]:[0-9][0-9](?:\.[0-9]+)?"
)
"""The time in such a prefix; all other figures in it belong to names."""
_FIGURES = re.compile(r"[0-9]+")


@dataclass(frozen=True, slots=True)
class OuterForm:
    """Such a prefix: ``expression`` fits it in any line, ``stream`` is what it names. The default is none."""

    expression: str = ""
    stream: str = ""
    packed: bool = False
    """Whether each line is an object of docker's json-file driver."""

    def texts(self, lines: Lines) -> Lines:
        """``lines`` without this prefix; one that has another is an empty text."""
        if self.packed:
            return lines.unpacked()
        return lines.without(self.expression) if self.expression else lines

    @classmethod
    def of(cls, line: str, peeler: Peeler) -> OuterForm:
        """The form of the prefix of ``line``; of one that says more than a time and a name, none."""
        if read_plain("", 1, line) is not None:
            return cls()
        inner = packed_text(line)
        if inner is not None:
            return cls(packed=read_plain("", 1, inner) is not None)
        text, outer = peeler.peel(line)
        if outer.partial or outer.process or outer.fields is not None or not line.endswith(text):
            return cls()
        begin = len(line) - len(text)
        own = line.find("[20", 0, begin)  # SGLang's stamp before a line of uvicorn looks like a collector's
        if own >= 0 and read_plain("", 1, line[own:]) is not None:
            begin = own
        head = line[:begin]
        if not head or read_plain("", 1, line[begin:]) is None:
            return cls()
        time = _TIME.search(head)
        before, stamp, after = (head[: time.start()], time[0], head[time.end() :]) if time else (head, "", "")
        return cls(f"^{re.escape(before)}{_FIGURES.sub('[0-9]+', re.escape(stamp))}{re.escape(after)}", outer.stream)

    @classmethod
    def common(cls, lines: Lines, peeler: Peeler) -> OuterForm:
        """The form that most of a few of ``lines`` have."""
        few = lines.every(max(1, len(lines) // _FEW))
        return Counter(cls.of(line, peeler) for line in few).most_common(1)[0][0]

    def plain(self, source: str, number: int, line: str, text: str, peeler: Peeler, sure: bool = False) -> Plain | None:
        """The plain line ``text`` that stands in ``line`` behind this prefix; ``sure`` as in ``read_plain``."""
        if self == OuterForm():
            return read_plain(source, number, text, sure)
        if "\r" in text:  # behind a prefix, it parts the line before anything else is looked at
            return None
        plain = read_plain(source, number, text, sure)
        if plain is not None:
            record = plain.record
            record.stream = self.stream
            if record.time is None:
                outer = peeler.peel(line)[1]
                record.stamp, record.time = record.stamp or outer.stamp, outer.time
        return plain
