"""The times that log services write into a column -> one form, which sorts and which framing reads."""

from __future__ import annotations

import re
from datetime import UTC, datetime

_ISO = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d")
_EPOCH = re.compile(r"(\d{9,19})(?:\.\d{1,9})?$")
_LONG = re.compile(r"([A-Z][a-z]{2}) (\d{1,2}), (\d{4}) @ (\d\d:\d\d:\d\d(?:\.\d{1,9})?)")
"""Kibana: ``Jul 2, 2026 @ 13:05:00.123``."""
_AMERICAN = re.compile(r"(\d{1,2})/(\d{1,2})/(\d{4}),? (\d{1,2})(:\d\d:\d\d(?:\.\d{1,9})?)\s([AP])M")
"""Azure's portal: ``7/2/2026, 1:05:00.123 PM``. Without AM or PM, day and month could be either."""
_MONTHS = "JanFebMarAprMayJunJulAugSepOctNovDec"


def iso(text: str) -> str:
    """``text`` as ``2026-07-02T13:05:00.123``, or as it is if it begins like this; empty if it is no time."""
    if _ISO.match(text):
        return text
    if match := _EPOCH.match(text):
        return _of_epoch(match[1])
    if (match := _LONG.match(text)) and (month := _MONTHS.find(match[1])) % 3 == 0:
        return f"{match[3]}-{month // 3 + 1:02}-{int(match[2]):02}T{match[4]}"
    if match := _AMERICAN.match(text):
        hour = int(match[4]) % 12 + (12 if match[6] == "P" else 0)
        return f"{match[3]}-{int(match[1]):02}-{int(match[2]):02}T{hour:02}{match[5]}"
    return ""


def _of_epoch(digits: str) -> str:
    """Seconds, milliseconds, microseconds or nanoseconds since the epoch: the number of digits tells which."""
    scale = next(scale for most, scale in ((11, 0), (14, 3), (17, 6), (19, 9)) if len(digits) <= most)
    seconds, part = (digits[:-scale], digits[-scale:]) if scale else (digits, "")
    try:
        text = datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%S")
    except (ValueError, OverflowError, OSError):
        return ""
    return f"{text}.{part}" if part else text
