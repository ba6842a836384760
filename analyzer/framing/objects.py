"""Objects that hold one line each: JSON of collectors and of log formatters, and logfmt."""

from __future__ import annotations

import json
import re
from functools import cache
from typing import TYPE_CHECKING, Any

from analyzer.framing.decode import clean

if TYPE_CHECKING:
    from analyzer.framing.outer import Outer

_NESTED = ("jsonPayload", "_source")
_TEXT_KEYS = ("log", "message", "MESSAGE", "msg", "text", "line", "textPayload")


@cache
def _logfmt() -> re.Pattern[str]:
    return re.compile(r'(?:(?:time|ts)=(\S+) )?(?:level=\w+ )?(?:[\w.]+=[^\s"]+ ){0,8}msg=("(?:[^"\\]|\\.)*")')


def read_json(text: str, outer: Outer, *, formatters: bool = True) -> str | None:
    """The message of a JSON object (docker's json-file, a log shipper, a JSON formatter); None if it is none.

    ``formatters``: one that names a level was written by the server itself, not around what it printed.
    """
    text = text.rstrip()
    text = text[:-1] if text.endswith("}]") else text  # fluent-bit prints a list whose head is taken for a prefix
    if not text.endswith("}") or not any(f'"{key}"' in text for key in _TEXT_KEYS):
        return None
    try:
        entry = json.loads(text)
    except ValueError:
        return None
    if nested := next((entry[key] for key in _NESTED if isinstance(entry.get(key), dict)), None):
        entry = {**entry, **nested}
    said = next(((key, value) for key in _TEXT_KEYS if (value := _text(entry.get(key))) is not None), None)
    if said is None:
        return None
    key, message = said
    if formatters and ("levelname" in entry or "asctime" in entry or "level" in entry):
        outer.fields = entry
    elif key == "log":
        ends = (
            message.endswith("\n") or "time" not in entry
        )  # docker keeps the line feed, what collects from it may not
        outer.partial = entry["logtag"] == "P" if "logtag" in entry else not ends
        message = message.removesuffix("\n")
    stamp = entry.get("time") or entry.get("timestamp") or entry.get("asctime") or entry.get("@timestamp")
    if isinstance(stamp, str):
        outer.stamp = stamp
    name = entry.get("container_name") or entry.get("pod") or entry.get("_SYSTEMD_UNIT")
    if isinstance(name, str):
        outer.stream = f"{outer.stream}/{name}" if outer.stream else name
    return message


def read_logfmt(text: str, outer: Outer) -> str | None:
    """The message in ``time=... level=info msg="..."``."""
    match = _logfmt().match(text)
    if match is None:
        return None
    try:
        message = str(json.loads(match[2]))
    except ValueError:
        return None
    outer.stamp = (match[1] or "").strip('"')
    return message


def _text(value: Any) -> str | None:
    """A message in JSON; journald writes one that holds escape sequences as a list of its bytes."""
    if isinstance(value, list) and value:
        try:
            return clean(bytes(value).decode("utf-8", "backslashreplace"))
        except (TypeError, ValueError):
            return None
    return value if isinstance(value, str) else None
