"""Does a package agree with itself: index and files, tensors and config, MTP declared and present?"""

from __future__ import annotations

import re
from collections import Counter, defaultdict

from analyzer.evidence.components import layer_index
from analyzer.evidence.issues import Issue
from analyzer.evidence.model_dir import ModelFolder, count_mtp_layers
from analyzer.evidence.quant_checks import check_quantization

_NUMBERED = re.compile(r"^(?P<stem>.+)-(?P<number>\d{5})-of-(?P<count>\d{5})\.(?P<ext>safetensors|bin)$")
_TEXT_LAYER = re.compile(r"^(?:(?:model|language_model|backbone|transformer|thinker|text_model)\.)*(?:layers|h)\.\d+\.")


def check_package(folder: ModelFolder) -> list[Issue]:
    """Every check that applies to ``folder``, also those that found nothing."""
    issues = [*_files(folder), *_mtp(folder)]
    if folder.shards:
        issues += [*_shapes(folder), *_layers(folder)]
    return [*issues, *check_quantization(folder)]


def _files(folder: ModelFolder) -> list[Issue]:
    """Index against files, numbering against files, headers against lengths."""
    broken = {p.file for p in folder.problems if p.file.endswith((".safetensors", ".gguf"))}
    held = {s.name for s in folder.shards}
    unreadable = tuple(p.why for p in folder.problems if p.file in broken and p.file not in held)
    cut = tuple(f"{s.name} lacks {sum(t.missing_bytes for t in s.tensors):,} bytes" for s in folder.shards if s.cut)
    cut += tuple(f"{g.name} is cut off" for g in folder.ggufs if any(t.missing_bytes for t in g.tensors))
    issues = [
        Issue("unreadable", unreadable, len(broken) + len(held)),
        Issue("truncated", cut, len(held) + len(folder.ggufs)),
    ]
    if not held and not broken:
        return issues  # config and index alone, as people send them: nothing is missing from that
    issues.append(Issue("missing_shards", tuple(_gaps(folder)), len(folder.files)))
    if folder.index is None:
        return issues
    named = set(folder.index.values())
    absent = sorted(f for f in named if folder.files.get(f, -1) < 0)
    unindexed = sorted(h for h in held - named if not h.startswith(("consolidated", "adapter")))
    by_file: dict[str, set[str]] = {s.name: {t.name for t in s.tensors} for s in folder.shards}
    lost = [n for n, file in folder.index.items() if file in by_file and n not in by_file[file]]
    extra = [n for file in sorted(named & held) for n in by_file[file] if n not in folder.index]
    return [
        *issues,
        Issue("index_missing_files", tuple(absent), len(named)),
        Issue("unindexed_files", tuple(unindexed), len(held)),
        Issue("index_missing_tensors", tuple(lost), len(folder.index)),
        Issue("unindexed_tensors", tuple(extra), len(folder.index)),
    ]


def _gaps(folder: ModelFolder) -> list[str]:
    """Members of a numbered series (``model-00002-of-00004``) that are not there."""
    series: dict[tuple[str, str, str], set[int]] = defaultdict(set)
    for name, size in folder.files.items():
        if (match := _NUMBERED.match(name)) and size >= 0:
            series[match["stem"], match["count"], match["ext"]].add(int(match["number"]))
    gaps = []
    for (stem, count, ext), present in sorted(series.items()):
        if int(count) <= 20_000:
            gaps += [f"{stem}-{n:05d}-of-{count}.{ext}" for n in range(1, int(count) + 1) if n not in present]
    return gaps


def _mtp(folder: ModelFolder) -> list[Issue]:
    """MTP layers declared, present, and reachable through the index."""
    declared = folder.config.mtp_layers
    loaded = folder.mtp_layers
    anywhere = count_mtp_layers([t.name for t in folder.all_tensors], folder.config)
    indexed = count_mtp_layers(list(folder.index), folder.config) if folder.index else None
    if not folder.tensors and not indexed:
        return []
    where = folder.config.mtp_field
    unindexed = gone = silent = differ = ""
    if anywhere and indexed == 0:
        unindexed = "the files hold MTP tensors that the index does not name"
    elif anywhere > loaded:
        unindexed = f"the files hold {anywhere} MTP layers, a loader that follows the index finds {loaded}"
    if indexed and folder.tensors and not anywhere:
        gone = f"the index names {indexed} MTP layer(s) whose tensors are in none of the files"
    elif declared and not anywhere and not indexed:
        gone = f"{where} = {declared}, but no file holds an MTP tensor"
    if anywhere and declared is None:
        silent = f"{anywhere} MTP layer(s) in the files, no field of the config counts them"
    elif anywhere and declared and declared != anywhere:
        differ = f"{where} = {declared}, the files hold {anywhere}"
    found = {"mtp_unindexed": unindexed, "mtp_missing": gone, "mtp_undeclared": silent, "mtp_count": differ}
    return [Issue(name, (text,) if text else ()) for name, text in found.items()]


