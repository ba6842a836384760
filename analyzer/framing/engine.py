"""Engine prefixes of both engines: time, level, rank tags, process tags, module.

SGLang: ``[2026-11-30 02:55:49 DP0 TP0] text`` (tags in any order, milliseconds optional, no level; 0.3 had no date,
its server of diffusion models prints no year).
vLLM: ``(Worker_TP0 pid=7) INFO 09-12 10:00:00 [core.py:59] text``; 0.5 and 0.6 wrote ``core.py:59] text``; the process
tag is absent in old versions. uvicorn prints ``INFO:     text`` in both, within SGLang's stamp or vLLM's process tag.
Expressions are linear: no two neighbouring parts can match the same text in two ways.
"""

from __future__ import annotations

from datetime import date
from functools import lru_cache

from analyzer.patterns import on_demand

_PREFIX, _TAGS, _HEAD, _UVICORN = 1, 2, 3, 4
"""The groups of the expression ``embedded``."""

LEVELS = "INFO|WARNING|ERROR|DEBUG|CRITICAL"

_STAMP = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"
_RANKS = r"((?: [A-Z][A-Z_]*\d+)*)( encode_\w+(?:\[\d+\])?)?"
_SHORT = r"(?:\d{4}-)?\d\d-\d\d \d\d:\d\d(?::\d\d)?"
"""vLLM's time: a formatter of the user's may add the year or leave out the seconds."""
_HEADER = rf"({LEVELS}) (?:({_SHORT})(?:[.,]\d+)? |(?=\[[\w./-]+\.py:\d+\]))\[?([^\]\s\[]+:\d+)\] ?"
_NAMES = r"(?:APIServer|ApiServer_|EngineCore|VllmWorker|Worker|RayWorker|MainProcess|DPSupervisor|Process-)"
_TAG = rf"\({_NAMES}[\w.-]*(?: rank=\d+)? pid=\d+(?:, ip=[^()\s]+)?\)"

_PATTERNS = {
    # 1 stamp, 2 fraction, 3 ranks, 4 encoder process, 5 uvicorn's level
    "sglang": rf"\[((?:(?:\d{{4}}-)?\d\d-\d\d )?\d\d:\d\d:\d\d)([.,]\d+)?{_RANKS}\] ?(?:({LEVELS}):\s+)?",
    "sglang_cut": rf"({_STAMP})()((?: [A-Z][A-Z_]*\d+)*)()\] ?(?:({LEVELS}):\s+)?",  # the opening bracket got lost
    # 1 ranks: a log of which the times were cut off, or a summary of one
    "ranks": r"\[((?:ATTN_)?(?:TP|PP|DP|EP|CP|DCP)\d+(?: [A-Z][A-Z_]*\d+)*)\] +",
    # 1 level: SGLang before its own logger is set up, behind its stamp
    "source": rf"({LEVELS}) [\w./-]+\.py:\d+: ",
    # 1 process tag, 2 level, 3 stamp, 4 module, 5 uvicorn's level
    "vllm": rf"(?:\(([^()]{{1,90}})\) ?)?(?:{_HEADER}|({LEVELS}):\s+)",
    "repeated": r" *\[repeated (\d+)x across cluster\](?: \(Ray deduplicates[^)]*\))?",
    "tag": r"\(([^()]{1,90})\)(?: |$)",
    # 1 SGLang's prefix, 2 process tags, 3 vLLM's header, 4 uvicorn's level
    "embedded": (
        rf"(\[{_STAMP}(?:[.,]\d+)?(?: [A-Z][A-Z_]*\d+)*(?: encode_\w+(?:\[\d+\])?)?\] )|((?:{_TAG} ?){{1,3}})|"
        rf"((?:{LEVELS}) {_SHORT}(?:[.,]\d+)? \[?[^\]\s\[]+:\d+\] )|(INFO:     )"
    ),
    "date": r"\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d",
    "helper": r"(raylet|autoscaler|gcs_server)(?:[ ,+]|$)",
    "process": r"(?:([\w.+-]+)( rank=\d+)? )?pid=(\d+)(?:, ip=(\S+))?$",
}
pattern = on_demand(_PATTERNS)
"""The expression of this module that has a name."""


