# ruff: noqa: E501  (messages are quoted whole)
"""What vLLM's Metal back end says where nothing is left for KV."""

from __future__ import annotations

import pytest

from analyzer.units import GIB
from tests.run.helpers import only

TEXT = (
    "ERROR 06-25 10:00:00 [core.py:1] Traceback (most recent call last):\n"
    'ERROR 06-25 10:00:00 [core.py:1]   File "/v/vllm/v1/engine/core.py", line 1, in _initialize_kv_caches\n'
    "ERROR 06-25 10:00:00 [core.py:1] ValueError: Paged attention: not enough Metal memory for KV cache. metal_limit=14.30GB, fraction=0.5, usable_metal=7.15GB, model_memory=5.32GB, overhead=2.06GB, kv_budget_before_hybrid=-0.23GB, kv_budget=-0.38GB.\n"
)


def test_the_budget_is_read_from_the_exception() -> None:
    facts = only(TEXT).facts
    assert facts.value("sizing.fraction") == 0.5
    for name, decimal in (("gpu.total", 14.30), ("weights.loaded", 5.32), ("pool.available_bytes", -0.38)):
        assert facts.value(name) == pytest.approx(decimal * 1e9), name
    assert facts.value("sizing.requested") / GIB == pytest.approx(6.659, abs=1e-3)
