"""A model folder as witness: what its files say, without reading any tensor data.

``inspect_model`` reads config.json, the shard index, every safetensors or GGUF header, the quantisation side files and
the generation config. A file that cannot be believed is refused on its own (``problems``); the rest still counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from analyzer.errors import UserError
from analyzer.evidence.components import Ranks, Sizes, StageBytes, by_component, rank_bytes
from analyzer.evidence.geometry import Geometry, geometry_of
from analyzer.evidence.gguf import GgufFile, config_of, read_gguf
from analyzer.evidence.model_config import ConfigError, ModelConfig, parse_config, read_json
from analyzer.evidence.quantization import Quantization, parse_quantization
from analyzer.evidence.safetensors import HeaderError, Shard, Tensor, read_shard
from analyzer.run.facts import Fact
from analyzer.run.model import Run

MAX_FILES = 20_000
INDEX_NAMES = ("model.safetensors.index.json", "consolidated.safetensors.index.json", "pytorch_model.bin.index.json")
SLOT_ROUNDING = 0.05
"""A state slot read from printed GiB (two decimals) may differ by this much from the true size and be the same."""
PICKLED = re.compile(r"\.(bin|pt|pth|ckpt)$")


@dataclass(frozen=True, slots=True)
class Problem:
    """One file that could not be used, and why, in a sentence."""

    file: str
    why: str


@dataclass(slots=True)
class ModelFolder:
    """Everything that was read from one model folder (or one GGUF or safetensors file)."""

    path: str
    config: ModelConfig
    geometry: Geometry
    quantization: Quantization
    shards: tuple[Shard, ...] = ()
    ggufs: tuple[GgufFile, ...] = ()
    index: dict[str, str] | None = None
    """Tensor -> file of the shard index; None without an index."""
    index_name: str = ""
    index_total: int | None = None
    generation: dict[str, Any] = field(default_factory=dict)
    files: dict[str, int] = field(default_factory=dict)
    """Every file of the folder and its size."""
    problems: list[Problem] = field(default_factory=list)
    has_config: bool = False
    _memory: dict[Any, Any] = field(default_factory=dict, repr=False, compare=False)
    """What was derived once and is asked for often (a search over launches asks hundreds of times)."""

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """The tensors that a loader takes: of the files that the index names if there is one, each name once.

        Both engines skip files that the index does not name; a ``consolidated`` copy beside the shards is the same
        weights again.
        """
        if "tensors" not in self._memory:
            self._memory["tensors"] = self._loaded_tensors()
        found: tuple[Tensor, ...] = self._memory["tensors"]
        return found

    def _loaded_tensors(self) -> tuple[Tensor, ...]:
        named = set(self.index.values()) if self.index else None
        shards = [s for s in self.shards if named is None or s.name in named] or list(self.shards)
        numbered = [s for s in shards if not s.name.startswith("consolidated")]
        seen: dict[str, Tensor] = {}
        for shard in numbered or shards:
            for tensor in shard.tensors:
                seen.setdefault(tensor.name, tensor)
        for gguf in self.ggufs:
            for tensor in gguf.tensors:
                seen.setdefault(tensor.name, tensor)
        return tuple(seen.values())

    @property
    def all_tensors(self) -> tuple[Tensor, ...]:
        """The tensors of all files, indexed or not."""
        return (*(t for s in self.shards for t in s.tensors), *(t for g in self.ggufs for t in g.tensors))

    @property
    def components(self) -> dict[str, Sizes]:
        """Bytes per component of what a loader takes."""
        return by_component(self.tensors, self.config, self.geometry)

    def rank_bytes(self, ranks: Ranks) -> StageBytes:
        """Bytes of the files that one rank of each stage loads (approximations: ``components``)."""
        if ranks not in self._memory:
            self._memory[ranks] = rank_bytes(self.tensors, self.config, self.geometry, ranks)
        found: StageBytes = self._memory[ranks]
        return found

    @property
    def problems_with_weights(self) -> bool:
        """A weight file is missing, cut off or refused: sums over the files do not give the model."""
        held = {s.name for s in self.shards} | {g.name for g in self.ggufs}
        refused = any(p.file.endswith((".safetensors", ".gguf")) and p.file not in held for p in self.problems)
        absent = self.index is not None and any(self.files.get(f, -1) < 0 for f in self.index.values())
        return refused or absent or any(s.cut for s in self.shards)

    @property
    def mtp_layers(self) -> int:
        """MTP layers whose tensors the files hold."""
        if "mtp" not in self._memory:
            self._memory["mtp"] = count_mtp_layers([t.name for t in self.tensors], self.config)
        found: int = self._memory["mtp"]
        return found


def inspect_model(path: str | Path) -> ModelFolder:
    """Reads the model in ``path``: a folder, a GGUF file or a safetensors file.

    Raises ``UserError`` (status 3) if there is nothing there that belongs to a model.
    """
    place = _snapshot(Path(path))
    try:
        files = _files(place)
    except OSError as error:
        raise UserError(f"cannot read the model folder {place}: {error.strerror or error}", status=3) from error
    root = place if place.is_dir() else place.parent
    problems: list[Problem] = []
    raw = _json(root / "config.json", problems) if place.is_dir() else None
    shards, ggufs = _weights(root, files, problems)
    has_config = isinstance(raw, dict)
    if not has_config and ggufs:
        raw = config_of(ggufs[0].metadata)
    if raw is None and not shards and not ggufs:
        detail = f": {problems[0].why}" if problems else ""
        raise UserError(f"{place} holds neither config.json nor safetensors nor GGUF files{detail}", status=3)
    try:
        config = parse_config(raw if raw is not None else {})
    except ConfigError as error:
        problems.append(Problem("config.json", str(error)))
        config, has_config = parse_config({}), False
    index_name = next((n for n in INDEX_NAMES if n in files), "")
    index, total = _index(root / index_name, problems) if index_name else (None, None)
    side = {n: _json(root / n, problems) for n in ("hf_quant_config.json", "quantize_config.json", "quant_config.json")
            if n in files}  # fmt: skip
    quantization = parse_quantization(
        config.raw, side.get("hf_quant_config.json"), side.get("quantize_config.json") or side.get("quant_config.json")
    )
    generation = _json(root / "generation_config.json", problems) if "generation_config.json" in files else None
    return ModelFolder(
        str(place), config, geometry_of(config), quantization, shards, ggufs, index, index_name, total,
        generation if isinstance(generation, dict) else {}, files, problems, has_config,
    )  # fmt: skip


def _snapshot(place: Path) -> Path:
    """The revision inside a folder of the hub's cache (``models--owner--name``); other paths as they are."""
    snapshots = place / "snapshots"
    if (place / "config.json").exists() or not snapshots.is_dir():
        return place
    try:
        main = (place / "refs" / "main").read_text(encoding="ascii")[:100].strip()
    except (OSError, ValueError):
        main = ""
    if main.isalnum() and (snapshots / main).is_dir():
        return snapshots / main
    revisions = sorted(p for p in snapshots.iterdir() if p.is_dir())
    return revisions[0] if len(revisions) == 1 else place


