"""The short cut for plain engine lines gives what the long way gives."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from analyzer.framing import Framer, Record
from tests.framing.test_chunks import PIECES

LINES = [
    *PIECES,
    b"[2026-11-30 02:55:49.250 DP0 TP0] Decode batch, #running-req: 4, #queue-req: 0\n",
    b'[2026-11-30 02:55:49] INFO:     127.0.0.1:6 - "GET /health HTTP/1.1" 200 OK\n',
    b"[2026-11-30 02:55:49 encode_server]   indented\n",
    b"[2026-11-30 02:55:49] (APIServer pid=1) INFO 09-12 10:00:00 [a.py:1] an outer stamp\n",
    b"[2026-11-30 02:55:49] one [2026-11-30 02:55:50] two\n",
    b"[2026-13-30 02:55:49.5] no such month\n",
    b"(APIServer pid=1) INFO 09-12 10:00:00 [a.py:1] x\n",
    b"(APIServer pid=1) INFO 09-12 10:00:00 [a.py:1] \n",
    b"(APIServer pid=1) WARNING 09-12 10:00:00 [a.py:1] ends in a colon:\n",
    b"(EngineCore pid=2) DEBUG 09-12 10:00:00.123 [v1/a.py:1] x\n",
    b"(see below) INFO:     x\n",
    b"ERROR:    Exception in ASGI application\n",
    b"WARNING 08-26 19:18:49 api_server.py:440] old\n",
]


class LongWay(Framer):
    """A framer without the short cut."""

    def _plain(self, lines: list[str], number: int) -> None:
        for at, line in enumerate(lines):
            self._line(line, number + at, number + at)


def records(framer: Framer, data: bytes) -> list[Record]:
    return framer.feed(data) + framer.close()


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(LINES), max_size=60))
def test_equal(lines: list[bytes]) -> None:
    data = b"".join(lines)
    assert records(Framer("log", unwrap=False), data) == records(LongWay("log", unwrap=False), data)
