"""The parse tables of a Lark grammar, kept between starts: to derive them takes longer than to read a log with them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from analyzer.cache import cached, fingerprint

if TYPE_CHECKING:
    from lark import Lark

_INT_KEYS = "\0int"
"""Marks a mapping by whole numbers, which JSON does not have."""


def load_lalr(grammar: str, transformer: Any, **options: Any) -> Lark:
    """``Lark(grammar, parser="lalr", transformer=transformer, **options)``, from its tables if they are kept.

    What a kept file holds is data: states, rules and terminals, never code. One that does not fit is made anew.
    """
    import lark

    def derive() -> Any:
        made = lark.Lark(grammar, parser="lalr", **options)
        data, memo = made.memo_serialize([lark.lexer.TerminalDef, lark.grammar.Rule])
        return _packed({"data": data, "memo": memo.serialize() if hasattr(memo, "serialize") else memo})

    try:
        kept = cached(
            "lalr", fingerprint([grammar.encode()], salt=f"{lark.__version__} {sorted(options.items())}"), derive
        )
        # the way of Lark's own stand-alone parsers; ``Lark.load`` is the same with a pickle around it
        return lark.Lark.__new__(lark.Lark)._load(_unpacked(kept), transformer=transformer)
    except (AttributeError, KeyError, TypeError, ValueError, IndexError, AssertionError):
        return lark.Lark(grammar, parser="lalr", transformer=transformer, **options)


def _packed(value: Any) -> Any:
    """``value`` with mappings by whole numbers as lists of pairs."""
    if isinstance(value, dict):
        if any(isinstance(key, int) for key in value):
            return {_INT_KEYS: [[key, _packed(item)] for key, item in value.items()]}
        return {key: _packed(item) for key, item in value.items()}
    return [_packed(item) for item in value] if isinstance(value, list | tuple | set | frozenset) else value


def _unpacked(value: Any) -> Any:
    if isinstance(value, dict):
        if _INT_KEYS in value:
            return {key: _unpacked(item) for key, item in value[_INT_KEYS]}
        return {key: _unpacked(item) for key, item in value.items()}
    return [_unpacked(item) for item in value] if isinstance(value, list) else value
