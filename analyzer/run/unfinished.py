"""What was begun and not ended when the log stopped, by rank: a load, a pool, a graph capture, a long prefill."""

from __future__ import annotations

from analyzer.events import Event
from analyzer.run.facts import Where

_ANY_RANK = "*"
_STEPS: tuple[tuple[str, frozenset[str], frozenset[str]], ...] = (
    (
        "reading the configuration",
        frozenset({"non_default_args", "api_server_version", "banner"}),
        frozenset({"engine_init", "rank_assigned", "distributed_init", "load_start", "load_seconds"}),
    ),
    (
        "waiting for the engine's process",
        frozenset({"core_awaited"}),
        frozenset({"engine_init", "rank_assigned", "distributed_init", "load_start", "load_seconds", "core_ready"}),
    ),
    ("setting up communication between ranks", frozenset({"distributed_begin"}), frozenset({"distributed_end"})),
    (
        "loading weights",
        frozenset({"load_weight_begin", "load_start"}),
        frozenset({"load_weight_end", "load_seconds", "weights_loaded", "load_weight_committed"}),
    ),
    (
        "allocating the pool",
        frozenset({"swa_pool", "kv_cache_allocated", "mamba_cache_allocated"}),
        frozenset({"memory_pool_end", "pool_summary", "pool_summary_cut"}),
    ),
    (
        "capturing graphs",
        frozenset(
            {"target_graph_begin", "prefill_graph_begin", "draft_graph_begin", "draft_extend_graph_begin", "graph_bar"}
        ),
        frozenset(
            {"target_graph_end", "prefill_graph_end", "draft_graph_end", "draft_extend_graph_end"}
            | {"graphs_captured", "graph_compared", "engine_ready"}
        ),
    ),
)
_STEP_OF = {kind: (i, True) for i, (_, begins, _) in enumerate(_STEPS) for kind in begins}
_STEP_OF |= {kind: (i, False) for i, (_, _, ends) in enumerate(_STEPS) for kind in ends}
_FRONT_END = (0, 1)
"""Steps that the front end begins and another process ends."""
_REPEATED = "core_awaited"
"""Printed every ten seconds, also while the engine works: it begins nothing once a later step is known."""
STEP_KINDS = frozenset(_STEP_OF) | {"prefill_batch", "decode_batch", "http_access"}
"""Kinds that ``Unfinished.feed`` wants to see."""

_MOST_OPEN = 256
"""Steps followed at a time: each line of a step looks at all of them."""


class Unfinished:
    """Follows the steps of one run. ``open`` tells what is under way."""

    def __init__(self) -> None:
        self._open: dict[tuple[int, str], Event] = {}
        self._prefill: Event | None = None
        self._latest = 0

    def feed(self, event: Event) -> None:
        """Takes one recognised line."""
        if event.kind == "prefill_batch":
            self._prefill = event if (event.get("pending_tokens") or 0) > 0 else None
            return
        if event.kind in ("decode_batch", "http_access"):
            if event.kind == "decode_batch" or event.get("method") == "POST":
                self._prefill = None
            return
        if (found := _STEP_OF.get(event.kind)) is None:
            return
        step, begins = found
        if event.kind == _REPEATED and self._latest > step:
            return
        self._latest = max(self._latest, step if begins else step + 1)
        rank = _ANY_RANK if step in _FRONT_END else event.rank
        for key in [k for k in self._open if k[0] < step and k[1] in (rank, _ANY_RANK)]:
            del self._open[key]  # a later step has begun: the earlier one ended, whether or not its line is here
        if begins:
            if len(self._open) < _MOST_OPEN:
                self._open.setdefault((step, rank), event)
        else:
            self._open.pop((step, rank), None)

    @property
    def prefilling(self) -> bool:
        """Whether the last batch was a prefill that has more to do."""
        return self._prefill is not None

    def under_way(self, served: bool) -> tuple[str, Where] | None:
        """What is under way and where it began: the last step of the start-up, or the prefill of a serving run."""
        if served:
            return None if self._prefill is None else ("a long prefill", Where.of(self._prefill.record))
        if not self._open:
            return None
        (step, _), event = max(self._open.items(), key=lambda item: (item[0][0], item[1].line))
        ranks = sorted(rank for number, rank in self._open if number == step and rank not in ("", _ANY_RANK))
        name = _STEPS[step][0] + (f" (rank {', '.join(ranks[:8])})" if ranks else "")
        return name, Where.of(event.record)
