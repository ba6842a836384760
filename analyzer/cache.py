"""A small cache for what is costly to derive from shipped text files (lowered grammars, compiled rules).

The key is the content of the inputs, so a stale entry cannot be read. Entries are JSON: reading one never runs code.
A cache that cannot be written is no error; the value is then derived anew at each start.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from analyzer import __version__


def cache_dir() -> Path:
    """The folder for cached values: ``$KVAUTOPSY_CACHE``, else ``$XDG_CACHE_HOME/kvautopsy``, else ``~/.cache/…``."""
    if place := os.environ.get("KVAUTOPSY_CACHE"):
        return Path(place)
    base = os.environ.get("XDG_CACHE_HOME")
    try:
        return (Path(base) if base else Path.home() / ".cache") / "kvautopsy"
    except RuntimeError:  # no home folder is known
        return Path(tempfile.gettempdir()) / "kvautopsy"


def fingerprint(contents: Iterable[bytes], *, salt: str = "") -> str:
    """A hexadecimal digest of ``contents`` in order, of the program's version and of ``salt``."""
    digest = hashlib.sha256(f"{__version__}\0{salt}\0".encode())
    for content in contents:
        digest.update(len(content).to_bytes(8, "little"))
        digest.update(content)
    return digest.hexdigest()[:32]


def cached(name: str, key: str, build: Callable[[], Any]) -> Any:
    """The JSON value stored under ``name`` and ``key``; derived with ``build()`` and stored if there is none."""
    path = cache_dir() / f"{name}-{key}.json"
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError):
        pass
    value = build()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=path.parent, suffix=".part", delete=False, encoding="utf-8") as part:
            json.dump(value, part, separators=(",", ":"))
        Path(part.name).replace(path)
    except OSError:
        pass
    return value