def count_mtp_layers(names: list[str], config: ModelConfig) -> int:
    """MTP layers among tensor ``names``: numbered ``mtp.layers.N`` and the like, or hidden layers beyond the last."""
    numbered: set[str] = set()
    beyond: set[int] = set()
    bare = False
    count = config.number("layers") or 0
    for name in names:
        if match := _MTP_LAYER.search(name):
            numbered.add(match[1])
        elif _MTP_NAME.search(name):
            bare = True
        elif count and (match := _HIDDEN_LAYER.match(name)) and int(match[1]) >= count:
            beyond.add(int(match[1]))
    return len(numbered) or len(beyond) or int(bare)


_MTP_LAYER = re.compile(r"(?:^|\.)(?:mtp\.layers|mtp_layers|mtp_block|mtp|nextn|nextn_layers)\.(\d{1,4})\.")
_MTP_NAME = re.compile(r"(?:^|\.)(?:mtp|nextn|mtp_block)\.")
_HIDDEN_LAYER = re.compile(r"(?:model\.|language_model\.|backbone\.|transformer\.|blk\.)*(?:layers\.|h\.)?(\d{1,5})\.")


def _files(place: Path) -> dict[str, int]:
    if place.is_file():
        return {place.name: place.stat().st_size}
    if not place.exists():
        raise FileNotFoundError(2, "there is no such file or folder")
    if not place.is_dir():
        raise OSError(0, "it is neither a folder nor a regular file")
    files: dict[str, int] = {}
    for entry in sorted(place.iterdir()):
        if len(files) >= MAX_FILES:
            break
        if entry.is_file():
            files[entry.name] = entry.stat().st_size
        elif entry.is_symlink():  # a link into a cache whose blob is missing
            files[entry.name] = -1
    return files


