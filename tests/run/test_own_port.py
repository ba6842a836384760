"""A port of its own that is taken is a cause; the launcher's word on the process that ended for it is none."""

from __future__ import annotations

from tests.run.helpers import only

LOG = """\
[2026-09-22 06:49:56] server_args={'model_path': '/models/a', 'tokenizer_b
  File "/s/sglang/srt/managers/detokenizer_manager.py", line 124, in init_ipc_channels
zmq.error.ZMQError: Address already in use (addr='tcp://127.0.0.1:29236')
[2026-09-22 06:50:07] Received sigquit from a child process. It usually means the child failed.
RuntimeError: sglang subprocess exited with code -9 before reporting ready
"""


def test_an_address_in_use_is_the_cause() -> None:
    failure = only(LOG).failure
    assert failure is not None and failure.exception == "zmq.error.ZMQError"


def test_the_launchers_sentence_is_not_taken_for_the_cause() -> None:
    rest = LOG.split("\n", 3)[3]
    failure = only(LOG.split("\n", 1)[0] + "\n" + rest).failure
    assert failure is not None and failure.kind == "elsewhere"
