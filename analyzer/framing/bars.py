"""tqdm progress bars: frames glued to one another and to the text that follows them."""

from __future__ import annotations

import re
from functools import cache

_FRAME = r"\d{1,3}%(?: Completed \||\|[^|\n]{0,600}\|)? *[\d.]+[kKMGT]?i?B?/[\d.]+[kKMGT]?i?B? \[[^\]\n]{0,300}\]"


@cache
def _frame() -> re.Pattern[str]:
    return re.compile(_FRAME)


def split(text: str) -> tuple[list[str], str] | None:
    """The frames at the front of ``text``, each with its description, and the text behind the last; None if none."""
    if "[" not in text or "/" not in text:
        return None
    frames: list[str] = []
    at = 0
    for match in _frame().finditer(text):
        frames.append(text[at : match.end()].strip())
        at = match.end()
    return (frames, text[at:]) if frames else None
