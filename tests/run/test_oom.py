"""Whose memory it was when an allocation failed."""

from __future__ import annotations

import pytest

from analyzer.run.facts import Facts, Where
from analyzer.run.oom import write_oom
from analyzer.units import GIB

_NEWER = (
    "CUDA out of memory. Tried to allocate 1.02 GiB. GPU 0 has a total capacity of {} GiB of which {} MiB is free. "
    "{}Including non-PyTorch memory, this process has {} GiB memory in use. Of the allocated memory 14.22 GiB is "
    "allocated by PyTorch, and 19.91 MiB is reserved by PyTorch but unallocated."
)
_OLDER = (
    "NPU out of memory. Tried to allocate 22.00 MiB (NPU 6; 60.97 GiB total capacity; 10.24 GiB already allocated; "
    "{}19.79 MiB free; 10.65 GiB reserved in total by PyTorch) If reserved memory is >> allocated memory try"
)


def _facts(message: str) -> Facts:
    facts = Facts()
    write_oom(message, (Where("a.log", 1, message),), facts)
    return facts


def test_a_device_that_the_process_itself_filled() -> None:
    facts = _facts(_NEWER.format(15.47, 857.31, "", 14.61))
    assert facts.value("oom.own") == pytest.approx(14.61 * GIB)
    assert facts.value("oom.foreign") < 0.1 * GIB


def test_what_others_hold_is_the_rest() -> None:
    facts = _facts(_NEWER.format(79.11, 100.0, "Process 4711 has 39.00 GiB memory in use. ", 39.9))
    assert facts.value("oom.own") == pytest.approx(39.9 * GIB)
    assert facts.value("oom.foreign") == pytest.approx((79.11 - 100 / 1024 - 39.9) * GIB)


@pytest.mark.parametrize("active", ["10.24 GiB current active; ", ""])
def test_the_older_sentence_leaves_room_for_what_it_does_not_count(active: str) -> None:
    facts = _facts(_OLDER.format(active))
    assert facts.value("oom.free") == pytest.approx(19.79 / 1024 * GIB)
    assert facts.value("oom.foreign") == pytest.approx((60.97 - 19.79 / 1024 - 10.65 - 4) * GIB)


def test_other_messages_say_nothing() -> None:
    assert len(_facts("CUDA error: out of memory")) == 0
