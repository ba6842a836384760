"""kvautopsy: why an LLM server has the capacity it has, read from its log, with proof."""

__version__ = "0.1.0"
