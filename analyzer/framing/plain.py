"""One plain engine line -> its record, without the state of a framer.

For readers that know already that a line stands alone (see ``analyzer.bulk``). ``Framer`` does the same in a loop of
its own, which is faster; a test holds the two together.
"""

from __future__ import annotations

from dataclasses import dataclass

from analyzer.framing import engine
from analyzer.framing.record import Record


@dataclass(frozen=True, slots=True)
class Plain:
    """A plain line: its record, where its message begins, and where its stamp stands (``(0, 0)`` without one)."""

    record: Record
    start: int
    stamp: tuple[int, int]
    ranks: tuple[int, int]
    """Where SGLang's rank tags stand, with the blank before them; empty for vLLM, whose tags name the process."""


def read_plain(source: str, number: int, line: str, sure: bool = False) -> Plain | None:
    """The plain line ``number`` of ``source``, or None if it takes more to read it.

    ``sure``: its message is known to stand alone.
    """
    first = line[:1]
    if first == "[":
        return _sglang(source, number, line, sure)
    return _vllm(source, number, line, sure) if first and first in "(IWEDC" else None


def _sglang(source: str, number: int, line: str, sure: bool) -> Plain | None:
    match = engine.pattern("sglang").match(line)
    if match is None:
        return None
    text = line[match.end() :]
    when, fraction, ranks, encoder, level = match.groups("")
    if encoder or not (
        sure or _alone(text.removesuffix(" "))
    ):  # some versions end their lines with a comma and a blank
        return None
    time = engine.seconds(when)
    if fraction and time is not None:
        time += float("0." + fraction[1:])
    record = Record(source, number, number, text, "log", time, when + fraction, level, ranks[1:])
    return Plain(record, match.end(), (match.start(1), match.end(2) if fraction else match.end(1)), match.span(3))


def _vllm(source: str, number: int, line: str, sure: bool) -> Plain | None:
    match = engine.pattern("vllm").match(line)
    if match is None:
        return None
    text = line[match.end() :]
    tag, level, when, module, uvicorn = match.groups("")
    if not (sure or _alone(text)):
        return None
    name, rank, pid = "", "", None
    if tag:
        process = engine.process_tag(tag)
        if process is None:
            return None
        name, rank, pid = process
    time = engine.seconds_without_year(when) if when else None
    record = Record(source, number, number, text, "log", time, when, level or uvicorn, rank, name, pid, module)
    return Plain(record, match.end(), match.span(3) if when else (0, 0), (match.end(), match.end()))


def _alone(text: str) -> bool:
    return (
        bool(text) and text[0] != " " and text[-1] not in ": " and "\r" not in text and not engine.looks_embedded(text)
    )
