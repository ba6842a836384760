"""A probe without an answer is no death, and what ends the server after it is the cause."""

from __future__ import annotations

from tests.run.helpers import only

BATCH = "[2026-10-02 15:01:17] Decode batch, #running-req: 4, #token: 313875, token usage: 0.36\n"
PROBE = "Health check failed. Server couldn't get a response from detokenizer for last 20 seconds.\n"
FAULT = "torch.AcceleratorError: CUDA error: operation not permitted\n"
NIXL = "2026-04-30 18:32:58 NIXL INFO  _api.py:361 Backend UCX was instantiated\n"


def test_what_ended_the_server_is_the_cause_and_not_the_probe_before_it() -> None:
    run = only(BATCH + PROBE + FAULT)
    assert (run.engine, run.outcome) == ("sglang", "crashed at runtime")
    assert run.failure is not None
    assert run.failure.exception == "torch.AcceleratorError"


def test_a_probe_that_was_outlived_is_no_request_of_a_client() -> None:
    run = only(PROBE + BATCH + FAULT)
    assert not any(failure.request_level for failure in run.failures)


def test_a_probe_alone_degrades_and_nixl_is_nobodys() -> None:
    run = only(NIXL + PROBE)
    assert (run.engine, run.outcome) == ("sglang", "degraded")
    assert only(NIXL + FAULT).engine is None


def test_a_watchdog_that_runs_out_shows_that_requests_were_under_way() -> None:
    fault = "Callback: Queue 0x7f1c30 aborting with error : HSA_STATUS_ERROR_EXCEPTION:\n"
    watchdog = "Scheduler watchdog timeout (self.watchdog_timeout=300, self.soft=False)\n"
    assert only(fault + watchdog).outcome == "crashed at runtime"
    assert only(fault).outcome != "crashed at runtime"
