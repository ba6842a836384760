"""The witness nvidia-smi: a saved text (the table, or a CSV query) as device size and memory that others held."""

from __future__ import annotations

import re
from pathlib import Path

from analyzer.errors import UserError
from analyzer.run.facts import Fact, Where
from analyzer.units import MIB

_TABLE = re.compile(r"(\d{1,9})MiB\s*/\s*(\d{1,9})MiB")
_NAME = re.compile(r"^\|\s+(\d{1,3})\s+(\S.{0,60}?)\s{2,}(?:On|Off|N/A)\s", re.MULTILINE)
_QUERY = re.compile(
    r"^\s*(?:(\d{1,3}),\s*)?(?:([A-Za-z][^,\n]{0,80}),\s*)?"
    r"(\d{1,9})(?: MiB)?,\s*(\d{1,9})(?: MiB)?,\s*(\d{1,9})(?: MiB)?\s*$",
    re.MULTILINE,
)


def nvidia_smi_facts(path: Path) -> list[Fact]:
    """``gpu.total``, ``gpu.foreign`` (used before the server started, if it was saved then) and ``gpu.name``.

    Reads the ordinary table, or ``--query-gpu=[index,][name,]memory.used,memory.free,memory.total --format=csv``.
    Raises ``UserError`` (status 3) for another text.
    """
    try:
        with path.open("rb") as file:
            text = file.read(4 << 20).decode("utf-8", "replace")
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}", status=3) from None
    used: dict[str, float] = {}
    total: dict[str, float] = {}
    lines: dict[str, Where] = {}
    names = [m[2] for m in _NAME.finditer(text)]
    for index, match in enumerate(_TABLE.finditer(text)):
        _note(text, match, str(index), float(match[1]), float(match[2]), used, total, lines, path)
    if not total:
        for index, match in enumerate(_QUERY.finditer(text)):
            if match[2]:
                names.append(match[2].strip())
            _note(text, match, match[1] or str(index), float(match[3]), float(match[5]), used, total, lines, path)
    if not total:
        raise UserError(f"{path} is no nvidia-smi text: save the output of `nvidia-smi`", status=3)
    proof = tuple(lines.values())
    facts = [
        Fact("gpu.total", min(total.values()), "bytes", proof, total, "argument"),
        Fact("gpu.foreign", max(used.values()), "bytes", proof, used, "argument"),
    ]
    if names:
        facts.append(Fact("gpu.name", names[0], "name", proof[:1], origin="argument"))
    return facts


def _note(
    text: str, match: re.Match[str], index: str, used_mib: float, total_mib: float,
    used: dict[str, float], total: dict[str, float], lines: dict[str, Where], path: Path,
) -> None:  # fmt: skip
    used[index], total[index] = used_mib * MIB, total_mib * MIB
    start = text.rfind("\n", 0, match.start()) + 1
    end = text.find("\n", match.end())
    line = text[start : end if end >= 0 else len(text)]
    lines[index] = Where(str(path), text.count("\n", 0, match.start()) + 1, line.strip()[:200])
