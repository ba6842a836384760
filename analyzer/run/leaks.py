"""SGLang's leak checks, recounted: which pool balances, which does not, by how much, and in which direction.

The engine names the pool whose check raised; the figures it prints cover others, too, and the one that leaks need not
be the one in the name. A pool balances if free + evictable + protected + held = size. Fewer means slots that nobody
gives back, more means slots that were given back twice.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

LEAK = re.compile(r"(?i)(?:memory|pool|mem) leak detected")
_PAIR = re.compile(r"\[(\w+)\] |([\w.]+)(?:\(\))?=(-?\d+)")
"""A pool's heading (``[swa] total=…``, from 0.5.14 on), or a name with its figure."""
_POOLS = (("mamba", "state pool"), ("swa", "window pool"), ("full", "token pool"), ("req_to_token", "request table"))
_PARTS = (("session_held", "held"), ("available", "free"), ("evictable", "evictable"), ("protected", "protected"),
          ("uncached", "uncached"))  # fmt: skip


@dataclass(slots=True)
class Balance:
    """The count of one pool, in slots or tokens."""

    pool: str
    size: int | None = None
    parts: dict[str, int] = field(default_factory=dict)

    @property
    def missing(self) -> int | None:
        """Slots that are nowhere (negative: slots that are there twice); None if the line does not tell."""
        return None if self.size is None or "free" not in self.parts else self.size - sum(self.parts.values())

    @property
    def sentence(self) -> str:
        """The count as a sentence."""
        count = " + ".join(f"{value:,} {name}" for name, value in self.parts.items() if value or name == "free")
        missing = self.missing or 0
        if missing == 0:
            return f"the {self.pool} balances ({count} = {self.size:,})"
        if missing > 0:
            return f"the {self.pool} lacks {missing:,} of {self.size:,} ({count})"
        return f"the {self.pool} counts {-missing:,} more than its {self.size:,} ({count}): something was freed twice"


def balances(text: str) -> list[Balance]:
    """The counts in the text of a leak check; those that do not balance first. Empty if it holds none."""
    found = LEAK.search(text)
    if found is None:
        return []
    request_table = "req_to_token_pool memory leak" in text
    pools: dict[str, Balance] = {}
    heading = ""
    for headed, name, value in _PAIR.findall(text[max(0, found.start() - 200) : found.start() + 4_000]):
        heading = headed or heading
        if headed:
            continue
        words = heading if name == "total" or any(word == name for word, _ in _PARTS) else name
        pool = next(
            (label for word, label in _POOLS if word in words), "request table" if request_table else "token pool"
        )
        balance = pools.setdefault(pool, Balance(pool))
        part = next((label for word, label in _PARTS if word in name), None)
        if part is not None:
            balance.parts.setdefault(part, int(value))
        elif name.endswith(("size", "max_total_num_tokens")) or name == "total":
            balance.size = int(value)
    complete = [b for b in pools.values() if b.missing is not None]
    return sorted(complete, key=lambda b: b.missing == 0)


def explain(text: str) -> str | None:
    """The recount as one text; None if ``text`` is no leak check or has no figures."""
    found = balances(text)
    return "; ".join(b.sentence for b in found) + "." if found else None
