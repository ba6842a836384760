"""The model folder in the vocabulary of facts, for one way of serving it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from analyzer.evidence.cache_bytes import Setup, cell_bytes, element_bytes, slot_bytes, version_key
from analyzer.evidence.components import Ranks
from analyzer.evidence.consistency import check_package
from analyzer.evidence.model_config import ModelConfig
from analyzer.evidence.model_dir import ModelFolder, count_mtp_layers
from analyzer.run.facts import Fact, Facts, Where
from analyzer.run.vocabulary import spec_of

_NO_DRAFT_MODEL = frozenset({"ngram", "suffix", "lookahead", "none", ""})


def model_facts(
    folder: ModelFolder,
    *,
    tp: int = 1,
    pp: int = 1,
    ep: int = 1,
    dp_attention: int = 1,
    kv_dtype: str = "auto",
    ssm_dtype: str = "auto",
    engine: str = "sglang",
    version: str = "",
    draft: ModelFolder | None = None,
    draft_tokens: int = 0,
    swa_ratio: float | None = None,
    package: bool = True,
) -> list[Fact]:
    """What ``folder`` says of one rank when served this way; origin ``model-dir``.

    ``dp_attention`` is the number of data-parallel attention groups inside TP (1 without). ``draft`` is the folder of
    a separate draft; without it the MTP tensors of ``folder`` are the draft. ``package`` adds the checks of the package
    itself, which do not depend on the rest.
    """
    attention_tp = max(1, tp // max(1, dp_attention))
    setup = setup_of(folder, engine=engine, version=version, attention_tp=attention_tp, kv_dtype=kv_dtype,
                     ssm_dtype=ssm_dtype, draft_tokens=draft_tokens, swa_ratio=swa_ratio)  # fmt: skip
    ranks = Ranks(tp, pp, ep, attention_tp, engine)
    facts = [
        *_geometry(folder, setup, ranks),
        *_weights(folder, ranks),
        *_draft(folder, draft, setup, ranks),
    ]
    return [*facts, *package_facts(folder, draft)] if package else facts


def package_facts(folder: ModelFolder, draft: ModelFolder | None = None) -> list[Fact]:
    """The checks of the package, and those of the draft's that found something the target's did not."""
    facts = list(_package(folder, ""))
    wrong = {fact.name for fact in facts if fact.value}
    if draft is not None:
        facts += [f for f in _package(draft, "draft: ") if f.value and f.name not in wrong]
    return facts


def setup_of(
    folder: ModelFolder,
    *,
    engine: str = "sglang",
    version: str = "",
    attention_tp: int = 1,
    kv_dtype: str = "auto",
    ssm_dtype: str = "auto",
    draft_tokens: int = 0,
    swa_ratio: float | None = None,
) -> Setup:
    """How caches are laid out when ``folder`` is served this way: ``auto`` types are resolved as the engine does.

    KV: a checkpoint that declares FP8 KV makes auto mean fp8 from SGLang 0.5.3 and vLLM 0.14 (reference 3.3, 3.5).
    State: the config's own ``mamba_ssm_dtype`` (or ``mamba_ssm_cache_dtype``), else float32 in SGLang and for kinds
    that need it, else the model's type.
    """
    config = folder.config
    if kv_dtype in ("", "auto") and folder.quantization.kv_dtype:
        first = (0, 5, 3) if engine == "sglang" else (0, 14)
        kv_dtype = folder.quantization.kv_dtype if version_key(version) >= first else "auto"
    if ssm_dtype in ("", "auto"):
        ssm_dtype = _declared_state_type(config) or _default_state_type(folder, engine)
    extra: dict[str, Any] = {} if swa_ratio is None else {"swa_ratio": swa_ratio}
    return Setup(engine, version, attention_tp, kv_dtype or "auto", ssm_dtype, "auto", config.dtype,
                 draft_tokens=draft_tokens, **extra)  # fmt: skip


def _declared_state_type(config: ModelConfig) -> str:
    for key in ("mamba_ssm_dtype", "mamba_ssm_cache_dtype"):
        value = config.text.get(key)
        if isinstance(value, str) and value != "auto":
            return value
    return ""


def _default_state_type(folder: ModelFolder, engine: str) -> str:
    kinds = {state.kind for state in folder.geometry.states}
    return "float32" if engine == "sglang" or kinds & {"kda", "lightning"} else "auto"


def vocab_table_bytes(config: ModelConfig, ranks: Ranks) -> float | None:
    """Bytes of one vocabulary table (embedding or head) on one rank, in the model's type; None without the sizes."""
    vocab, hidden = config.number("vocab"), config.number("hidden")
    if not vocab or not hidden:
        return None
    return -(-vocab // max(1, ranks.attention_tp)) * hidden * element_bytes("auto", config.dtype)


def _fact(name: str, value: Any, file: str, text: str) -> Iterator[Fact]:
    if value is not None:
        yield Fact(name, value, spec_of(name).unit, (Where(file, 0, text),), {"": value}, "model-dir")


def _geometry(folder: ModelFolder, setup: Setup, ranks: Ranks) -> Iterator[Fact]:
    config, geometry = folder.config, folder.geometry
    name = "config.json" if folder.has_config else Path(folder.path).name
    if not config.architecture.startswith("gguf:"):
        yield from _fact("model.arch", config.architecture or None, name, f"architectures: {config.architecture}")
    yield from _fact("model.layers", config.number("layers"), name, f"num_hidden_layers: {config.number('layers')}")
    yield from _fact("model.context", config.context, name, f"max_position_embeddings: {config.number('context')}")
    yield from _fact("model.quantization", folder.quantization.label, folder.quantization.source or name,
                     f"quantisation: {folder.quantization.label}")  # fmt: skip
    if not geometry.unknown:
        attention = geometry.attention
        kinds = f"{len(attention)} of {len(geometry.layers)} layers store KV"
        yield from _fact("model.attention_layers", len(attention), name, kinds)
        yield from _fact("model.window_layers", len(geometry.windowed), name, f"{len(geometry.windowed)} window layers")
        windows = {a.window for a in geometry.windowed}
        if len(windows) == 1 and (window := windows.pop()):
            yield from _fact("model.window", window, name, f"sliding_window: {window}")
        yield from _fact("model.state_layers", len(geometry.states), name, f"{len(geometry.states)} recurrent layers")
        if geometry.kv_heads:
            yield from _fact("model.kv_heads", geometry.kv_heads, name, f"KV heads: {geometry.kv_heads}")
        cell = cell_bytes(geometry, setup)
        yield from _fact("model.cell", _tidy(cell), name, f"{kinds}, KV type {setup.kv_dtype}, {cell} bytes per token")
        if geometry.states:
            slot = slot_bytes(geometry, setup)
            text = f"{len(geometry.states)} {geometry.states[0].kind} layers, state type {setup.ssm_dtype}"
            yield from _fact("model.state_slot_bytes", _tidy(slot), name, text)
    tables = 1 if config.tied else 2
    table = vocab_table_bytes(config, ranks)
    if table is not None:
        text = f"vocab_size {config.number('vocab')} x hidden_size {config.number('hidden')}, {tables} table(s)"
        yield from _fact("model.vocab_bytes", _tidy(table * tables), name, text)
    yield from _fact("model.tied", config.tied, name, f"tie_word_embeddings: {config.tied}")


def _tidy(value: float | None) -> float | None:
    return int(value) if value is not None and float(value).is_integer() else value


def _weights(folder: ModelFolder, ranks: Ranks) -> Iterator[Fact]:
    if not folder.tensors or any(s.cut for s in folder.shards) or folder.problems_with_weights:
        return  # a sum over files that lack something would pass for the whole
    stages = folder.rank_bytes(ranks)
    files = sorted({t.file for t in folder.tensors})
    text = f"{len(folder.tensors):,} tensors in {len(files)} file(s), TP {ranks.tp} PP {ranks.pp} EP {ranks.ep}"
    yield from _fact("weights.on_disk", max(stages.target), files[0], text)


def _draft(folder: ModelFolder, draft: ModelFolder | None, setup: Setup, ranks: Ranks) -> Iterator[Fact]:
    if draft is not None:
        name = "draft config.json"
        if draft.tensors and not draft.problems_with_weights:
            stages = draft.rank_bytes(ranks)
            shown = ", ".join(sorted({t.file for t in draft.tensors})[:4])
            yield from _fact("draft.weights.on_disk", max(stages.target) + stages.mtp, name, f"draft files: {shown}")
        if not draft.geometry.unknown:
            layers = len(draft.geometry.attention)
            yield from _fact("draft.layers", layers, name, f"{layers} draft layers store KV")
            yield from _fact("draft.cell", _tidy(cell_bytes(draft.geometry, setup)), name, "by the draft's config")
        yield from _fact("draft.arch", draft.config.architecture or None, name, draft.config.architecture)
        return
    declared, present = folder.config.mtp_layers, folder.mtp_layers
    if folder.tensors:
        yield from _fact("spec.layers", present, "model.safetensors.index.json", f"{present} MTP layers in the files")
    elif declared is not None:
        yield from _fact("spec.layers", declared, "config.json", f"{folder.config.mtp_field}: {declared}")
    if not present or folder.problems_with_weights:
        return
    stages = folder.rank_bytes(ranks)
    files = sorted({t.file for t in folder.tensors if count_mtp_layers([t.name], folder.config)})
    place = files[0] if files else "the shards"
    yield from _fact("draft.weights.on_disk", stages.mtp, place, f"MTP tensors in {', '.join(files[:4])}")
    yield from _fact("draft.layers", present, place, f"{present} MTP layer(s) store KV")


def _package(folder: ModelFolder, label: str) -> Iterator[Fact]:
    for issue in check_package(folder):
        place = Where(f"{label}{Path(folder.path).name}", 0, issue.examples() or f"{issue.checked:,} checked")
        name = f"package.{issue.name}"
        yield Fact(name, issue.count, "count", (place,), {"": issue.count}, "model-dir")
        if issue.count:
            text = issue.examples()
            yield Fact(f"{name}_examples", text, "name", (place,), {"": text}, "model-dir")


def serving_arguments(facts: Facts) -> dict[str, Any]:
    """The arguments of ``model_facts`` that a run's own launch arguments give."""
    number = _reader(facts, int)
    text = _reader(facts, str)
    tp = number("args.tensor_parallel_size", "args.tp_size") or 1
    dp = number("args.data_parallel_size", "args.dp_size") or 1
    attention_dp = facts.value("args.enable_dp_attention") in (True, "True", "true")
    ratio = _reader(facts, float)("args.swa_full_tokens_ratio")
    return {
        "tp": tp,
        "pp": number("args.pipeline_parallel_size", "args.pp_size") or 1,
        "ep": number("args.expert_parallel_size", "args.ep_size") or 1,
        "dp_attention": dp if attention_dp else 1,
        "kv_dtype": text("args.kv_cache_dtype") or "auto",
        "ssm_dtype": text("args.mamba_ssm_dtype", "args.mamba_ssm_cache_dtype") or "auto",
        "draft_tokens": int(facts.value("spec.draft_tokens") or 0),
        "swa_ratio": ratio,
    }


def _reader(facts: Facts, kind: Callable[[Any], Any]) -> Callable[..., Any]:
    def read(*names: str) -> Any:
        for name in names:
            value = facts.value(name)
            if value in (None, "None", "", "auto"):
                continue
            try:
                return kind(value)
            except (TypeError, ValueError):
                continue
        return None

    return read


def fits(folder: ModelFolder, facts: Facts) -> Iterator[Fact]:
    """Whether the folder is of the model that the log names; nothing where one of them names none.

    Compared is the family before ``For…``: the same model may be served by its causal or its multimodal class.
    """
    named, logged = folder.config.architecture, str(facts.value("model.arch") or "")
    fact = facts.get("model.arch")
    if not named or named.startswith("gguf:") or not logged or (fact is not None and fact.origin == "model-dir"):
        return
    family, other = (name.split("For")[0].lower().replace("_", "") for name in (named, logged))
    same = family == other or other.startswith("transformers")
    text = f"architectures: {named}; the log names {logged}"
    yield from _fact("model.folder_arch", named, "config.json", text)
    yield from _fact("model.folder_fits", same, "config.json", text)


def uses_own_draft(facts: Facts) -> bool:
    """True if the draft is the target folder's own MTP part, as far as the launch arguments tell."""
    method = str(facts.value("spec.method") or facts.value("args.speculative_algorithm") or "").lower()
    if method in _NO_DRAFT_MODEL:
        return not method  # without speculation the MTP part is still worth knowing
    if "mtp" in method or "nextn" in method:
        return True
    if any(word in str(facts.value("draft.arch") or "").lower() for word in ("mtp", "nextn")):
        return True
    target = facts.value("model.path") or facts.value("args.model_path")
    path = None
    for name in ("args.speculative_draft_model_path", "args.speculative_model"):
        path = path or facts.value(name)
    return path in (None, "None", "") or path == target
