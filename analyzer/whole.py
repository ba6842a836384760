"""Files that are whole or absent: written beside their place, then renamed, so that no reader meets half of one."""

from __future__ import annotations

import errno
import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from analyzer.errors import OutputError

SCRAP = ".part"
"""The ending of what is being written; what a killed process left ends in it too."""
_FULL = 64 << 10
"""Bytes: with less room than this a writer's unclear error is taken for a full disk."""


def check_place(path: Path, inputs: Iterable[str] = ()) -> None:
    """Raises ``OutputError`` where no file can be put at ``path``, or where it is one of ``inputs``.

    Asked before a long input is read: what is wrong with the place is known by then.
    """
    reason = None
    with suppress(OSError, ValueError):  # whatever the system has against the name is said when it is written
        if path.is_dir():
            reason = os.strerror(errno.EISDIR)
        elif not path.parent.is_dir():
            reason = os.strerror(errno.ENOENT)
        elif not os.access(path.parent, os.W_OK | os.X_OK):
            reason = os.strerror(errno.EACCES)
    if reason is not None:
        raise OutputError(f"{path} cannot be written: {reason}")
    for name in inputs:
        with suppress(OSError, ValueError):
            if path.samefile(name):
                raise OutputError(f"{path} is the input itself: give the output another name")


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A place to write to, beside ``path``, which it becomes when the block ends.

    Whatever goes wrong in the block, an interrupt too, leaves ``path`` as it was and nothing beside it. Raises
    ``OutputError`` if it cannot be written.
    """
    part = Path()
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:100]}.", suffix=SCRAP)
        part = Path(name)
        os.fchmod(handle, 0o666 & ~_umask())
        os.close(handle)
        yield part
        part.replace(path)
    except BaseException as error:
        reason = _reason(error, path.parent)
        if part.name:
            part.unlink(missing_ok=True)
        if reason is not None:
            raise OutputError(f"{path} cannot be written: {reason}") from None
        raise


@contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """A folder beside ``folder``, which must not exist, and which it becomes when the block ends.

    Whatever goes wrong leaves nothing of it. Raises ``OutputError`` if it exists or cannot be written.
    """
    if folder.exists():
        raise OutputError(f"{folder} exists already: give the name of a folder that does not")
    place = Path()
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        place = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name[:100]}.", suffix=SCRAP))
        place.chmod(0o777 & ~_umask())
        yield place
        place.rename(folder)
    except BaseException as error:
        reason = _reason(error, folder.parent)
        if place.name:
            shutil.rmtree(place, ignore_errors=True)
        if reason is not None:
            raise OutputError(f"{folder} cannot be written: {reason}") from None
        raise


def write_whole(path: Path, content: bytes) -> None:
    """Puts ``content`` at ``path``, whole or not at all. Raises ``OutputError`` if it cannot be written."""
    with replacing(path) as part:
        part.write_bytes(content)


def _reason(error: BaseException, folder: Path) -> str | None:
    """Why the system refused, if ``error`` is of the system or of a writer of tables that hides what it said."""
    wrapped = re.search(r"([^:]+?) \(os error \d+\)", str(error))
    if wrapped is not None:
        return wrapped[1].strip()
    if isinstance(error, OSError):
        return error.strerror or str(error)
    if type(error).__module__.startswith("polars") and folder.exists():  # "Invalid thrift" on a full disk
        full = shutil.disk_usage(folder).free < _FULL
        return os.strerror(errno.ENOSPC) if full else str(error).partition("\n")[0]
    return None


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
