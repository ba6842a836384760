"""A tiny file system of its own, for a disk that is really full."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_disk(place: Path, kilobytes: int) -> Iterator[Path]:
    """``place`` as a file system that holds ``kilobytes``. Skips the test where that may not be mounted."""
    place.mkdir(parents=True, exist_ok=True)
    if os.geteuid() != 0 or not _mount("-t", "tmpfs", "-o", f"size={kilobytes}k", "none", str(place)):
        pytest.skip("a file system can only be mounted by root")
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


def grow(place: Path, kilobytes: int) -> None:
    """Gives the file system at ``place`` more room."""
    assert _mount("-o", f"remount,size={kilobytes}k", str(place))


def _mount(*options: str) -> bool:
    try:
        return subprocess.run(["mount", *options], capture_output=True, check=False).returncode == 0
    except OSError:
        return False
