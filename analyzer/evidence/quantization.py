"""What a package says about its quantisation, in one form for all the formats in use.

Read from ``quantization_config`` (or ``compression_config``) in config.json, else from ``hf_quant_config.json``
(modelopt), else from ``quantize_config.json`` / ``quant_config.json`` (older GPTQ and AWQ packages).
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from analyzer.evidence.model_config import TEXT_PARTS, whole

MAX_PATTERN = 300
"""A pattern of an ignore list longer than this is not tried (it would be no layer's name)."""

SCALE_SUFFIXES = ("weight_scale", "weight_scale_2", "scales", "weight_scale_inv", "weight_zero_point", "g_idx",
                  "input_scale", "weight_global_scale", "input_global_scale", "weight_shape", "qzeros")  # fmt: skip

PACKED_DTYPES = frozenset({"I32", "U8", "I8", "F8_E4M3", "F8_E5M2", "F4", "F8_E4M3FNUZ"})


@dataclass(frozen=True, slots=True)
class Quantization:
    """One package's declaration.

    ``method`` as engines name it (``compressed-tensors``, ``awq``, ``gptq``, ``fp8``, ``modelopt`` …), ``format`` its
    sub-format, ``ignore`` the modules that are said to stay unquantised as written there, ``style`` how those names
    are meant: ``exact`` (name or ``re:`` pattern), ``part`` (whole parts, anywhere in the name), ``glob``.
    ``kv_dtype`` is the KV type that the checkpoint asks for.
    """

    method: str = ""
    format: str = ""
    bits: int | None = None
    group: int | None = None
    block: tuple[int, int] | None = None
    ignore: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    style: str = "exact"
    kv_dtype: str = ""
    source: str = ""

    @property
    def label(self) -> str:
        """A short name for the reader: ``compressed-tensors pack-quantized 4-bit group 128``."""
        parts = [self.method, self.format if self.format != self.method else ""]
        parts.append(f"{self.bits}-bit" if self.bits else "")
        parts.append(f"group {self.group}" if self.group and self.group > 0 else "")
        parts.append(f"block {self.block[0]}x{self.block[1]}" if self.block else "")
        return " ".join(p for p in parts if p) or "none"

    def matcher(self, entry: str) -> Callable[[str], bool]:
        """A test whether an ignore entry means a module of that name. A broken pattern matches nothing."""
        return _matcher(entry, self.style)


def parse_quantization(config: dict[str, Any], hf_quant: Any = None, legacy: Any = None) -> Quantization:
    """The declaration of a package: ``config`` is config.json, the others are the contents of the side files."""
    for part in (config, *(config.get(name) for name in TEXT_PARTS)):
        if not isinstance(part, dict):
            continue
        for key in ("quantization_config", "compression_config"):
            if isinstance(part.get(key), dict) and part[key]:
                return _from_config(part[key], "config.json")
    if isinstance(hf_quant, dict):
        return _modelopt(hf_quant.get("quantization", hf_quant), "hf_quant_config.json")
    if isinstance(legacy, dict) and (legacy.get("bits") or legacy.get("w_bit")):
        return _from_config({"quant_method": "awq" if "w_bit" in legacy else "gptq", **legacy}, "quantize_config.json")
    return Quantization()


def _from_config(section: dict[str, Any], source: str) -> Quantization:
    method = str(section.get("quant_method") or section.get("quant_library") or "").lower()
    if "config_groups" in section and method not in ("modelopt", "nvfp4"):
        return _compressed_tensors(section, source)
    if method.startswith("modelopt") or "quant_algo" in section or isinstance(section.get("quantization"), dict):
        return _modelopt(section.get("quantization", section), source)
    if not method and (section.get("load_in_4bit") or section.get("load_in_8bit")):
        method = "bitsandbytes"
    if method == "bitsandbytes":
        bits = 8 if section.get("load_in_8bit") else 4
        kind = str(section.get("bnb_4bit_quant_type", "")) if bits == 4 else "int8"
        return Quantization(method, kind, bits, ignore=_names(section.get("llm_int8_skip_modules")), style="part",
                            source=source)  # fmt: skip
    ignore = _names(section.get("modules_to_not_convert") or section.get("ignored_layers") or section.get("ignore"))
    if isinstance(section.get("dynamic"), dict):  # GPTQModel: "-:pattern" leaves modules plain
        ignore += tuple(f"re:{key[2:]}" for key in section["dynamic"] if str(key).startswith("-:"))
    block = section.get("weight_block_size")
    sizes = [whole(n) for n in block] if isinstance(block, list) and len(block) == 2 else []
    return Quantization(
        method,
        str(section.get("version") or section.get("fmt") or section.get("checkpoint_format") or ""),
        whole(section.get("bits")) or whole(section.get("w_bit")) or (8 if method == "fp8" else None),
        whole(section.get("group_size")) or whole(section.get("q_group_size")),
        (sizes[0], sizes[1]) if len(sizes) == 2 and sizes[0] and sizes[1] else None,
        ignore,
        style="part" if method in ("awq", "gptq") else "exact",
        source=source,
    )


def _compressed_tensors(section: dict[str, Any], source: str) -> Quantization:
    groups = section.get("config_groups")
    schemes = [g for g in groups.values() if isinstance(g, dict)] if isinstance(groups, dict) else []
    weights = [g["weights"] for g in schemes if isinstance(g.get("weights"), dict)]
    targets = [name for g in schemes for name in _names(g.get("targets"))]
    cache = section.get("kv_cache_scheme")
    kind = str(section.get("format") or next((g.get("format") for g in schemes if g.get("format")), ""))
    first = weights[0] if weights else {}
    return Quantization(
        "compressed-tensors", kind, whole(first.get("num_bits")), whole(first.get("group_size")),
        ignore=_names(section.get("ignore")), targets=tuple(targets),
        kv_dtype="fp8" if isinstance(cache, dict) and cache.get("num_bits") == 8 else "", source=source,
    )  # fmt: skip


def _modelopt(section: Any, source: str) -> Quantization:
    if not isinstance(section, dict):
        return Quantization("modelopt", source=source)
    algorithm = str(section.get("quant_algo") or section.get("quant_method") or "")
    cache = section.get("kv_cache_quant_algo") or section.get("kv_cache_scheme")
    kv = "fp8" if cache else ""
    if isinstance(cache, str):
        kv = {"FP8": "fp8", "NVFP4": "nvfp4"}.get(cache.upper(), cache.lower())
    bits = 4 if "4" in algorithm else 8 if "8" in algorithm else None
    group = whole(section.get("group_size")) or (16 if "NVFP4" in algorithm.upper() else None)
    ignore = section.get("exclude_modules") or section.get("ignore")
    return Quantization("modelopt", algorithm, bits, group, ignore=_names(ignore), style="glob", kv_dtype=kv,
                        source=source)  # fmt: skip


def _names(value: Any) -> tuple[str, ...]:
    return tuple(str(v) for v in value if isinstance(v, str)) if isinstance(value, list) else ()


@lru_cache(maxsize=4096)
def _matcher(entry: str, style: str) -> Callable[[str], bool]:
    if entry.startswith("re:"):
        try:
            pattern = re.compile(entry[3:]) if len(entry) <= MAX_PATTERN and not _explosive(entry) else None
        except (re.error, RecursionError):
            pattern = None
        return (lambda name: pattern.match(name) is not None) if pattern else (lambda name: False)
    if "*" in entry or (style == "glob" and any(c in entry for c in "?[")):
        globs = [re.compile(fnmatch.translate(pattern)) for pattern in (entry, f"{entry}.*")]
        return lambda name: any(glob.match(name) for glob in globs)
    if style == "part":
        part = f".{entry.strip('.')}."
        return lambda name: part in f".{name}."
    return lambda name: name == entry or name.startswith(f"{entry}.") or name.endswith(f".{entry}")


def _explosive(pattern: str) -> bool:
    """True for patterns with a repeated group that itself repeats: they may take for ever on a long name."""
    return re.search(r"[*+}]\)+[*+{]", pattern) is not None or pattern.count("*") + pattern.count("+") > 12
