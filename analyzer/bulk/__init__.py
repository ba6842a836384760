"""Big logs by columns: the same report as line by line, many times faster.

A server that runs for days prints the same few kinds of line millions of times. From one example of a kind, matched by
the grammar, ``template`` makes the tokens of all lines that differ from it in their figures only; ``extract`` walks
through those lines all at once (``cursor``); ``claims`` sorts a block of lines into templates, lines in which no shape
can match, and the rest; ``series`` and ``effects`` fold the claims by columns, so that the run stands as if each line
had been read by itself. All other lines go the ordinary way, in their place (``lane``). No pattern is written a second
time: what cannot be learnt from the grammar is read line by line.
"""

from analyzer.bulk.lane import Lane

__all__ = ["Lane"]