def _shapes(folder: ModelFolder) -> list[Issue]:
    """Plain tensors whose shape contradicts config.json."""
    config = folder.config
    hidden, vocab, heads = config.number("hidden"), config.number("vocab"), config.number("heads")
    wrong: list[str] = []
    checked = 0
    for tensor in folder.tensors:
        if len(tensor.shape) != 2 or not tensor.name.endswith(".weight"):
            continue
        module = tensor.name.removesuffix(".weight").rpartition(".")[2]
        expected: tuple[int | None, int | None] | None = None
        if module == "embed_tokens" and not tensor.name.startswith(("mtp", "visual", "model.visual")):
            expected = (vocab, hidden)
        elif module in ("q_proj", "k_proj", "v_proj") and _TEXT_LAYER.match(tensor.name) and tensor.dtype != "U8":
            expected = (_rows(folder, module, tensor.name, heads), hidden)
        if expected is None:
            continue
        checked += 1
        padded = tensor.shape[0] if module == "embed_tokens" else 0  # rows beyond the vocabulary are padding
        if any(
            want and got != want and not (got == padded and got > want)
            for want, got in zip(expected, tensor.shape, strict=True)
        ):
            meant = " x ".join(str(w or "?") for w in expected)
            wrong.append(f"{tensor.name} is {tensor.shape[0]} x {tensor.shape[1]}, config.json means {meant}")
    return [Issue("shapes", tuple(wrong), checked)]


def _rows(folder: ModelFolder, module: str, name: str, heads: int | None) -> int | None:
    index = layer_index(name)
    layers = folder.geometry.layers
    layer = layers[index] if index is not None and index < len(layers) else None
    attention = layer.attention if layer else None
    if attention is None or attention.latent or (layer and layer.state):
        return None
    if module == "q_proj":
        size = folder.config.head_dim if attention.head_dim == folder.config.head_dim else None
        gate = 2 if folder.config.text.get("attn_output_gate") or folder.config.model_type == "qwen3_next" else 1
        return heads * size * gate if heads and size else None
    return attention.kv_heads * (attention.head_dim if module == "k_proj" else attention.v_head_dim)


def _layers(folder: ModelFolder) -> list[Issue]:
    """Hidden layers without any tensor, and layers that lack a module which most layers of their kind have."""
    count = folder.config.number("layers") or 0
    members: dict[int, set[str]] = defaultdict(set)
    for tensor in folder.tensors:
        index = layer_index(tensor.name)
        if index is None or index >= count or not (found := _TEXT_LAYER.match(tensor.name)):
            continue
        module = tensor.name[found.end() :].rpartition(".")[0] or tensor.name[found.end() :]
        if "indexer" not in module:
            members[index].add(module)
    if not members or len(folder.geometry.layers) != count:
        return []
    absent = [f"layer {n} has no tensor at all" for n in range(count) if n not in members]
    kinds: dict[tuple[bool, bool], list[int]] = defaultdict(list)
    for index in members:
        layer = folder.geometry.layers[index]
        kinds[layer.attention is not None, layer.state is not None].append(index)
    lacking = []
    for indices in kinds.values():
        common = Counter(frozenset(members[i]) for i in indices).most_common()
        usual = max(common, key=lambda pair: (pair[1], len(pair[0])))[0]
        for index in sorted(indices):
            if members[index] < usual:
                lacking += [f"layer {index} lacks {module}" for module in sorted(usual - members[index])]
    return [Issue("missing_layers", tuple(absent), count), Issue("missing_tensors", tuple(lacking), count)]
