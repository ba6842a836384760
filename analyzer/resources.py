"""Where the shipped data (grammars, rules, samples) lies: inside the wheel, or at the top of a checkout."""

from __future__ import annotations

from pathlib import Path


def data_dir(name: str) -> Path:
    """The folder of shipped data called ``name`` (``grammars``, ``rules`` or ``samples``).

    Raises ``FileNotFoundError`` if neither the installed nor the checkout place holds it.
    """
    here = Path(__file__).resolve().parent
    for place in (here / "_data" / name, here.parent / name):
        if place.is_dir():
            return place
    raise FileNotFoundError(f"the shipped folder {name!r} is missing beside {here}: reinstall kvautopsy")
