"""Many runs at once: tables of runs, ranks, findings, events and series, read by local processes or a Ray cluster."""

from analyzer.fleet.audit import AuditOptions, audit

__all__ = ["AuditOptions", "audit"]
