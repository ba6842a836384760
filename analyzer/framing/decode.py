"""Bytes in any chunking -> physical lines of text.

A physical line ends at LF and nothing else; its number is the count of LF before it, plus one. Lines are decoded as
UTF-8 one by one, so a chunk boundary inside a character cannot matter; bytes that are no UTF-8 stay visible as
``\\xff``. A line longer than ``HEAD + TAIL`` bytes keeps its head and its tail and says how much is missing (a
progress bar without LF is such a line, and the real text is at its end).
"""

from __future__ import annotations

import re

from analyzer.patterns import on_demand

HEAD = 256 << 10
TAIL = 64 << 10


class LineReader:
    """Splits bytes into cleaned lines; holds at most one line, and of that one no more than ``HEAD + TAIL`` bytes."""

    def __init__(self) -> None:
        self.bytes = 0
        self._carry = bytearray()
        self._left_out = 0
        self._fresh = True

    @property
    def pending(self) -> bool:
        """Whether a line is held whose end has not come."""
        return bool(self._carry)

    def feed(self, data: bytes) -> list[str]:
        """The lines that ``data`` completes, without their LF (a CR before it is kept)."""
        self.bytes += len(data)
        cut = data.rfind(b"\n")
        if cut < 0:
            self._keep(data)
            return []
        if self._carry:
            first = data.find(b"\n")
            self._keep(data[:first])
            lines = self._text(self._flush())
            if first < cut:
                lines += self._text(_bounded(data[first + 1 : cut]))
        else:
            lines = self._text(_bounded(data[:cut]))
        if cut + 1 < len(data):
            self._keep(data[cut + 1 :])
        return lines

    def close(self) -> list[str]:
        """The last line, if the input did not end in LF."""
        return self._text(self._flush()) if self._carry else []

    def _keep(self, data: bytes) -> None:
        self._carry += data
        excess = len(self._carry) - HEAD - TAIL
        if excess > TAIL:  # trimmed in steps, so that tiny chunks cost no more than large ones
            del self._carry[HEAD : HEAD + excess]
            self._left_out += excess

    def _flush(self) -> bytes:
        carry, left_out = self._carry, self._left_out
        self._carry, self._left_out = bytearray(), 0
        excess = max(0, len(carry) - HEAD - TAIL)
        if left_out or excess:
            return bytes(carry[:HEAD]) + _note(left_out + excess) + bytes(carry[len(carry) - TAIL :])
        return bytes(carry)

    def _text(self, block: bytes) -> list[str]:
        text = block.decode("utf-8", "backslashreplace")
        if self._fresh:
            self._fresh = False
            text = text.removeprefix("\ufeff")
        return clean(text).split("\n")


def _note(count: int) -> bytes:
    return f" [… {count} bytes left out] ".encode()


def _bounded(block: bytes) -> bytes:
    """``block`` with each over-long line shortened as ``LineReader`` shortens one that came in pieces."""
    if len(block) <= HEAD + TAIL:
        return block
    return b"\n".join(
        line[:HEAD] + _note(len(line) - HEAD - TAIL) + line[-TAIL:] if len(line) > HEAD + TAIL else line
        for line in block.split(b"\n")
    )


def clean(text: str) -> str:
    """Whole lines without NUL, terminal control sequences (real or as pasted) and what Markdown, HTML or a word
    processor made of them."""
    if "\0" in text:
        text = text.replace("\0", "")
    if "\x1b" in text:
        text = _pattern("ansi").sub("", text)
    if "^[[" in text or "#033[" in text or "\u241b[" in text or ("\\" in text and _pattern("escaped").search(text)):
        text = _pattern("caret_line").sub(_without_carets, text)
    if "^M" in text:
        text = _pattern("caret_cr").sub("\r", text)
    if "[0m" in text or "[0;0m" in text:
        text = _pattern("bare_line").sub(lambda match: _pattern("bare").sub("", match[0]), text)
    if not text.isascii() and any(character in text for character in _TYPED):
        text = _pattern("typography").sub(lambda match: _TYPED[match[0]], text)
    if "<" in text and ("</" in text or "<br" in text or "<pre" in text):
        text = _pattern("tagged_line").sub(_without_tags, text)
    for _ in range(_ESCAPED if "&" in text else 0):
        if _pattern("entity").search(text):
            import html

            text = _pattern("entity").sub(lambda match: html.unescape(match[0]), text)
    if "\\_" in text:
        text = _pattern("escaped_word").sub("_", text)
    if "\\[" in text:
        text = _pattern("escaped_stamp").sub(r"[\1]", text)
    return text


def _without_carets(match: re.Match[str]) -> str:
    line = _pattern("caret").sub("", match[0])
    return line.replace("^M", "\r").replace("^@", "")


def _without_tags(match: re.Match[str]) -> str:
    line = _pattern("tag_head").sub("", _pattern("tag").sub("", match[0]))
    return _pattern("tag_tail").sub("", line)


_TYPED = {
    **dict.fromkeys("\u2018\u2019", "'"), **dict.fromkeys("\u201c\u201d", '"'), **dict.fromkeys("\xa0\u202f", " "),
    **dict.fromkeys("\u200b\u200e\u2028\u2060\ufeff", ""),
}  # fmt: skip
"""Quotes and blanks of word processors and chats, and what was typed; characters that show nothing are left out."""
_ESCAPED = 2
"""How often entities are taken back: what was pasted escaped may have been escaped once more."""

_PATTERNS = {
    # CSI; OSC and APC (Buildkite's time marks) up to BEL or ST; two-character escapes
    "ansi": r"\x1b(?:\[[0-9;:?]*[ -/]*[@-~]|[\]_P^][^\x07\x1b\r\n]*(?:\x07|\x1b\\)?|[@-Z\\^`-~=>]|[()][A-Z0-9])",
    "escaped": r"\\(?:x1b|u001b|033)\[",
    "caret_line": r"(?m)^.*(?:\^|\\x1b|\\u001b|\\033|#033|\u241b)\[.*$",
    "caret_cr": r"(?m)\^M$",
    "caret": r"(?:(?:\^\[|\\x1b|\\u001b|\\033|#033|\u241b)|\[(?=\[))\[[0-9;]*[A-Za-z]",
    "bare_line": r"(?m)^.*\[0(?:;0)?m.*$",
    "bare": r"\[(?:\d{1,3}(?:;\d{1,3}){0,4})m",
    "entity": r"&(?:quot|apos|lt|gt|amp|nbsp|#39|#34|#x27|#x22|#60|#62);",
    "typography": f"[{''.join(_TYPED)}]",
    "tagged_line": r"(?m)^.*<(?:/span|br|/td|/div|/?pre|/p|/li|/code)\b.*$",
    "tag": r"</?span(?: [^<>\n]{0,300})?>",
    "tag_head": (
        r"^(?:[ \t]*<(?:!|/?(?:html|head|body|table|tbody|tr|td|div|pre|p|ol|ul|li|a|code)\b)[^<>\n]{0,300}>"
        r"(?:\d{1,7}(?=</))?)+"
    ),
    "tag_tail": r"(?:<br ?/?>|</(?:html|body|table|tbody|tr|td|div|pre|p|ol|ul|li|a|code)>)+[ \t]*$",
    "escaped_word": r"(?<=\w)\\_(?=\w)",
    "escaped_stamp": r"\\\[(\d{4}-\d\d-\d\d[^\]\\\n]{0,60})\\?\]",
}
_pattern = on_demand(_PATTERNS)
