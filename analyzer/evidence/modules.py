"""Tensors grouped into modules (linear layers): which are plain, which are packed, and their true dimensions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from analyzer.evidence.quantization import PACKED_DTYPES, SCALE_SUFFIXES
from analyzer.evidence.safetensors import Tensor

FLOATS = frozenset({"BF16", "F16", "F32", "F64"})
_PACKED = frozenset({"weight_packed", "qweight"})


@dataclass(slots=True)
class Module:
    """One module by name. ``plain`` is its float ``weight``; ``packed`` its quantised weight; ``scales`` the rest."""

    name: str
    plain: Tensor | None = None
    packed: Tensor | None = None
    scales: list[str] = field(default_factory=list)

    @property
    def is_packed(self) -> bool:
        """It holds a quantised weight."""
        return self.packed is not None

    @property
    def is_plain(self) -> bool:
        """It holds a float weight, and neither a quantised one nor scales."""
        return self.plain is not None and self.packed is None and not self.scales

    def dims(self, bits: int | None) -> tuple[int, int] | None:
        """(outputs, inputs) of a packed two-dimensional weight, unpacked; None if they cannot be told.

        compressed-tensors packs inputs of [out, in / 8]; AWQ outputs of [in, out / 8]; GPTQ inputs of [in / 8, out];
        NVFP4 two inputs in a byte.
        """
        if self.packed is None or len(self.packed.shape) != 2:
            return None
        rows, columns = self.packed.shape
        suffix, dtype = self.packed.name.rpartition(".")[2], self.packed.dtype
        per_word = 32 // bits if bits in (2, 4, 8) else 0
        if suffix == "weight_packed" and dtype == "I32" and per_word:
            return rows, columns * per_word
        if suffix in ("weight_packed", "weight") and dtype == "U8":
            return rows, columns * 2
        if suffix == "weight":
            return rows, columns
        if suffix == "qweight" and per_word:
            return (columns, rows * per_word) if "g_idx" in self.scales else (columns * per_word, rows)
        return None


def modules_of(tensors: Iterable[Tensor]) -> dict[str, Module]:
    """The modules that ``tensors`` belong to, by name. Only tensors that look like weights or scales count."""
    modules: dict[str, Module] = {}
    for tensor in tensors:
        name, _, suffix = tensor.name.rpartition(".")
        if suffix not in _PACKED and suffix not in SCALE_SUFFIXES and suffix != "weight":
            continue
        module = modules.setdefault(name, Module(name))
        if suffix in _PACKED:
            module.packed = tensor
        elif suffix == "weight":
            if tensor.dtype in FLOATS:
                module.plain = tensor
            elif tensor.dtype in PACKED_DTYPES:
                module.packed = tensor
        else:
            module.scales.append(suffix)
    return modules
