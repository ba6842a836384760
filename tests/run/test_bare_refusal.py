# ruff: noqa: E501  (messages are quoted whole)
"""A start-up that was refused, of which only the sentence is left; ends that only an exit code tells."""

from __future__ import annotations

import pytest

from tests.vllm.read import line, read

_SENTENCE = (
    "The model's max seq len (29000) is larger than the maximum number of tokens that can be stored in KV cache (23648). "
    "Try increasing `gpu_memory_utilization` or decreasing `max_model_len` when initializing the engine.\n"
)
_SIZES = line("# GPU blocks: 1478, # CPU blocks: 2048", "")
_STATS = line(
    "Avg prompt throughput: 1.0 tokens/s, Avg generation throughput: 9.0 tokens/s, Running: 1 reqs, Swapped: 0 reqs, "
    "Pending: 0 reqs, GPU KV cache usage: 1.0%, CPU KV cache usage: 0.0%."
)


def test_the_sentence_alone_is_the_failure() -> None:
    run = read(_SIZES + _SENTENCE)
    assert run.outcome == "crashed at startup"
    assert run.failure is not None
    assert (run.failure.exception, run.failure.where[0].line) == ("ValueError", 2)


def test_a_traceback_that_says_the_same_is_the_better_witness() -> None:
    whole = 'Traceback (most recent call last):\n  File "/x/vllm/worker/worker.py", line 9, in initialize_cache\n    raise ValueError(\nValueError: '
    run = read(_SIZES + _SENTENCE + whole + _SENTENCE)
    assert run.failure is not None
    assert run.failure.frames[0].function == "initialize_cache"
    assert len([failure for failure in run.failures if not failure.consequence]) == 1


def test_a_server_that_serves_afterwards_was_not_refused() -> None:
    assert read(_SIZES + _SENTENCE + _STATS).failure is None
    assert read(_SIZES + line(_SENTENCE.strip()) + _STATS).failure is None


def test_a_server_that_served_before_was_not_refused() -> None:
    assert read(_STATS + _STATS + _SENTENCE).failure is None


@pytest.mark.parametrize(("status", "code"), [(132, -4), (135, -7), (136, -8), (137, -9), (139, -11)])
def test_the_status_of_a_worker_names_its_signal(status: int, code: int) -> None:
    run = read(_STATS + f"0s0n9esxgd0u45[error]worker exited with exit code {status}\n")
    assert run.outcome == "crashed at runtime"
    assert run.facts.value("failure.exit_code") == code


def test_an_ordinary_status_says_nothing_by_itself() -> None:
    assert read(_STATS + "0s0n9esxgd0u45[error]worker exited with exit code 1\n").failure is None


def test_a_worker_that_the_engine_ended_is_no_stop() -> None:
    died = "ERROR 02-17 00:38:52 multiproc_worker_utils.py:124] Worker VllmWorkerProcess pid 354 died, exit code: -15\n"
    cut = 'Process SpawnProcess-1:\nTraceback (most recent call last):\n  File "/x/vllm/engine/multiprocessing/engine.py", line 391, in run_mp_engine\n    raise e\n'
    run = read(_STATS + died + cut)
    assert run.outcome == "crashed at runtime"
    assert run.failure is not None
    assert run.failure.cut
    run = read(_STATS + died)
    assert (run.outcome, run.failure) == ("stopped", None)
    assert read(_STATS + died + _STATS).outcome == "serving"
