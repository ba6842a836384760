"""Units: what goes together when a rule is loaded."""

from __future__ import annotations

import pytest

from analyzer.diagnosis.check import Scope, infer
from analyzer.diagnosis.expression import ExpressionError, parse
from analyzer.diagnosis.units import describe


def unit(text: str) -> str:
    return describe(infer(parse(text), Scope()))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("pool.bytes / pool.tokens", "bytes_per_token"),
        ("pool.bytes_per_token * pool.tokens", "bytes"),
        ("pool.bytes / sizing.cell", "tokens"),
        ("pool.tokens / pool.block_tokens", "blocks"),
        ("pool.blocks * pool.block_tokens + 1 tokens", "tokens"),
        ("state.slots * state.slot_bytes + pool.bytes", "bytes"),
        ("limit.running * limit.context", "tokens"),
        ("limit.running + 1", "requests"),
        ("state.slots / state.slots_per_request", "ratio"),
        ("pool.bytes / gpu.total", "ratio"),
        ("gpu.total * sizing.fraction", "bytes"),
        ("sizing.cell * draft.layers / model.layers", "bytes_per_token"),
        ("max(pool.tokens, 0)", "tokens"),
        ("default(pool.tokens, 100)", "tokens"),
        ("spread(gpu.free_before_load)", "bytes"),
        ("args.mem_fraction_static * gpu.total", "any"),
        ("10 s / 2", "seconds"),
        ("count(kv_full) + 1", "count"),
        ("-pool.bytes", "bytes"),
        ("choose(spec.enabled, 1 GiB, pool.bytes)", "bytes"),
        ("floor(state.slots / state.slots_per_request) == limit.running", "true or false"),
        ("spec.draft_tokens > spec.layers", "true or false"),
        ("limit.running > limit.concurrency", "true or false"),
        ("free.after_pool > 0", "true or false"),
        ("pool.tokens < 1000", "true or false"),
        ("args.max_running_requests == 48", "true or false"),
        ('args.kv_cache_dtype in ["auto", 1]', "true or false"),
        ("sizing.fraction < 80%", "true or false"),
    ],
)
def test_units_that_come_out(text: str, expected: str) -> None:
    assert unit(text) == expected


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("pool.bytes + pool.tokens", "adds bytes and tokens"),
        ("pool.bytes - 3", "subtracts bytes and a bare number"),
        ("pool.bytes > pool.tokens", "compares bytes and tokens"),
        ("pool.bytes > 4", "compares bytes and a bare number"),
        ("sizing.cell > 1.15 * pool.bytes", "compares bytes_per_token and bytes"),
        ("limit.running + model.layers", "adds requests and layers"),
        ("state.slots == limit.running", "compares slots and requests"),
        ("min(pool.bytes, 10 s)", "takes the min of bytes and seconds"),
        ("default(pool.bytes, 1 tokens)", "falls back between bytes and tokens"),
        ("pool.bytes in [3, 4]", "compares bytes and a bare number"),
        ("pool.dtype > 3", "compares a name and a bare number"),
        ('pool.dtype < "b"', "a name has no order"),
        ("pool.dtype * 2", "multiplies by a name"),
        ("spec.enabled + 1", "computes with true or false"),
        ("pool.tokens and true", "tokens, not a condition"),
        ("not pool.bytes", "bytes, not a condition"),
        ('pool.tokens ~ "3"', "searches in tokens"),
        ("pool.token > 3", "near: pool.tokens"),
        ("frobnicate(1)", "no function 'frobnicate'"),
        ("min(1)", "takes 2 to 9 arguments, not 1"),
        ("spread(pool.tokens / 2)", "takes a fact's name"),
        ("version > 3", "write the version first"),
        ('version > "abc"', "'abc' is no version"),
        ('"0.5" < version', "write the version first"),
        ("pool.dtype in []", "empty list"),
        ("pool.tokens in [pool.bytes]", "constants only"),
    ],
)
def test_units_that_do_not_go_together(text: str, words: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        unit(text)
    assert words in str(caught.value)
