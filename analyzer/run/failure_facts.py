"""The facts of the first cause, by which the failure rules decide."""

from __future__ import annotations

from typing import Any

from analyzer.run import leaks
from analyzer.run.classify import Entry, engine_frame
from analyzer.run.model import Failure, Run
from analyzer.run.oom import write_oom
from analyzer.run.refused_flags import facts_of_refusal

_MAX_FRAMES = 60


def add_failure_facts(run: Run, cause: Failure, entry: Entry | None, startup: bool) -> None:
    """Writes ``failure.*`` into ``run.facts``. ``entry`` is the cause as it was collected.

    ``startup``: it kept a server from starting, or more likely so than not where the log is only a fragment.
    """
    where = cause.where
    frames = "\n".join(f"{f.file}:{f.function}" for f in cause.frames[-_MAX_FRAMES:])
    values: dict[str, Any] = {
        "failure.exception": cause.exception,
        "failure.message": cause.message,
        "failure.headline": cause.headline,
        "failure.kind": cause.kind,
        "failure.text": cause.text or cause.message,
        "failure.frames": frames or None,
        "failure.origin": cause.process or cause.rank or None,
        "failure.stage": cause.stage or None,
        "failure.cut": cause.cut,
        "failure.startup": startup,
        "failure.exit_code": entry.code if entry else None,
        "leak.text": leaks.explain(cause.text),
    }
    if frame := engine_frame(cause.frames):
        values["failure.engine_frame"] = f"{frame.file}:{frame.function}"
    if cause.exception == "bad arguments":
        values |= facts_of_refusal(cause.message, run.engine)
    if cause.frames:
        values["failure.raised_in"] = f"{cause.frames[-1].file}:{cause.frames[-1].function}"
    for name, value in values.items():
        run.facts.add(name, value, where, rank="")
    write_oom(cause.message, where, run.facts)
