"""Excerpts pasted out of order: a serving line older than the failure above it is no sign of life after it."""

from __future__ import annotations

from analyzer.pipeline import Analysis

_FAILURE = """\
ERROR 09-05 17:22:27 async_llm_engine.py:63] Engine background task failed
ERROR 09-05 17:22:27 async_llm_engine.py:63] Traceback (most recent call last):
ERROR 09-05 17:22:27 async_llm_engine.py:63]   File "/opt/vllm/engine/async_llm_engine.py", line 868, in engine_step
ERROR 09-05 17:22:27 async_llm_engine.py:63]     request_outputs = await self.engine.step_async(virtual_engine)
ERROR 09-05 17:22:27 async_llm_engine.py:63]   File "/opt/vllm/worker/model_runner.py", line 698, in build
ERROR 09-05 17:22:27 async_llm_engine.py:63]     max_query_len = max(query_lens)
ERROR 09-05 17:22:27 async_llm_engine.py:63] ValueError: max() arg is an empty sequence
"""
_PREEMPTED = (
    "WARNING 09-05 {time} scheduler.py:1355] Sequence group cmpl-0 is preempted by PreemptionMode.RECOMPUTE mode "
    "because there is not enough KV cache space. total_num_cumulative_preemption=1\n"
)


def _explain(text: str) -> tuple[str, str | None]:
    analysis = Analysis()
    reader = analysis.reader("pasted.log")
    reader.feed(text.encode())
    reader.close()
    run = analysis.report().runs[-1]
    return run.outcome, run.failure.exception if run.failure else None


def test_an_older_line_below_does_not_outlive_the_failure() -> None:
    assert _explain(_FAILURE + _PREEMPTED.format(time="17:10:02")) == ("crashed at runtime", "ValueError")


def test_a_preemption_shows_that_the_engine_serves() -> None:
    assert _explain(_PREEMPTED.format(time="17:10:02"))[0] in ("serving", "degraded")


def test_a_newer_line_below_shows_that_the_server_went_on() -> None:
    handled = _FAILURE.split("\n", 1)[1]  # without the line that says the engine is dead
    assert _explain(handled + _PREEMPTED.format(time="17:30:02"))[0] in ("serving", "degraded")
