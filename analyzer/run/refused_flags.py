"""A flag that the argument parser refused: which flag of the engine it looks like, or whose it is.

The names come from ``grammars/<engine>/flags.txt``. They are those of many releases, so what is found is a hint at the
spelling, no promise that the release at hand takes it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import SequenceMatcher
from functools import cache
from typing import Any

from analyzer.resources import data_dir
from analyzer.run.foreign import ENGINE_OF_PROGRAM

_UNKNOWN = re.compile(r"unrecognized arguments: (.*)")
_FLAG = re.compile(r"(?:^| )--([A-Za-z][\w-]*)")
_NAMES = {"sglang": "SGLang", "vllm": "vLLM"}
_ALIKE = 0.8
"""Likeness of two names from which one is taken for the other."""
_BEGIN = 8
"""Letters of a known name that a longer one must begin with to count as near."""
_SWITCH = re.compile(r"(enable|disable|no|enforce|use|skip)-")
_PAIRS = (
    ("mem-fraction-static", "gpu-memory-utilization"), ("context-length", "max-model-len"),
    ("max-running-requests", "max-num-seqs"), ("chunked-prefill-size", "max-num-batched-tokens"),
    ("tp-size", "tensor-parallel-size"), ("page-size", "block-size"), ("disable-cuda-graph", "enforce-eager"),
    ("cuda-graph-bs", "cudagraph-capture-sizes"), ("speculative-algorithm", "speculative-config"),
    ("speculative-num-draft-tokens", "speculative-config"), ("speculative-draft-model-path", "speculative-config"),
    ("disable-radix-cache", "no-enable-prefix-caching"), ("random-seed", "seed"), ("model-path", "model"),
    ("mamba-ssm-dtype", "mamba-ssm-cache-dtype"), ("schedule-policy", "scheduling-policy"),
)  # fmt: skip
"""Flags of SGLang and of vLLM that do the same."""


def facts_of_refusal(message: str, engine: str | None) -> dict[str, Any]:
    """What is known of the first flag in ``message`` of which anything is; ``engine`` if the program does not tell."""
    unknown = _UNKNOWN.search(message)
    if unknown is None:
        return {}
    program = message[: message.find(": error")].rsplit("\n", 1)[-1].split(" ")[0]
    engine = ENGINE_OF_PROGRAM.get(program, engine)
    refused = _FLAG.findall(unknown[1])
    if not refused or engine not in _NAMES:
        return {}
    for flag in refused:
        if found := _known(flag.replace("_", "-"), engine):
            return {"argument.refused": f"--{flag}", **found}
    return {"argument.refused": f"--{refused[0]}"}


def _known(flag: str, engine: str) -> dict[str, Any]:
    if flag in _flags(engine) or (flag.startswith("no-") and flag[3:] in _flags(engine)):
        return {"argument.other_release": _NAMES[engine]}
    other = "vllm" if engine == "sglang" else "sglang"
    if flag in _flags(other):
        return {"argument.other_engine": _NAMES[other], "argument.near": _counterpart(flag, other)}
    near = nearest(flag, _flags(engine))
    return {"argument.near": f"--{near}"} if near else {}


def _counterpart(flag: str, engine: str) -> str | None:
    for sglang, vllm in _PAIRS:
        if flag == (sglang if engine == "sglang" else vllm):
            return f"--{vllm if engine == 'sglang' else sglang}"
    return None


def nearest(flag: str, known: frozenset[str]) -> str | None:
    """The name among ``known`` that ``flag`` was probably meant to be; None if none is near, or several equally."""
    rated = sorted(((likeness, name) for name in known if (likeness := _likeness(flag, name)) >= _ALIKE), reverse=True)
    if not rated or (len(rated) > 1 and rated[0][0] == rated[1][0]):
        return None
    return rated[0][1]


def _likeness(flag: str, name: str) -> float:
    """How alike two names are, 0 to 1; what only shares the word that switches something on or off is not."""
    switch, other = _SWITCH.match(flag), _SWITCH.match(name)
    if switch and other and switch[1] != other[1]:
        return 0.0
    if switch and other:
        flag, name = flag[switch.end() :], name[other.end() :]
    if flag.startswith(name) and len(name) >= _BEGIN and "-" in name:
        return 0.8 + 0.2 * len(name) / len(flag)
    return max(_ratio(flag, name), *(_ratio("-".join(words), name) for words in _orders(flag, name)), 0.0)


def _orders(flag: str, name: str) -> Iterator[list[str]]:
    """The words of ``flag`` in the order in which they stand in ``name``, if they are the same."""
    words, wanted = flag.split("-"), name.split("-")
    if sorted(words) == sorted(wanted):
        yield wanted


def _ratio(one: str, other: str) -> float:
    matcher = SequenceMatcher(None, one, other, autojunk=False)
    return matcher.ratio() if matcher.real_quick_ratio() >= _ALIKE and matcher.quick_ratio() >= _ALIKE else 0.0


@cache
def _flags(engine: str) -> frozenset[str]:
    text = (data_dir("grammars") / engine / "flags.txt").read_text(encoding="utf-8")
    return frozenset(word for line in text.split("\n") if not line.startswith("#") for word in line.split())
