"""Paths as the user gives them -> sources: files, ``-``, pipes, folders, archives, object stores.

Nothing is ever unpacked to disk, so names inside an archive cannot do harm. Members are read as they come by.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from analyzer.errors import UserError
from analyzer.sources.exports import entries_of_exports
from analyzer.sources.limits import DEFAULT, Limits, Meter
from analyzer.sources.newest_first import in_order
from analyzer.sources.own import is_report
from analyzer.sources.pipes import Interrupt, as_it_comes
from analyzer.sources.recordings import out_of_recordings
from analyzer.sources.remote import is_remote, objects, unreachable
from analyzer.sources.source import Source
from analyzer.sources.streams import Peekable, compression, decompressed, is_binary, is_tar, is_zip, text_chunks
from analyzer.sources.tables import rows_of_tables

_TAR_BLOCK = 512


def open_sources(
    paths: Iterable[str | os.PathLike[str]],
    *,
    limits: Limits = DEFAULT,
    keep_errors: bool = False,
    as_it_stands: bool = False,
    interrupt: Interrupt | None = None,
) -> Iterator[Source]:
    """The logs that ``paths`` name, in the order given; folders are walked in sorted order.

    Of a folder or an archive, hidden and binary members and this program's own reports are left out.

    What cannot be opened raises ``UserError`` with status 3; with ``keep_errors``, and below a folder, it becomes a
    source whose ``error`` is set and the next one follows. What log services export is read entry by entry, and a log
    that was printed newest first is turned round, unless ``as_it_stands``. A pipe ends once ``interrupt`` is asked.
    """
    for path in paths:
        name = os.fspath(path)
        try:
            for source in _open(name, limits, keep_errors, interrupt):
                yield source if source.error is not None else _read_out(source, turn=not as_it_stands)
        except UserError as error:
            if not keep_errors:
                raise
            yield Source(name, lambda: iter(()), error)


def _read_out(source: Source, *, turn: bool) -> Source:
    """``source`` with the lines in its entries; ``turn``: with its oldest line first."""
    notes: list[str] = []

    def read() -> Iterator[bytes]:
        notes.clear()
        pieces = out_of_recordings(source.chunks(), notes)
        entries = rows_of_tables(entries_of_exports(pieces, notes), notes)
        return in_order(entries, notes) if turn else entries

    return Source(source.name, read, notes=notes)


def _open(name: str, limits: Limits, keep_errors: bool, interrupt: Interrupt | None) -> Iterator[Source]:
    if not name:
        raise UserError("an empty name is no file: is a variable in your command unset?", status=3)
    if name == "-":
        if sys.stdin is None:
            raise UserError("standard input is closed: pipe a log in, or name a file", status=3)
        stream = _Complaining(as_it_comes(sys.stdin.buffer, interrupt), "<stdin>")
        yield from _unpack("<stdin>", Peekable(stream), Meter("<stdin>", limits))
    elif is_remote(name):
        yield from _remote(name, limits, keep_errors)
    elif _is_folder(name):
        for file, error in walk(Path(name)):
            try:
                if error is not None:
                    raise error
                yield from _file(str(file), limits, named_by_user=False)
            except UserError as reason:
                yield Source(str(file), lambda: iter(()), reason)
    else:
        yield from _file(name, limits, interrupt)


def _is_folder(name: str) -> bool:
    try:
        return Path(name).is_dir()
    except OSError as error:  # a name longer than any file's
        raise _unreadable(name, error) from error


def walk(folder: Path) -> Iterator[tuple[Path, UserError | None]]:
    """The regular files below ``folder`` in sorted order; hidden ones are left out, a loop of links is entered once.

    A folder below it that cannot be read is among them, with the error that says so.
    """
    seen: set[tuple[int, int]] = set()

    def inside(place: Path) -> Iterator[tuple[Path, UserError | None]]:
        try:
            mark = place.stat()
            if (mark.st_dev, mark.st_ino) in seen:
                return
            seen.add((mark.st_dev, mark.st_ino))
            entries = sorted(place.iterdir())
        except OSError as error:
            if place == folder:
                raise _unreadable(str(place), error) from error
            yield place, _unreadable(str(place), error)
            return
        for entry in entries:
            if entry.name.startswith("."):
                continue
            if entry.is_dir():
                yield from inside(entry)
            elif entry.is_file():
                yield entry, None

    yield from inside(folder)


def _file(
    name: str, limits: Limits, interrupt: Interrupt | None = None, *, named_by_user: bool = True
) -> Iterator[Source]:
    try:
        mode = Path(name).stat().st_mode
    except OSError as error:
        raise _unreadable(name, error) from error
    if stat.S_ISBLK(mode) or stat.S_ISSOCK(mode):
        raise UserError(f"{name}: neither a file, a pipe nor a folder", status=3)

    def opened() -> Any:
        try:
            return Path(name).open("rb", buffering=0)
        except OSError as error:
            raise _unreadable(name, error) from error

    if stat.S_ISREG(mode):
        yield from _reopenable(name, opened, limits, named_by_user)
    else:  # a pipe or a terminal can be read once, so it stays open until it was read
        stream = _Complaining(as_it_comes(opened(), interrupt), name)
        yield from _unpack(name, Peekable(stream), Meter(name, limits))


def _remote(name: str, limits: Limits, keep_errors: bool) -> Iterator[Source]:
    for found in objects(name):
        try:
            yield from _reopenable(found.name, found.open, limits, found.named_by_user)
        except UserError as error:
            if not keep_errors:
                raise
            yield Source(found.name, lambda: iter(()), error)


def _reopenable(name: str, opened: Callable[[], Any], limits: Limits, named_by_user: bool) -> Iterator[Source]:
    """The logs in a file that can be opened again for each reading."""

    def again() -> Iterator[bytes]:
        with opened() as file:
            stream, meter = Peekable(_Complaining(file, name)), Meter(name, limits)
            while kind := compression(stream.peek()):
                stream = decompressed(stream, kind, meter)
            yield from text_chunks(stream)

    with opened() as file:
        meter = Meter(name, limits, named_by_user=named_by_user)
        yield from _unpack(name, Peekable(_Complaining(file, name)), meter, again=again)


def _unpack(
    name: str, stream: Peekable, meter: Meter, depth: int = 0, again: Callable[[], Iterator[bytes]] | None = None
) -> Iterator[Source]:
    """The logs in ``stream``: itself, or what its compression or archive holds."""
    head = stream.peek()
    kind = compression(head)
    if not kind and not is_tar(head) and not is_zip(head):
        if is_report(head):
            if meter.named_by_user:
                raise UserError(f"{name}: a report that kvautopsy wrote; give the log itself", status=3)
            return
        if meter.named_by_user or not is_binary(head):
            yield Source(name, again or (lambda: text_chunks(stream)))
        return
    if depth >= meter.limits.depth:
        raise UserError(f"{name}: more than {meter.limits.depth} layers of compression, which is the limit", status=3)
    if kind:
        yield from _unpack(name, decompressed(stream, kind, meter), meter, depth + 1, again)
    elif is_tar(head):
        yield from _tar(name, stream, meter, depth + 1)
    else:
        yield from _zip(name, stream, meter, depth + 1)


def _tar(name: str, stream: Peekable, meter: Meter, depth: int) -> Iterator[Source]:
    import tarfile

    try:
        with tarfile.open(fileobj=stream, mode="r|") as archive:
            for member in archive:
                meter.member()
                inner = archive.extractfile(member) if member.isreg() else None
                if inner is None or _hidden(member.name):
                    continue
                yield from _unpack(f"{name}!{member.name}", Peekable(_Member(inner, name)), meter, depth)
                archive.members.clear()  # type: ignore[attr-defined]  # else each member's header stays in memory
    except (tarfile.TarError, EOFError) as error:
        raise UserError(f"{name}: damaged tar archive ({error})", status=3) from error


def _zip(name: str, stream: Peekable, meter: Meter, depth: int) -> Iterator[Source]:
    """A zip archive: its directory is at the end, so a pipe or an inner archive is kept in a bounded spool first."""
    import shutil
    import tempfile
    import zipfile

    with tempfile.SpooledTemporaryFile(max_size=64 << 20) as spool:
        shutil.copyfileobj(stream, spool, 1 << 20)
        meter.taken += spool.tell()
        try:
            with zipfile.ZipFile(spool) as archive:
                for member in sorted(archive.infolist(), key=lambda item: item.filename):
                    meter.member()
                    if member.is_dir() or _hidden(member.filename):
                        continue
                    if member.flag_bits & 1:
                        raise UserError(f"{name}!{member.filename}: encrypted; unpack it first", status=3)
                    with archive.open(member) as inner:
                        yield from _unpack(
                            f"{name}!{member.filename}",
                            Peekable(_Member(inner, name), on_read=meter.give),
                            meter,
                            depth,
                        )
        except (zipfile.BadZipFile, NotImplementedError) as error:
            raise UserError(f"{name}: damaged or unknown zip archive ({error})", status=3) from error


def _hidden(member: str) -> bool:
    return any((part.startswith(".") and part not in (".", "..")) or part == "__MACOSX" for part in member.split("/"))


class _Complaining:
    """A file whose read errors are sentences."""

    def __init__(self, stream: Any, name: str) -> None:
        self._stream = stream
        self._name = name

    def read(self, size: int = -1, /) -> bytes:
        try:
            data: bytes | None = self._stream.read(size)
        except OSError as error:
            raise _unreadable(self._name, error) from error
        except Exception as error:  # an object store's own kinds of errors
            raise unreachable(self._name, error) from error
        return data or b""


class _Member:
    """A member of an archive whose damage is told in a sentence."""

    def __init__(self, stream: Any, name: str) -> None:
        self._stream = stream
        self._name = name

    def read(self, size: int = -1, /) -> bytes:
        try:
            data: bytes = self._stream.read(size)
        except UserError:
            raise
        except Exception as error:  # TarError, BadZipFile, zlib.error, EOFError, LZMAError
            raise UserError(f"{self._name}: damaged archive ({error})", status=3) from error
        return data


def _unreadable(name: str, error: OSError) -> UserError:
    reason = {
        FileNotFoundError: "no such file or folder",
        PermissionError: "permission denied",
        IsADirectoryError: "is a folder",
    }.get(type(error), error.strerror or str(error))
    return UserError(f"{name}: {reason}", status=3)
