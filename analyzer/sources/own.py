"""Reports of this program among logs: they quote log lines, so that reading one would make up runs."""

from __future__ import annotations

import re

_TEXT = rb"(?:`[^`\n]{1,400}`:|[^\n]{1,400}?)\s+(?:\x1b\[[\d;]*m)?[\d,]+ lines?[:,] [\d,]+ recognised, [\d,]+ not\b"
_OWN = re.compile(
    rb"\s*(?:"
    rb"<!doctype html>[^\0]{0,120}?<meta name=\"generator\" content=\"kvautopsy\">"
    rb"|[\[{][\s{]*\"schema\": ?\"kvautopsy\.\w+/\d"
    rb"|\{\s*\"\$schema\"[^\0]{0,250}?\"name\": ?\"kvautopsy\""
    rb"|(?:<\?xml[^>]{0,60}>\s*)?<testsuites name=\"kvautopsy\""
    rb"|(?:- )?" + _TEXT + rb")"
)


def is_report(head: bytes) -> bool:
    """Whether a file that begins with ``head`` is a report that this program wrote, in any of its formats."""
    return _OWN.match(head) is not None