@lru_cache(maxsize=4096)
def process_tag(tag: str) -> tuple[str, str, int | None] | None:
    """``(process, rank, pid)`` of what stands in the brackets of a process prefix; None if it is no such prefix.

    A worker's rank is its name where that tells workers apart (``Worker_TP1``); where all workers share one name
    (``VllmWorkerProcess pid=353``, ray actors, also on several nodes) it is the whole tag. Other processes have none.
    """
    match = pattern("process").match(tag)
    if match is None:
        helper = pattern("helper").match(tag)
        return (helper[1], "", None) if helper else None
    name, number, pid, host = match[1] or "", match[2] or "", int(match[3]), match[4]
    if not name or "Worker" not in name:
        rank = ""
    elif number or name.startswith(("Worker", "VllmWorker-", "VllmWorker_")):
        rank = name + number
    elif host is not None or name.startswith(("VllmWorkerProcess", "Ray")):
        rank = tag
    else:
        rank = name
    return name, rank, pid


def repetition(text: str) -> tuple[str, int]:
    """``text`` without ray's ``[repeated 3x across cluster]``, and how often it occurred."""
    if "x across cluster]" not in text or (match := pattern("repeated").search(text)) is None:
        return text, 1
    return text[: match.start()] + text[match.end() :], int(match[1])


def looks_embedded(text: str) -> bool:
    """Whether ``text`` may hold an engine prefix or ray's mark of repetition (quick; the expressions decide)."""
    return (
        "[20" in text
        or " pid=" in text
        or "INFO" in text
        or "WARNING " in text
        or "ERROR " in text
        or "DEBUG " in text
        or "x across cluster]" in text
    )


def messages_in(text: str) -> list[tuple[int, int]]:
    """Where messages with an engine prefix begin in ``text``: for each, where its prefixes do and where its own does.

    Prefixes that follow one another at once belong together: tags before a header, uvicorn's level behind a stamp; of
    several headers the last one is the message's own, and those before it were put around it.
    """
    found: list[tuple[int, int]] = []
    begin = own = end = tags = -1
    before = 0
    for match in pattern("embedded").finditer(text):
        at, kind = match.start(), match.lastindex or 0
        if at != end:
            if begin >= 0:
                found.append((begin, own))
            begin = own = at
        elif kind in (_PREFIX, _HEAD) or (kind == _UVICORN and before != _PREFIX):
            own = tags if before == _TAGS else at
        if kind == _TAGS:
            tags = at
        before, end = kind, match.end()
    if begin >= 0:
        found.append((begin, own))
    return found


@lru_cache(maxsize=64)
def _day(text: str) -> float | None:
    try:
        return (date(int(text[:4]), int(text[5:7]), int(text[8:10])).toordinal() - 719163) * 86400.0
    except ValueError:
        return None


def seconds(stamp: str) -> float | None:
    """``YYYY-MM-DD HH:MM:SS`` as seconds since the epoch, read as UTC; None for a date that does not exist.

    A stamp without a year is of 1972, one without a date of 1972-01-01.
    """
    if len(stamp) == 14:
        return seconds_without_year(stamp)
    if len(stamp) == 8:
        stamp = f"1972-01-01 {stamp}"
    day = _day(stamp[:10])
    if day is None:
        return None
    return day + int(stamp[11:13]) * 3600 + int(stamp[14:16]) * 60 + int(stamp[17:19])


def seconds_without_year(stamp: str) -> float | None:
    """``MM-DD HH:MM:SS`` in 1972, a leap year; a stamp that names the year is read with it, missing seconds are 0."""
    if len(stamp) != 14:
        if len(stamp) in (11, 16):
            stamp += ":00"
        if len(stamp) == 19:
            return seconds(stamp)
    day = _day("1972-" + stamp[:5])
    if day is None:
        return None
    return day + int(stamp[6:8]) * 3600 + int(stamp[9:11]) * 60 + int(stamp[12:14])
