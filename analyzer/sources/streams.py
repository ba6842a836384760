"""Byte streams read forwards: peeking at the first bytes, decompressing, turning UTF-16 into UTF-8."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from analyzer.errors import UserError
from analyzer.sources.limits import CHUNK, Meter

_MAGIC = ((b"\x1f\x8b", "gzip"), (b"BZh", "bzip2"), (b"\xfd7zXZ\x00", "xz"), (b"\x28\xb5\x2f\xfd", "Zstandard"))
_TAR_MAGIC = slice(257, 262)
_PEEK = 512


class Readable(Protocol):
    """Anything with ``read(size)``."""

    def read(self, size: int = -1, /) -> bytes:
        """At most ``size`` bytes; none at the end."""
        ...


class Peekable(io.RawIOBase):
    """A forward stream whose first bytes can be looked at; counts what was read."""

    def __init__(self, stream: Readable, *, on_read: Callable[[int], None] | None = None) -> None:
        super().__init__()
        self._stream = stream
        self._on_read = on_read
        self._head = b""

    def peek(self, size: int = _PEEK) -> bytes:
        """The first ``size`` bytes (fewer in a shorter stream), which stay to be read."""
        while len(self._head) < size:
            data = self._next(size - len(self._head))
            if not data:
                break
            self._head += data
        return self._head[:size]

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def read(self, size: int = -1, /) -> bytes:
        """At most ``size`` bytes; all there is for a negative ``size``."""
        if size < 0:
            return b"".join(iter(lambda: self.read(CHUNK), b""))
        if self._head:
            data, self._head = self._head[:size], self._head[size:]
            return data
        return self._next(size)

    def _next(self, size: int) -> bytes:
        data = self._stream.read(size) or b""
        if self._on_read is not None:
            self._on_read(len(data))
        return data


def compression(head: bytes) -> str:
    """The name of the compression that a stream begins with, ``""`` for none."""
    return next((kind for magic, kind in _MAGIC if head.startswith(magic)), "")


def is_tar(head: bytes) -> bool:
    """Whether a stream begins with a tar header."""
    return head[_TAR_MAGIC] == b"ustar"


def is_zip(head: bytes) -> bool:
    """Whether a stream begins with a zip member."""
    return head.startswith((b"PK\x03\x04", b"PK\x05\x06"))


def decompressed(stream: Peekable, kind: str, meter: Meter) -> Peekable:
    """``stream`` without its compression; streams one after the other are read as one."""

    def taken(count: int) -> None:
        meter.taken += count

    counted: Any = Peekable(stream, on_read=taken)
    inner: Any
    if kind == "gzip":
        import gzip

        inner = gzip.GzipFile(fileobj=counted, mode="rb")
    elif kind == "bzip2":
        import bz2

        inner = bz2.BZ2File(counted)
    elif kind == "xz":
        import lzma

        inner = lzma.LZMAFile(counted)  # noqa: SIM115  (it is handed on, and closes with the source)
    else:
        inner = _Zstandard(counted)
    return Peekable(_Checked(inner, kind, meter), on_read=meter.give)


def is_binary(head: bytes) -> bool:
    """Whether a stream begins like no log: NUL in the middle of its first bytes, and no mark of UTF-16.

    A log that was truncated while open begins with NULs only, so those at the ends do not count. Journald's export
    format puts numbers of eight bytes before values that are no text.
    """
    return b"\0" in head.strip(b"\0") and not head.startswith((b"\xff\xfe", b"\xfe\xff", b"__CURSOR="))


class _Zstandard:
    """A Zstandard stream of any number of frames that notices when the last one is cut (the library's reader does not).

    Input goes in by small steps, since one step of a bomb can give 30,000 times its size.
    """

    _STEP = 1024
    _LARGEST_WINDOW = 1 << 27

    def __init__(self, stream: Readable) -> None:
        import zstandard

        self._stream = stream
        self._fresh = zstandard.ZstdDecompressor(max_window_size=self._LARGEST_WINDOW).decompressobj
        self._frame: Any = None
        self._input = b""
        self._output = io.BytesIO()

    def read(self, size: int = -1, /) -> bytes:
        while not (data := self._output.read(size)):
            if not self._input:
                self._input = self._stream.read(16 * self._STEP)
                if not self._input:
                    if self._frame is not None:
                        raise EOFError
                    return b""
            step, self._input = self._input[: self._STEP], self._input[self._STEP :]
            self._frame = self._frame or self._fresh()
            self._output = io.BytesIO(self._frame.decompress(step))
            if self._frame.eof:
                self._input = self._frame.unused_data + self._input
                self._frame = None
        return data


class _Checked:
    """A decompressor whose complaints become sentences."""

    def __init__(self, inner: Readable, kind: str, meter: Meter) -> None:
        # `read` of the standard library's files fills its buffer, and loses it when the data then ends too early.
        self._read: Callable[[int], bytes] = getattr(inner, "read1", inner.read)
        self._kind = kind
        self._meter = meter

    def read(self, size: int = -1, /) -> bytes:
        try:
            return self._read(size)
        except UserError:
            raise
        except EOFError:
            raise UserError(
                f"{self._meter.name}: the {self._kind} data ends too early: the file was cut", status=3
            ) from None
        except Exception as error:  # each library has its own kinds of errors for damaged data
            raise UserError(f"{self._meter.name}: damaged {self._kind} data ({error})", status=3) from error


def text_chunks(stream: Peekable) -> Iterator[bytes]:
    """The stream in pieces of at most ``CHUNK`` bytes; UTF-16 with a byte order mark becomes UTF-8."""
    head = stream.peek(2)
    pieces = iter(lambda: stream.read(CHUNK), b"")
    if head not in (b"\xff\xfe", b"\xfe\xff"):
        yield from pieces
        return
    import codecs

    decoder = codecs.getincrementaldecoder("utf-16")(errors="backslashreplace")
    for piece in pieces:
        yield decoder.decode(piece).encode("utf-8", "backslashreplace")
    yield decoder.decode(b"", final=True).encode("utf-8", "backslashreplace")
