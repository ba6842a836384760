"""The inspection as one page of text, readable at 80 columns and without colour."""

from __future__ import annotations

from typing import Any

from analyzer.planning.inspection import Inspection, document
from analyzer.report.sheet import Sheet, bar
from analyzer.report.styles import SEVERITIES
from analyzer.units import several, show_bytes

_SHORT = {"bfloat16": "BF16", "float32": "FP32", "float16": "FP16"}


def write(inspection: Inspection, sheet: Sheet) -> None:
    """Puts the page on ``sheet``."""
    about = document(inspection)
    _head(about, sheet)
    _weights(about, sheet)
    _ranks(about, sheet)
    _cache(about, sheet)
    _mtp(about, sheet)
    _findings(inspection, sheet)


def _head(about: dict[str, Any], sheet: Sheet) -> None:
    sheet.add((about["architecture"] or "no architecture named", "bold"), f"   {about['path']}")
    context = f"context {about['context']:,}" if about["context"] else "no context length declared"
    tied = "embedding and head tied" if about["tied_embeddings"] else "embedding and head apart"
    sheet.text(f"{about['dtype']}, {context}, {tied}, quantisation: {about['quantization']['label']}")
    sheet.gap()


def _weights(about: dict[str, Any], sheet: Sheet) -> None:
    files = about["files"]
    if not files["tensors"]:
        sheet.text("No weights were read here: only what the config says is known.")
        _refused(files, sheet)
        sheet.gap()
        return
    index = f", index {files['index']}" if files["index"] else ""
    sheet.add(("WEIGHTS", "bold"), f"   {show_bytes(files['tensor_bytes'])} in {files['tensors']:,} tensors, "
              f"{several(files['weight_files'], 'file')}{index}")  # fmt: skip
    most = max(c["bytes"] for c in about["components"].values())
    for name, part in about["components"].items():
        types = ", ".join(f"{t} {show_bytes(b)}" for t, b in sorted(part["dtypes"].items(), key=lambda p: -p[1])[:3])
        line = f"  {name:<17}{show_bytes(part['bytes']):>11}  {bar(part['bytes'], most, 12, blocks=sheet.blocks):<12}"
        sheet.add(line, ("  " + types, "dim"))
    _refused(files, sheet)
    sheet.gap()


def _refused(files: dict[str, Any], sheet: Sheet) -> None:
    for problem in files["refused"][:8]:
        sheet.text(problem["why"], 4, "yellow", first=("  ! ", "yellow"))
    if len(files["refused"]) > 8:
        sheet.add(f"  … and {len(files['refused']) - 8} more (see --json)")


def _ranks(about: dict[str, Any], sheet: Sheet) -> None:
    ranks = about["per_rank"]
    stages = ranks["target_bytes_by_stage"]
    if not any(stages):
        return
    spread = f"TP {ranks['tp']} PP {ranks['pp']} EP {ranks['ep']}"
    shown = ", ".join(show_bytes(s) for s in stages[:16])
    sheet.add(("PER RANK", "bold"), f"  {spread}: {shown}", (" (approximate)" if ranks["tp"] > 1 else "", "dim"))
    sheet.gap()


def _cache(about: dict[str, Any], sheet: Sheet) -> None:
    cache = about["cache"]
    sheet.add(("CACHES", "bold"), "    per rank")
    if unknown := cache.get("unknown"):
        sheet.text(f"not known: {unknown}", 2)
        sheet.gap()
        return
    sheet.add(f"  {cache['kv_layers']} of {cache['layers']} layers store KV, {cache['state_layers']} keep a state")
    for name, kind in cache["attention"].items():
        size = f"{kind['bytes_per_token_and_layer']:,.0f} B per token"
        if kind["kv_lora_rank"]:
            shape = f"latent {kind['kv_lora_rank']} + rope {kind['rope_dim']}, on every rank"
            shape += f", indexer {kind['indexer_dim']}" if kind["indexer_dim"] else ""
        else:
            window = f", window {kind['window']:,}" if kind["window"] else ""
            per_rank = f" ({kind['kv_heads_per_rank']} here)" if kind["kv_heads_per_rank"] != kind["kv_heads"] else ""
            shape = f"{kind['kv_heads']} KV heads{per_rank} x ({kind['head_dim']} + {kind['v_head_dim']}){window}"
        sheet.text(f"{kind['layers']} {name} layers: {shape}, {size}", 4)
    for name, state in cache["states"].items():
        matrix = f"matrix {' x '.join(map(str, state['shape']))}" if state["shape"] else "no matrix"
        conv = f"convolution {state['conv_channels']:,} x {max(0, state['conv_kernel'] - 1)}"
        size = show_bytes(state["bytes_per_slot_and_layer"])
        sheet.text(f"{state['layers']} {name} layers: {matrix}, {conv}, {size} per slot", 4)
    if cache["bytes_per_token"] is not None:
        others = ", ".join(f"{_SHORT.get(t, t)} {v:,.0f}" for t, v in cache["bytes_per_token_by_type"].items())
        used = _type_name(cache["kv_dtype"], about)
        sheet.add(f"  KV per token      {cache['bytes_per_token']:>12,.0f} bytes as {used}")
        sheet.add((f"{'':20}{others}", "dim"))
        context = about["context"]
        if context:
            size = show_bytes(cache["bytes_per_token"] * context)
            sheet.add(f"  one full context  {size:>12} for {context:,} tokens")
    if cache["bytes_per_slot"]:
        others = ", ".join(f"{_SHORT.get(t, t)} {show_bytes(v)}" for t, v in cache["bytes_per_slot_by_type"].items())
        used = _type_name(cache["state_dtype"], about)
        sheet.add(f"  state per slot    {show_bytes(cache['bytes_per_slot']):>12} as {used}")
        sheet.add((f"{'':20}{others}", "dim"))
    sheet.gap()


def _type_name(name: str, about: dict[str, Any]) -> str:
    name = about["dtype"] if name in ("", "auto") else name
    return _SHORT.get(name, name)


def _mtp(about: dict[str, Any], sheet: Sheet) -> None:
    mtp = about["mtp"]
    if mtp["declared"] is None and not mtp["layers_in_files"]:
        return
    declared = f"{mtp['field']} = {mtp['declared']}" if mtp["field"] else "no field of the config counts them"
    size = about["components"].get("MTP", {}).get("bytes", 0)
    if not about["files"]["tensors"]:
        held = "no weights to compare with"
    elif size:
        held = f"{several(mtp['layers_in_files'], 'layer')} in the files, {show_bytes(size)}"
    else:
        held = "none in the files"
    sheet.add(("MTP", "bold"), f"       {declared}; {held}")
    sheet.gap()


def _findings(inspection: Inspection, sheet: Sheet) -> None:
    checked = sum(1 for f in inspection.facts if f.name.startswith("package.") and not f.name.endswith("_examples"))
    sheet.add(("PACKAGE", "bold"), f"   {several(checked, 'check')}, {several(len(inspection.findings), 'finding')}")
    for finding in inspection.findings:
        sheet.text(f"{finding.title} ({finding.severity}, {finding.confidence})", 9,
                   first=(f"  {finding.rule}  ", SEVERITIES.get(finding.severity, "")))  # fmt: skip
        sheet.text(finding.summary, 9)
        if finding.fix:
            sheet.text(f"Fix: {finding.fix}", 9, "green")
