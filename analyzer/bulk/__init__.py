"""Big logs by columns: the same report as line by line, many times faster.

A server that runs for days prints the same few kinds of line millions of times. From one example of a kind, matched by
the grammar, ``template`` makes the expression of all lines that differ from it in their figures only; ``claims`` finds
these in a block of lines with polars, and the lines in which no shape can match; ``series`` and ``effects`` fold them
by columns, so that the run stands as if each had been read by itself. All other lines go the ordinary way, in their
place (``lane``). No pattern is written a second time: what cannot be learnt from the grammar is read line by line.
"""

from analyzer.bulk.lane import Lane

__all__ = ["Lane"]
