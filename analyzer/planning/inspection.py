"""One model folder, served one way, as a document: what it holds, what its caches cost, what is wrong with it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analyzer.evidence.cache_bytes import Setup, cell_bytes, layer_bytes, rank_heads, slot_bytes, state_bytes
from analyzer.evidence.components import Ranks
from analyzer.evidence.model_dir import ModelFolder, inspect_model
from analyzer.evidence.model_facts import model_facts, setup_of
from analyzer.run.facts import Fact, Facts
from analyzer.run.model import Run

if TYPE_CHECKING:
    from analyzer.diagnosis import Finding

SCHEMA = "kvautopsy.model/1"
KV_TYPES = ("bfloat16", "fp8", "fp4")
STATE_TYPES = ("float32", "bfloat16")


@dataclass(frozen=True, slots=True)
class Serving:
    """How the model is to be served."""

    engine: str = "sglang"
    version: str = ""
    tp: int = 1
    pp: int = 1
    ep: int = 1
    dp_attention: int = 1
    kv_dtype: str = "auto"
    ssm_dtype: str = "auto"
    draft_tokens: int = 0


@dataclass(slots=True)
class Inspection:
    """The folder, the facts it gives for ``serving``, and the findings of the package rules."""

    folder: ModelFolder
    serving: Serving
    setup: Setup
    facts: list[Fact] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)


def inspect(path: Path, serving: Serving, draft_dir: Path | None = None) -> Inspection:
    """Reads the folder and judges it. Raises ``UserError`` if there is no model."""
    folder = inspect_model(path)
    draft = inspect_model(draft_dir) if draft_dir is not None else None
    wanted = {name: getattr(serving, name) for name in Serving.__dataclass_fields__}
    facts = model_facts(folder, draft=draft, **wanted)
    attention_tp = max(1, serving.tp // max(1, serving.dp_attention))
    setup = setup_of(folder, engine=serving.engine, version=serving.version, attention_tp=attention_tp,
                     kv_dtype=serving.kv_dtype, ssm_dtype=serving.ssm_dtype,
                     draft_tokens=serving.draft_tokens)  # fmt: skip
    return Inspection(folder, serving, setup, facts, _judge(path, serving, facts))


def _judge(path: Path, serving: Serving, facts: list[Fact]) -> list[Finding]:
    from analyzer.diagnosis import RuleSet

    run = Run(1, path.name, engine=serving.engine, version=serving.version or None, facts=Facts(facts))
    findings = RuleSet.load().judge(run, None).findings
    return [finding for finding in findings if finding.rule.startswith("MP")]


def document(inspection: Inspection) -> dict[str, Any]:
    """The inspection as JSON-ready values; sizes in bytes."""
    folder, setup, serving = inspection.folder, inspection.setup, inspection.serving
    config = folder.config
    ranks = Ranks(serving.tp, serving.pp, serving.ep, setup.attention_tp, serving.engine)
    stages = folder.rank_bytes(ranks)
    return {
        "schema": SCHEMA,
        "path": folder.path,
        "architecture": config.architecture,
        "model_type": config.model_type,
        "dtype": config.dtype,
        "context": config.context,
        "vocab_size": config.number("vocab"),
        "hidden_size": config.number("hidden"),
        "tied_embeddings": config.tied,
        "quantization": _quantization(folder),
        "files": {
            "weight_files": len(folder.shards) + len(folder.ggufs),
            "tensors": len(folder.tensors),
            "tensor_bytes": sum(t.bytes for t in folder.tensors),
            "index": folder.index_name or None,
            "refused": [{"file": p.file, "why": p.why} for p in folder.problems],
        },
        "components": {
            name: {"bytes": sizes.bytes, "tensors": sizes.tensors, "dtypes": dict(sizes.dtypes)}
            for name, sizes in folder.components.items()
        },
        "per_rank": {
            "tp": serving.tp, "pp": serving.pp, "ep": serving.ep, "attention_tp": setup.attention_tp,
            "target_bytes_by_stage": list(stages.target), "mtp_bytes": stages.mtp,
        },
        "mtp": {"declared": config.mtp_layers, "field": config.mtp_field or None, "in_text_config": config.mtp_in_text,
                "layers_in_files": folder.mtp_layers},
        "cache": _cache(inspection),
        "facts": {f.name: {"value": f.value, "unit": f.unit} for f in inspection.facts},
        "findings": [
            {"rule": f.rule, "cause": f.cause, "severity": f.severity, "confidence": f.confidence, "title": f.title,
             "summary": f.summary, "fix": f.fix}
            for f in inspection.findings
        ],
        "generation": folder.generation,
    }  # fmt: skip


def _quantization(folder: ModelFolder) -> dict[str, Any]:
    quant = folder.quantization
    return {"method": quant.method or None, "format": quant.format or None, "bits": quant.bits, "group": quant.group,
            "ignore": list(quant.ignore), "kv_dtype": quant.kv_dtype or None, "label": quant.label,
            "source": quant.source or None}  # fmt: skip


def _cache(inspection: Inspection) -> dict[str, Any]:
    """Layers with KV and with state, and their bytes for several types, on one rank."""
    geometry, setup = inspection.folder.geometry, inspection.setup
    if geometry.unknown:
        return {"unknown": geometry.unknown}
    attention = geometry.attention
    kinds: dict[str, dict[str, Any]] = {}
    for spec in attention:
        label = "MLA" if spec.latent else spec.span
        kind = kinds.setdefault(label, {
            "layers": 0, "kv_heads": spec.kv_heads, "kv_heads_per_rank": rank_heads(spec, setup.attention_tp),
            "head_dim": spec.head_dim, "v_head_dim": spec.v_head_dim, "window": spec.window or None,
            "kv_lora_rank": spec.latent or None, "rope_dim": spec.rope or None, "indexer_dim": spec.indexer or None,
            "bytes_per_token_and_layer": layer_bytes(spec, setup),
        })  # fmt: skip
        kind["layers"] += 1
    states: dict[str, dict[str, Any]] = {}
    for state in geometry.states:
        entry = states.setdefault(state.kind, {
            "layers": 0, "shape": list(state.shape), "conv_channels": state.conv_channels, "conv_kernel": state.kernel,
            "bytes_per_slot_and_layer": state_bytes(state, setup),
        })  # fmt: skip
        entry["layers"] += 1
    return {
        "layers": len(geometry.layers), "kv_layers": len(attention), "state_layers": len(geometry.states),
        "kv_dtype": setup.kv_dtype, "state_dtype": setup.ssm_dtype, "attention": kinds, "states": states,
        "bytes_per_token": cell_bytes(geometry, setup), "bytes_per_slot": slot_bytes(geometry, setup),
        "bytes_per_token_by_type": {t: cell_bytes(geometry, replace(setup, kv_dtype=t)) for t in KV_TYPES},
        "bytes_per_slot_by_type": {t: slot_bytes(geometry, replace(setup, ssm_dtype=t)) for t in STATE_TYPES}
        if geometry.states else {},
    }  # fmt: skip
