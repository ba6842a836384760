"""Framing: bytes of a log in any chunking -> records, one message of one process each.

``frame(chunks, source)`` for a whole input, ``Framer(source)`` for a live one. Memory is bounded and the time linear.
"""

from analyzer.framing.framer import Framer, frame
from analyzer.framing.record import Record

__all__ = ["Framer", "Record", "frame"]
