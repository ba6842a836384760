"""Benchmarks: ratios in one run against public tools, because machines are noisy."""
