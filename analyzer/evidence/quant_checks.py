"""Does what the package declares about its quantisation agree with what its files hold?

The checks that the field taught: an ignore list whose names carry another prefix than the tensors (loaders then look
for plain weights that are packed, and read garbage), modules declared plain but packed and the reverse, a packed and a
plain copy of one module, dimensions that the usual kernels refuse.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from analyzer.evidence.components import component_of
from analyzer.evidence.issues import Issue
from analyzer.evidence.model_dir import ModelFolder
from analyzer.evidence.modules import Module, modules_of
from analyzer.evidence.quantization import PACKED_DTYPES, Quantization

_QUANTISED_PARTS = frozenset({"attention", "linear attention", "MLP", "experts", "shared experts", "MTP"})
_NEVER_PACKED = re.compile(
    r"(norm|conv1d|A_log|dt_bias|router|\.gate|embed\w*|\.fc|eh_proj|head|indexer\.\w*|rotary\w*)$"
)
_PREFIXES = ("model.language_model.", "language_model.model.", "language_model.", "model.", "thinker.model.", "")
_FUSED = {
    "q_proj": "qkv_proj", "k_proj": "qkv_proj", "v_proj": "qkv_proj", "gate_proj": "gate_up_proj",
    "up_proj": "gate_up_proj", "in_proj_qkv": "in_proj_qkvz", "in_proj_z": "in_proj_qkvz", "in_proj_a": "in_proj_ba",
    "in_proj_b": "in_proj_ba",
}  # fmt: skip
"""A module of the files and the fused layer that engines build of it; ignore lists may name either."""
_KNOWN = frozenset({"compressed-tensors", "modelopt", "awq", "gptq", "fp8", "mxfp4"})
"""Methods whose declarations are understood well enough to contradict them."""
_MARLIN_OUT, _MARLIN_IN = 64, 64


def check_quantization(folder: ModelFolder) -> list[Issue]:
    """The issues of one package. Empty without weight files."""
    modules = modules_of(folder.all_tensors)
    if not modules or folder.ggufs:
        return []
    quant, packed = folder.quantization, [m for m in modules.values() if m.is_packed]
    issues = [_twins(modules.values())]
    if not quant.method:
        return [*issues, Issue("undeclared", tuple(m.name for m in packed), len(modules))]
    if quant.method not in _KNOWN:
        return issues
    if not packed and not any(t.dtype in PACKED_DTYPES and len(t.shape) > 1 for t in folder.all_tensors):
        online = quant.method == "fp8" and quant.block is None  # plain weights may be quantised while loading
        whole = tuple(m.name for m in modules.values() if _quantisable(m, folder))
        return [*issues, Issue("declared_but_plain", () if online else whole, len(modules))]
    entries = [e for e in quant.ignore if not _class_name(e)]
    unmatched, renamed = [], []
    declared: dict[str, str] = {}
    for entry in entries:
        found = [name for name in modules if _matches(quant, entry, name)]
        other = [] if found else [n for n in modules if any(_matches(quant, e, n) for e in _renamed(entry))]
        for name in (*found, *other):
            declared.setdefault(name, entry)
        if other:
            renamed.append(f"{entry} (the files have {other[0]})")
        elif not found:
            unmatched.append(entry)
    ignored_packed = [f"{n} (ignored by {e!r})" for n, e in declared.items() if modules[n].is_packed]
    issues.append(Issue("ignore_prefix", tuple(renamed), len(entries)))
    issues.append(Issue("ignore_unmatched", tuple(unmatched), len(entries)))
    issues.append(Issue("ignored_but_packed", tuple(ignored_packed), len(declared)))
    issues.append(Issue("packed_expected", tuple(_missing_packed(modules, declared, folder)), len(modules)))
    issues.append(Issue("kernel_dims", tuple(_odd_dims(packed, quant)), len(packed)))
    return issues


def _twins(modules: Iterable[Module]) -> Issue:
    return Issue("twins", tuple(m.name for m in modules if m.plain is not None and m.packed is not None))


def _missing_packed(modules: dict[str, Module], declared: dict[str, str], folder: ModelFolder) -> list[str]:
    """Plain modules that nothing declares plain, though most modules of the same kind elsewhere are packed."""
    if folder.quantization.targets and not any(t in ("Linear", "re:.*") for t in folder.quantization.targets):
        return []
    return [m.name for m in modules.values() if m.name not in declared and m.is_plain and _quantisable(m, folder)]


def _quantisable(module: Module, folder: ModelFolder) -> bool:
    if module.plain is None or len(module.plain.shape) != 2 or _NEVER_PACKED.search(module.name):
        return False
    part = component_of(f"{module.name}.weight", folder.config, folder.geometry)
    if part == "MTP" and folder.quantization.method not in ("compressed-tensors", "modelopt"):
        return False  # AWQ and GPTQ packages keep MTP plain without a word; loaders know
    return part in _QUANTISED_PARTS


def _odd_dims(packed: Iterable[Module], quant: Quantization) -> list[str]:
    """Packed modules whose outputs or inputs are no multiple of 64 (Marlin and Machete refuse them)."""
    odd = []
    for module in packed:
        dims = module.dims(quant.bits)
        if dims and quant.bits == 4 and (dims[0] % _MARLIN_OUT or dims[1] % _MARLIN_IN):
            odd.append(f"{module.name} ({dims[0]} x {dims[1]})")
    return odd


def _matches(quant: Quantization, entry: str, name: str) -> bool:
    test = quant.matcher(entry)
    if test(name):
        return True
    stem, _, last = name.rpartition(".")
    return last in _FUSED and test(f"{stem}.{_FUSED[last]}")


def _renamed(entry: str) -> list[str]:
    """The entry under the other prefixes in use, plain names only (a pattern that names a prefix too)."""
    head, body = ("re:", entry[3:]) if entry.startswith("re:") else ("", entry)
    anchor = "^" if body.startswith("^") else ""
    body = body.removeprefix("^")
    plain = body.replace("\\.", ".")
    for prefix in _PREFIXES:
        if prefix and plain.startswith(prefix):
            rest = body[len(body) - len(_tail(body, prefix)) :]
            return [f"{head}{anchor}{_escape(p, head)}{rest}" for p in _PREFIXES if p != prefix]
    return []


def _tail(body: str, prefix: str) -> str:
    """``body`` without ``prefix``, whose dots may be escaped in ``body``."""
    for letter in prefix:
        body = body.removeprefix("\\") if letter == "." else body
        body = body[1:]
    return body


def _escape(prefix: str, head: str) -> str:
    return prefix.replace(".", "\\.") if head else prefix


def _class_name(entry: str) -> bool:
    return "." not in entry and entry[:1].isupper()
