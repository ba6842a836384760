"""The records of a log do not depend on how its bytes were cut."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from analyzer.framing import frame
from tests.framing.support import cut

PIECES = [
    b"[2026-11-30 02:55:49 TP0] Memory pool end. avail mem=97.22 GB\n",
    b"[2026-11-30 02:55:49 TP1] Scheduler hit an exception: Traceback (most recent call last):\n",
    b'  File "/opt/a.py", line 1, in f\n',
    b"    x = \xe2\x96\x88\xff\n",
    b"ValueError: no\n",
    b"\n",
    b"\r  0%|   | 0/6 [00:00<?, ?it/s]\r100%|\xe2\x96\x88| 6/6 [00:00<00:00, 1it/s]\n",
    b"(Worker_TP0 pid=1) ERROR 09-12 10:00:00 [w.py:1] Traceback (most recent call last):\r\n",
    b'(Worker_TP0 pid=1) ERROR 09-12 10:00:00 [w.py:1]   File "a.py", line 2, in g\r\n',
    b"(Worker_TP0 pid=1) ERROR 09-12 10:00:00 [w.py:1] ValueError: no\n",
    b"\x1b[1;36m(APIServer pid=1)\x1b[0;0m INFO:     Shutting down\n",
    b"vllm-1  | INFO 09-12 10:00:00 [a.py:1] one\n",
    b"text(EngineCore pid=1) INFO 09-12 10:00:00 [a.py:1] glued\r\n",
    b"2026-06-24T17:38:02Z stdout P part\n",
    b"2026-06-24T17:38:02Z stdout F ial\n",
    b'{"log": "[2026-11-30 02:55:49] a\\n", "stream": "stderr"}\n',
    b"(RayWorkerWrapper pid=3) INFO 09-12 10:00:00 [a.py:1] x [repeated 3x across cluster]\n",
    b"no end of line",
    b"x" * 100 + b"\n",
]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=40), st.lists(st.integers(0, 5000), max_size=12))
def test_cuts_do_not_matter(pieces: list[bytes], places: list[int]) -> None:
    data = b"".join(pieces)
    assert list(frame(cut(data, places), "log")) == list(frame([data], "log"))


@settings(max_examples=30, deadline=None)
@given(st.lists(st.sampled_from(PIECES), min_size=300, max_size=600), st.integers(1, 400))
def test_beyond_the_first_window(pieces: list[bytes], size: int) -> None:
    data = b"".join(pieces)
    chunks = [data[at : at + size] for at in range(0, len(data), size)]
    assert list(frame(chunks, "log")) == list(frame([data], "log"))


@given(st.text(max_size=200))
def test_nothing_breaks_on_any_text(text: str) -> None:
    records = list(frame([text.encode("utf-8", "surrogatepass")], "log"))
    assert all(record.line <= record.last_line for record in records)
