"""What a logged request quotes: an engine's line in a prompt, or in an answer, is no line of this server.

People ask models about the logs of their servers. Both engines print requests and answers as Python or JSON writes
strings, on one line, so that whatever stands in one that is closed was said by somebody else. One that is never closed
was cut off: what follows it may be another process's line that lost its beginning.
"""

from __future__ import annotations

from analyzer.patterns import on_demand

_PATTERNS = {
    "request": (
        r"(?:Received request \S+: |Request \S+ details: |Generated response \S+?(?: \([^()]{1,40}\))?: |"
        r"(?:Receive|Finish): obj=|\{[^{}]{0,200}?\"event\": ?\"request\.(?:received|finished)\")"
    ),
    "sign": r"(?s)\\.|['\"]",
}
_pattern = on_demand(_PATTERNS)


def without_quoted(text: str, start: int, places: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Those of ``places``, where further messages begin in ``text``, that no request quotes.

    ``start``: where the text of the first one begins.
    """
    kept: list[tuple[int, int]] = []
    quotes = _quotes(text, start, places[0][0])
    for index, (at, own) in enumerate(places):
        if any(opened < at < closed for opened, closed in quotes):
            continue
        kept.append((at, own))
        quotes = _quotes(text, own, places[index + 1][0] if index + 1 < len(places) else len(text))
    return kept


def _quotes(text: str, begin: int, end: int) -> list[tuple[int, int]]:
    """The strings that are closed in the request whose head stands between ``begin`` and ``end``; none if none does."""
    request = _pattern("request").search(text, begin, end)
    if request is None:
        return []
    found: list[tuple[int, int]] = []
    sign, opened = "", 0
    for match in _pattern("sign").finditer(text, request.end()):
        if len(match[0]) > 1:
            continue
        if not sign:
            sign, opened = match[0], match.start()
        elif match[0] == sign:
            found.append((opened, match.end()))
            sign = ""
    return found
