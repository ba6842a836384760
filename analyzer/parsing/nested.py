"""Values with an inside: argument dumps and reprs, read by Lark (LALR) with ``grammars/python_value.lark``.

Whatever is wrong with a dump, the fields that can be read are: a broken field is kept as raw text and reading goes on
behind the next comma of the outermost brackets; a text that is cut off gives all that was complete before the cut. The
last number or name before a cut is not kept, for ``0.7`` may be the beginning of ``0.716``. Time is linear and depth
bounded.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

from analyzer import resources

if TYPE_CHECKING:
    from lark import Lark, Token

MOST_DEPTH = 100
"""Brackets within brackets that are read; deeper ones count as cut off."""

GRAMMAR = "python_value.lark"

_CLOSERS = {"OPEN_CALL": "CLOSE", "OPEN": "CLOSE", "OPEN_LIST": "CLOSE_LIST", "OPEN_DICT": "CLOSE_DICT"}
_CLOSING = frozenset(_CLOSERS.values())
_UNFINISHED = frozenset({"NUMBER", "BARE", "CONSTANT"})
_RUNS = frozenset({"FIELDS", "ENTRIES"})
_MOST_RETRIES = 20
_AWAITS_VALUE = frozenset({"KEYWORD", "COLON"})


@cache
def _parser() -> Lark:
    from analyzer.parsing.nested_values import Builder
    from analyzer.parsing.tables import load_lalr

    text = (resources.data_dir("grammars") / GRAMMAR).read_text(encoding="utf-8")
    return load_lalr(text, Builder(), lexer="basic", maybe_placeholders=False)


def parse_value(text: str) -> tuple[Any, bool]:
    """The value that ``text`` begins with, and whether all of it could be read.

    With brackets at the start, what follows the closing one is ignored. Otherwise the value is the first line: a list
    of ``key=value`` becomes a dict, anything else a text. A call ``Name(a=1, 2)`` becomes
    ``{"__class__": "Name", "a": 1, "__args__": [2]}``, a set a list, an enum member its value if that is a text, else
    its name; ``torch.`` before a bare name is dropped.
    """
    return _Reader(text).read()


class _Reader:
    """Feeds one text's tokens to the parser, and mends what the text lacks."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._parser = _parser().parse_interactive(text)
        self._state = self._parser.parser_state
        self._pushed: list[Token] = []  # tokens to be read again, the next one last
        self._tokens: Iterator[Token] = self._parser.lexer_thread.lex(self._state)  # type: ignore[no-untyped-call]
        self._open: list[str] = []  # the closers that are awaited
        self._bracketed = False  # whether the text begins with a bracket, which then holds the fields
        self._complete = True
        self._retries = 0
        self._begin_field()

    def read(self) -> tuple[Any, bool]:
        """See ``parse_value``."""
        first, keyed = True, False
        while (token := self._next()) is not None:
            kind = token.type
            if first:
                first, self._bracketed = False, kind in _CLOSERS or kind == "NUMBERS"
            elif not self._open and (self._bracketed or self._ends_before(token)):
                break
            if not self._open and kind in _CLOSING and keyed and self._ends_line(token):
                break  # vLLM up to 0.6 closes its list of fields with a bracket that nothing opens
            keyed = keyed or kind in ("KEYWORD", "FIELDS")
            if len(self._open) >= MOST_DEPTH and kind in _CLOSERS:
                break
            if self._open and kind in _UNFINISHED and token.end_pos == len(self._text):
                break
            self._take(token)
        return self._finish()

    def _next(self) -> Token | None:
        return self._pushed.pop() if self._pushed else next(self._tokens, None)

    def _ends_before(self, token: Token) -> bool:
        """Whether a list of fields without brackets around it has ended before ``token``."""
        closed = bool(self._field) and self._field[-1].type in _CLOSING
        return (token.line or 1) > 1 or (closed and token.type != "COMMA")

    def _ends_line(self, token: Token) -> bool:
        """Whether nothing follows ``token`` on its line."""
        return not self._text[token.end_pos :].split("\n", 1)[0].strip()

    def _begin_field(self) -> None:
        """Remembers the parser's state at the start of a field of the outermost brackets."""
        self._saved = list(self._state.state_stack), list(self._state.value_stack)
        self._depth = len(self._open)
        self._field: list[Token] = []

    def _take(self, token: Token) -> None:
        """Feeds ``token``; where it does not fit, skips the rest of the field and keeps that as raw text."""
        if not self._feed(token):
            self._complete = False
            end = self._skip_field(token)
            if end is not None:
                self._take(end)
            return
        kind = token.type
        self._field.append(token)
        if kind in _CLOSERS:
            self._open.append(_CLOSERS[kind])
        elif kind in _CLOSING:
            self._open.pop()
        elif kind in ("CUT", "CUT_STRING"):
            self._complete = False
        if len(self._open) == self._bracketed and (kind == "COMMA" or (self._bracketed and kind in _CLOSERS)):
            self._begin_field()

    def _feed(self, token: Token) -> bool:
        from lark.exceptions import UnexpectedToken

        try:
            self._state.feed_token(token)
        except UnexpectedToken:
            return False
        return True

    def _skip_field(self, token: Token) -> Token | None:
        """Replaces the present field by its key and raw text. Returns the token that ends it; None if the text ends."""
        head = self._head()
        start = self._field[0].start_pos if self._field else token.start_pos
        if head:
            start = head[-1].end_pos
        end, stop = self._find_end(token)
        self._state.state_stack[:], self._state.value_stack[:] = self._saved
        del self._open[self._depth :]
        for part in head:
            self._feed(part)
        raw = self._text[start : len(self._text) if end is None else end.start_pos].strip()
        self._feed(type(token)("BARE" if raw and not stop else "CUT", raw))
        self._field = head
        return end

    def _head(self) -> list[Token]:
        """The tokens of the present field that are its key."""
        if self._field and self._field[0].type == "KEYWORD":
            return self._field[:1]
        return self._field[:2] if len(self._field) > 1 and self._field[1].type == "COLON" else []

    def _find_end(self, token: Token) -> tuple[Token | None, bool]:
        """The token that ends the present field, and whether the text ended first, inside brackets."""
        inner, outer = self._open[self._depth :], self._open[: self._depth]
        skipped: list[Token] = []
        following: Token | None = token
        while following is not None and len(inner) <= MOST_DEPTH:
            kind = following.type
            skipped.append(following)
            if kind in _RUNS and not inner and (comma := self._split(following)):
                return comma, False
            if kind in _CLOSERS:
                inner.append(_CLOSERS[kind])
            elif kind in inner:
                while inner.pop() != kind:
                    pass
            elif not inner and (kind == "COMMA" or (outer and kind == outer[-1])):
                return following, False
            following = self._next()
        return self._first_comma(skipped)

    def _split(self, run: Token) -> Token | None:
        """The comma behind the first of several simple fields; the others are read again."""
        from analyzer.parsing.nested_values import first_field_end

        end = first_field_end(run)
        if end == len(run):
            return None
        start = (run.start_pos or 0) + end
        self._pushed.append(self._made(run.type, run[end + 2 :], start + 2, run.line))
        return self._made("COMMA", ",", start, run.line)

    def _first_comma(self, skipped: list[Token]) -> tuple[Token | None, bool]:
        """As ``_find_end`` where a bracket was opened that nothing closes: any comma will do, a few times."""
        self._retries += 1
        comma = next((at for at, token in enumerate(skipped) if token.type == "COMMA"), None)
        if comma is None or self._retries > _MOST_RETRIES:
            return None, bool(self._open)
        self._pushed += reversed(skipped[comma + 1 :])
        return skipped[comma], False

    def _finish(self) -> tuple[Any, bool]:
        """Closes what is open and returns the result."""
        if not self._field and not self._open and not self._state.value_stack:
            return None, False
        self._complete = self._complete and not self._open
        if self._field and self._field[-1].type in _AWAITS_VALUE:
            self._complete = False
            self._feed(self._made("CUT"))
        for closer in reversed(self._open):
            if not self._feed(self._made(closer)):
                self._feed(self._made("CUT"))
                self._feed(self._made(closer))
        return self._parser.feed_eof(), self._complete  # type: ignore[no-untyped-call]

    @staticmethod
    def _made(kind: str, text: str = "", start: int | None = None, line: int | None = None) -> Token:
        """A token that the lexer did not make; by default one that the text lacks."""
        from lark import Token

        return Token(kind, text, start, line, end_pos=None if start is None else start + len(text))
