"""Lines that look like an error, and those that mean nothing to any run, of which a log may hold millions."""

from __future__ import annotations

import re

from analyzer.framing.record import Record
from analyzer.run import split
from analyzer.run.classify import CLIENT_HEAD
from analyzer.run.tracebacks import HEADER, exception_line

_SCARY = re.compile(
    r"(?i)\berror|exception|\bfail|fatal|\bwarn|traceback|\bkill|\babort|crash|leak|denied|refused|cannot|could not"
    r"|unable|invalid|deprecat|not (?:found|supported|available|installed)|unsupported|missing|\U0001f6a8"
)
SCARY_WORDS = (
    "error", "exception", "fail", "fatal", "warn", "traceback", "kill", "abort", "crash", "leak", "denied", "refused",
    "cannot", "could not", "unable", "invalid", "deprecat", "not ", "unsupported", "missing", "\U0001f6a8",
)  # fmt: skip
"""A plain search for one of these goes before the expression, which takes ten times as long on a line without any."""


def is_dull(record: Record) -> bool:
    """Whether an unprefixed record that is no event has no part in a run, which its text alone tells."""
    text = record.text
    return (
        record.form == "raw"
        and HEADER not in text
        and exception_line(text.split("\n", 1)[0]) is None
        and CLIENT_HEAD.search(text) is None
        and split.command_or_preamble(text) is None
        and not frightening(record)
    )


def frightening(record: Record) -> bool:
    """Whether a reader might take ``record`` for an error."""
    if not record.text.strip():
        return False
    if record.level in ("ERROR", "CRITICAL", "WARNING"):
        return True
    low = record.text.lower()
    if "not an error" in low:
        return False
    return any(word in low for word in SCARY_WORDS) and _SCARY.search(record.text) is not None
