"""Sources: files, standard input, folders, archives and object stores as byte chunks, with bounded memory.

``open_sources(paths)`` yields ``Source``s. What the bytes mean is not known here.
"""

from analyzer.sources.limits import Limits
from analyzer.sources.opening import open_sources
from analyzer.sources.pipes import Interrupt
from analyzer.sources.source import Source

__all__ = ["Interrupt", "Limits", "Source", "open_sources"]