def _weights(
    root: Path, files: dict[str, int], problems: list[Problem]
) -> tuple[tuple[Shard, ...], tuple[GgufFile, ...]]:
    shards: list[Shard] = []
    ggufs: list[GgufFile] = []
    for name, size in files.items():
        lower = name.lower()
        if not lower.endswith((".safetensors", ".gguf")):
            if PICKLED.search(lower) and size > 1 << 20:
                problems.append(Problem(name, f"{name} is a pickled file: its tensors are not listed (no code is run)"))
            continue
        if size < 0:
            problems.append(Problem(name, f"{name} is a link to a file that is not there (an unfinished download)"))
            continue
        try:
            if lower.endswith(".gguf"):
                if not lower.startswith("mmproj"):
                    ggufs.append(read_gguf(root / name))
            else:
                shards.append(read_shard(root / name))
        except HeaderError as error:
            problems.append(Problem(name, str(error)))
        except OSError as error:
            problems.append(Problem(name, f"{name} cannot be read: {error.strerror or error}"))
    problems += [Problem(shard.name, why) for shard in shards for why in shard.problems[:20]]
    problems += [Problem(gguf.name, why) for gguf in ggufs for why in gguf.problems[:20]]
    return tuple(shards), tuple(ggufs)


def _json(path: Path, problems: list[Problem]) -> Any:
    try:
        return read_json(path)
    except FileNotFoundError:
        return None
    except ConfigError as error:
        if path.exists() or path.is_symlink():
            problems.append(Problem(path.name, str(error)))
    except OSError as error:
        problems.append(Problem(path.name, f"{path.name} cannot be read: {error.strerror or error}"))
    return None


def _index(path: Path, problems: list[Problem]) -> tuple[dict[str, str] | None, int | None]:
    content = _json(path, problems)
    mapping = content.get("weight_map") if isinstance(content, dict) else None
    if not isinstance(mapping, dict):
        if content is not None:
            problems.append(Problem(path.name, f"{path.name} holds no weight_map"))
        return None, None
    metadata = content.get("metadata")
    total = metadata.get("total_size") if isinstance(metadata, dict) else None
    return {str(k): str(v) for k, v in mapping.items()}, total if isinstance(total, int) else None


def facts_for_run(run: Run, model_dir: Path, draft_dir: Path | None = None) -> Iterator[Fact]:
    """Facts of the model folder as ``run`` served it: parallelism and types are read from the run's own arguments.

    What the log itself says is kept; only a state slot's size is made more exact where both agree within rounding.
    A folder of another architecture than the log names gives no more than that: its figures would mislead.
    """
    from analyzer.evidence.model_facts import fits, model_facts, serving_arguments, uses_own_draft

    folder = inspect_model(model_dir)
    fitting = list(fits(folder, run.facts))
    yield from fitting
    if any(fact.value is False for fact in fitting):
        return
    separate = draft_dir is not None and draft_dir.resolve() != model_dir.resolve()
    draft = inspect_model(draft_dir) if draft_dir is not None and separate else None
    version = run.version or (run.version_range[1] if run.version_range else "").lstrip("<=")
    facts = model_facts(folder, engine=run.engine or "sglang", version=version, draft=draft,
                        **serving_arguments(run.facts))  # fmt: skip
    own = draft is not None or uses_own_draft(run.facts)
    for fact in facts:
        if fact.name.startswith("draft.") and not own:
            continue
        said = run.facts.get(fact.name)
        if said is None or said.origin == "model-dir":
            yield fact
        if fact.name == "model.state_slot_bytes":
            slot = run.facts.get("state.slot_bytes")
            if slot is not None and abs(slot.value / fact.value - 1) < SLOT_ROUNDING:
                yield replace(fact, name="state.slot_bytes", origin="model-dir")
