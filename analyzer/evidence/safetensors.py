"""Headers of safetensors files: names, types, shapes and sizes of the tensors, never their data.

The format (public specification): eight bytes of little-endian header length, that many bytes of JSON, then the data.
The JSON maps a tensor's name to ``dtype``, ``shape`` and ``data_offsets`` (relative to the end of the header). Nothing
here trusts a figure in the file: the header must fit into the file, a tensor's bytes must equal its shape times its
element size, and what reaches beyond the end of the file is reported as cut off. Sparse files need no special care,
because data is never read.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO

MAX_HEADER = 100_000_000
"""The longest header that the format's own reader accepts, in bytes."""

BITS: dict[str, int] = {
    "BOOL": 8, "U8": 8, "I8": 8, "I16": 16, "U16": 16, "I32": 32, "U32": 32, "I64": 64, "U64": 64,
    "F16": 16, "BF16": 16, "F32": 32, "F64": 64, "F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8,
    "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8, "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "C64": 64,
}  # fmt: skip
"""Element sizes in bits."""


class HeaderError(ValueError):
    """A file whose header cannot be believed. The message is one sentence that names what is wrong."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """One tensor as a header declares it. ``bytes`` is what it takes in the file."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    bytes: int
    file: str
    missing_bytes: int = 0
    """Bytes that lie beyond the end of the file (a shard that was cut off)."""


@dataclass(frozen=True, slots=True)
class Shard:
    """One safetensors file. ``problems`` are contradictions that do not make the rest unreadable, a sentence each."""

    name: str
    tensors: tuple[Tensor, ...]
    metadata: dict[str, str]
    problems: tuple[str, ...] = ()

    @property
    def cut(self) -> bool:
        """True if the file is shorter than its header says."""
        return any(t.missing_bytes for t in self.tensors)


def read_shard(path: Path) -> Shard:
    """The header of ``path``. Raises ``HeaderError`` if it cannot be believed, ``OSError`` if it cannot be read."""
    if not path.is_file():  # a pipe or a device would block, or never end
        raise HeaderError(f"{path.name} is not a regular file")
    with path.open("rb") as file:
        size = path.stat().st_size
        header = _header_bytes(file, size, path.name)
    entries = _decode(header, path.name)
    metadata = entries.pop("__metadata__", {})
    data_start = 8 + len(header)
    problems: list[str] = []
    tensors = [_tensor(name, entry, path.name, size - data_start, problems) for name, entry in entries.items()]
    spans = sorted((e["data_offsets"] for e in entries.values()), key=lambda span: span[0])
    if any(later[0] < earlier[1] for earlier, later in pairwise(spans)):
        problems.append(f"{path.name}: tensors overlap")
    end = max((span[1] for span in spans), default=0)
    if end < size - data_start:
        problems.append(f"{path.name}: {size - data_start - end:,} bytes at the end belong to no tensor")
    pairs = metadata.items() if isinstance(metadata, dict) else ()
    return Shard(
        path.name, tuple(tensors), {str(k): str(v) for k, v in pairs}, tuple(problems)
    )  # fmt: skip


def _header_bytes(file: BinaryIO, size: int, name: str) -> bytes:
    start = file.read(8)
    if len(start) < 8:
        raise HeaderError(f"{name} is {size} bytes long: too short for a safetensors file (a download cut off?)")
    if start.startswith(b"version "):
        raise HeaderError(f"{name} is a Git LFS pointer, not the tensors themselves: the download left it out")
    length = int.from_bytes(start, "little")
    if length > MAX_HEADER:
        raise HeaderError(f"{name} claims a header of {length:,} bytes, more than the format allows ({MAX_HEADER:,})")
    if 8 + length > size:
        raise HeaderError(f"{name} claims a header of {length:,} bytes, but the file holds only {size:,}")
    header = file.read(length)
    if len(header) != length:
        raise HeaderError(f"{name} ended while its header was read")
    return header


def _decode(header: bytes, name: str) -> dict[str, Any]:
    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        entries = dict(pairs)
        if len(entries) != len(pairs):
            raise HeaderError(f"{name} declares a name twice in its header")
        return entries

    try:
        entries = json.loads(header, object_pairs_hook=unique)
    except HeaderError:
        raise
    except (ValueError, RecursionError) as error:
        raise HeaderError(f"{name} has a header that is no valid JSON") from error
    if not isinstance(entries, dict):
        raise HeaderError(f"{name} has a header that is no JSON object")
    return entries


def _tensor(tensor: str, entry: Any, name: str, data_bytes: int, problems: list[str]) -> Tensor:
    try:
        dtype, shape, (begin, end) = entry["dtype"], entry["shape"], entry["data_offsets"]
        numbers = [*shape, begin, end]
    except (TypeError, KeyError, ValueError) as error:
        raise HeaderError(f"{name} describes tensor {tensor[:120]!r} without dtype, shape and data_offsets") from error
    fair = len(numbers) <= 34 and all(type(n) is int and 0 <= n < 1 << 63 for n in numbers)
    if not fair or begin > end:
        raise HeaderError(f"{name} gives tensor {tensor[:120]!r} an impossible shape or place")
    size = end - begin
    bits = BITS.get(str(dtype))
    expected = elements(shape) * bits // 8 if bits else size
    if expected != size:
        problems.append(f"{name}: {tensor[:120]} takes {size:,} bytes, its shape {shape} of {dtype} needs {expected:,}")
    missing = min(size, max(0, end - data_bytes))
    return Tensor(tensor, str(dtype), tuple(shape), size, name, missing)


def elements(shape: list[int] | tuple[int, ...]) -> int:
    """The number of elements of ``shape``; 1 for a scalar."""
    count = 1
    for length in shape:
        count *= length
    return count
