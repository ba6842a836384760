"""Engine versions: order, constraints, and what a bracket such as ``>=0.5.14, <=0.5.17`` decides (three-valued).

Read as ``major.minor.patch`` with ``dev`` < ``rc`` < final < ``post``; a local part (``+cu128``) does not count.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeAlias

Version: TypeAlias = tuple[tuple[int, ...], tuple[int, int], int, int]
"""Release; (phase, number) of a, b, rc or final; post number from 1, 0 without one; dev number, huge without one."""
_NO_DEV = 10**9

_VERSION = re.compile(
    r"v?(\d{1,6}(?:\.\d{1,6}){0,4})(?:[._-]?(a|alpha|b|beta|rc)[._-]?(\d{0,6}))?"
    r"(?:[._-]?post[._-]?(\d{0,6}))?(?:[._-]?dev[._-]?(\d{0,9}))?(?:\+[\w.]+)?$",
    re.IGNORECASE,
)
_PHASES = {"a": -3, "alpha": -3, "b": -2, "beta": -2, "rc": -1}
_CONSTRAINT = re.compile(r"(>=|<=|==|!=|<|>)\s*([^\s,<>=!]+)")


def parse_version(text: str) -> Version:
    """``"0.5.4.post1"`` as a key that sorts. Raises ``ValueError``."""
    match = _VERSION.match(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is no version")
    release = tuple(int(part) for part in match[1].split("."))
    while len(release) > 1 and release[-1] == 0:
        release = release[:-1]
    phase = (_PHASES[match[2].lower()], int(match[3] or 0)) if match[2] else (0, 0)
    post = int(match[4] or 0) + 1 if match[4] is not None else 0
    if match[5] is None:
        return release, phase, post, _NO_DEV
    if not match[2] and not post:  # a dev version of the release itself comes before its a, b and rc
        phase = (-4, 0)
    return release, phase, post, int(match[5] or 0)


def parse_constraint(text: str) -> list[list[list[str]]]:
    """``">=0.5.14 <0.5.18 or >=0.6"`` as alternatives of ``[sign, version]`` pairs. Raises ``ValueError``."""
    alternatives = []
    for part in re.split(r"\bor\b|\|\|", text):
        pairs = [[sign, version] for sign, version in _CONSTRAINT.findall(part)]
        if not pairs or _CONSTRAINT.sub("", part).strip(" ,"):
            raise ValueError(f"{text!r} is no version constraint (write it like '>=0.5.14 <0.5.18')")
        for _, version in pairs:
            parse_version(version)
        alternatives.append(pairs)
    return alternatives


def compare(version: str | None, bracket: Sequence[str] | None, sign: str, bound: str) -> bool | None:
    """Whether the version of a run satisfies ``sign bound``; None where the version or its bracket cannot tell."""
    try:
        if version:
            return _holds(parse_version(version), sign, parse_version(bound))
    except ValueError:
        pass
    low, high = _ends(bracket)
    key = parse_version(bound)
    match sign:
        case ">=" | "<":
            inside = _above(low, high, key, strict=False)
            return inside if sign == ">=" or inside is None else not inside
        case ">" | "<=":
            inside = _above(low, high, key, strict=True)
            return inside if sign == ">" or inside is None else not inside
        case _:
            if (low and low[0] > key) or (high and high[0] < key):
                return sign == "!="
            if low and high and low[0] == high[0] == key:
                return sign == "=="
            return None


def satisfies(version: str | None, bracket: Sequence[str] | None, alternatives: list[list[list[str]]]) -> bool | None:
    """Whether a run's version or bracket satisfies a parsed constraint; None where it cannot tell."""
    results = []
    for pairs in alternatives:
        parts = [compare(version, bracket, sign, bound) for sign, bound in pairs]
        results.append(False if False in parts else None if None in parts else True)
    return True if True in results else None if None in results else False


def _holds(version: Version, sign: str, bound: Version) -> bool:
    match sign:
        case ">=":
            return version >= bound
        case "<=":
            return version <= bound
        case ">":
            return version > bound
        case "<":
            return version < bound
        case "==":
            return version == bound
        case _:
            return version != bound


_End: TypeAlias = tuple[Version, bool]
"""An end of a bracket, and whether the end itself belongs to it."""


def _ends(bracket: Sequence[str] | None) -> tuple[_End | None, _End | None]:
    low: _End | None = None
    high: _End | None = None
    for part in bracket or ():
        for sign, bound in _CONSTRAINT.findall(part or ""):
            try:
                end = (parse_version(bound), "=" in sign)
            except ValueError:
                continue
            if sign in (">=", ">", "=="):
                low = end
            if sign in ("<=", "<", "=="):
                high = end
    return low, high


def _above(low: _End | None, high: _End | None, key: Version, *, strict: bool) -> bool | None:
    """Whether all (True), none (False) or some (None) of a bracket lies at or above ``key`` (``strict``: above it)."""
    if low is not None and (low[0] > key or (low[0] == key and not (strict and low[1]))):
        return True
    if high is not None and (high[0] < key or (high[0] == key and (strict or not high[1]))):
        return False
    return None
