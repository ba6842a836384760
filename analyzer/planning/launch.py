"""One launch that is planned: engine, version, device, the model's folder and the engine's own arguments."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from analyzer.evidence.components import Ranks
from analyzer.evidence.model_dir import ModelFolder
from analyzer.run.facts import Fact, Where
from analyzer.run.vocabulary import spec_of
from analyzer.units import GIB, number_or_none

PLACE = "plan"
SMALL_DEVICE = 70 * GIB


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure that no file gives: ``value`` with the range that it may lie in, and what it rests on."""

    name: str
    value: float
    low: float
    high: float
    basis: str


@dataclass(frozen=True, slots=True)
class Launch:
    """``args`` are keyed by canonical names (``analyzer.planning.flags``); ``total`` is the memory of one device."""

    engine: str
    version: str
    total: float
    folder: ModelFolder
    args: dict[str, Any] = field(default_factory=dict)
    spelled: dict[str, str] = field(default_factory=dict)
    other: tuple[str, ...] = ()
    draft: ModelFolder | None = None
    taken: float = 0.0
    """Memory that other programs hold on the device before the start."""
    weights_given: float = 0.0
    """Bytes of all weight files, where the folder holds only config and index; 0 for none."""
    known: dict[str, float] = field(default_factory=dict)
    """Figures of a real log of the same set-up, by estimate name; they replace the estimates."""
    known_from: str = ""

    def number(self, name: str, default: float = 0.0) -> float:
        """The argument ``name`` as a number."""
        value = number_or_none(self.args.get(name))
        return default if value is None else value

    def text(self, name: str) -> str:
        """The argument ``name`` as a text, ``""`` without it."""
        value = self.args.get(name)
        return "" if value is None else str(value)

    def on(self, name: str) -> bool:
        """Whether the switch ``name`` is given."""
        return self.args.get(name) is True

    @property
    def tp(self) -> int:
        """Tensor-parallel size."""
        return max(1, int(self.number("tensor_parallel_size", 1)))

    @property
    def pp(self) -> int:
        """Pipeline-parallel size."""
        return max(1, int(self.number("pipeline_parallel_size", 1)))

    @property
    def attention_dp(self) -> int:
        """Data-parallel attention groups inside TP (SGLang)."""
        return max(1, int(self.number("data_parallel_size", 1))) if self.on("enable_dp_attention") else 1

    @property
    def weights_total(self) -> float:
        """Bytes of all weights where the files are not there to be read: as given, else as the index says; else 0."""
        folder = self.folder
        if folder.shards or folder.ggufs:
            return 0.0
        return self.weights_given or float(folder.index_total or 0)

    def target_bytes(self, ranks: Ranks) -> float:
        """Bytes of the target on its largest rank; an even share where only the total is known."""
        if total := self.weights_total:
            return total / (self.tp * self.pp)
        return float(max(self.folder.rank_bytes(ranks).target, default=0))

    @property
    def ep(self) -> int:
        """Expert-parallel size."""
        if self.engine == "vllm":
            return (
                self.tp * max(1, int(self.number("data_parallel_size", 1))) if self.on("enable_expert_parallel") else 1
            )
        return max(1, int(self.number("expert_parallel_size", 1)))

    def changed(self, **args: Any) -> Launch:
        """The same launch with other arguments; None takes one away."""
        merged = {k: v for k, v in {**self.args, **args}.items() if v is not None}
        return replace(self, args=merged)

    def estimate(self, name: str, value: float, spread: float, basis: str) -> Estimate:
        """An estimate, ``spread`` times smaller or larger; the figure of a real log where one is known."""
        if (seen := self.known.get(name)) is not None:
            return Estimate(name, seen, seen * 0.98, seen * 1.02, f"as in {self.known_from}")
        return Estimate(name, value, value / spread, value * spread, basis)


def planned(name: str, value: Any, text: str = "", *, origin: str = "plan") -> Fact:
    """A fact of the plan. ``text`` says what it rests on."""
    return Fact(name, value, spec_of(name).unit, (Where(PLACE, 0, text or f"planned {name}"),), {"": value}, origin)
