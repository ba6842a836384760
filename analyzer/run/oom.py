"""Whose memory it was when a device ran out of it: what torch's sentence says of the device and of the own process.

``CUDA out of memory. Tried to allocate 1.02 GiB. GPU 0 has a total capacity of 15.47 GiB of which 857.31 MiB is free.
Including non-PyTorch memory, this process has 14.61 GiB memory in use.`` (torch from 2.1; HIP and XPU say so, too)
``NPU out of memory. Tried to allocate 22.00 MiB (NPU 0; 60.97 GiB total capacity; 10.24 GiB already allocated; 19.52
MiB free; 10.65 GiB reserved in total by PyTorch)`` (older torch, and torch_npu): here what the driver and the
collectives hold for the process is not counted, so that only a large rest speaks of others.
"""

from __future__ import annotations

import re

from analyzer.run.facts import Facts, Where

_SIZE = r"(\d+(?:\.\d+)?) (bytes|[KMGT]iB)"
_NEWER = re.compile(
    rf"total capacity of {_SIZE} of which {_SIZE} is free\.(?:(?!Including)[^\n]){{0,2000}}"
    rf"(?:Including non-PyTorch memory, )?this process has {_SIZE} memory in use"
)
_OLDER = re.compile(
    rf"; {_SIZE} total capacity; [^\n)]{{0,120}}?(?:; |\b){_SIZE} free; {_SIZE} reserved in total by PyTorch"
)
_UNITS = {"bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
_UNCOUNTED = 4 << 30
"""What a driver's context and the buffers of collectives may hold for a process beside its allocator."""


def write_oom(message: str, where: tuple[Where, ...], facts: Facts) -> None:
    """``oom.total``, ``oom.free``, ``oom.own`` and ``oom.foreign`` (bytes) of an out-of-memory ``message``."""
    newer = _NEWER.search(message)
    found = newer or _OLDER.search(message)
    if found is None:
        return
    values = found.groups()
    total, free, own = (float(values[i]) * _UNITS[values[i + 1]] for i in (0, 2, 4))
    foreign = total - free - own - (0 if newer else _UNCOUNTED)
    for name, value in (("total", total), ("free", free), ("own", own), ("foreign", max(0.0, foreign))):
        facts.add(f"oom.{name}", value, where, rank="")
