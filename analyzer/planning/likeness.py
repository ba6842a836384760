"""Figures of a real log of the same set-up, in place of the estimates of a plan (``--like LOG``)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from analyzer.errors import UserError
from analyzer.evidence.model_facts import model_facts, serving_arguments
from analyzer.planning.launch import Launch
from analyzer.run.model import Run


def like(launch: Launch, log: str) -> Launch:
    """``launch`` with the activation, graphs, context and loading overhead that ``log`` shows.

    Raises ``UserError`` (status 3) if the log holds no run of the same engine that got as far as its weights.
    """
    from analyzer.pipeline import Analysis
    from analyzer.sizing import model_for
    from analyzer.sources import open_sources

    analysis = Analysis()
    for source in open_sources([log]):
        reader = analysis.reader(source.name)
        for chunk in source.chunks():
            reader.feed(chunk)
        reader.close()
    runs = [r for r in analysis.runs() if r.engine == launch.engine]
    if not runs:
        raise UserError(f"{log} holds no run of {launch.engine}", status=3)
    run = max(runs, key=lambda r: len(r.facts))
    model_for(run)  # writes what the formulas derive
    known = _sglang(run, launch) if launch.engine == "sglang" else _vllm(run, launch)
    if not known:
        raise UserError(f"{log} shows none of the figures that a plan needs (weights, free memory, graphs)", status=3)
    return replace(launch, known=known, known_from=Path(log).name)


def _on_disk(run: Run, launch: Launch) -> float | None:
    facts = {f.name: f.value for f in model_facts(launch.folder, engine=launch.engine, version=launch.version,
                                                   **serving_arguments(run.facts))}  # fmt: skip
    value = facts.get("weights.on_disk")
    if value is None:
        return None
    own = launch.engine == "vllm" and run.facts.value("spec.enabled") is True
    return float(value) + (float(facts.get("draft.weights.on_disk") or 0) if own else 0.0)


def _loading(run: Run, launch: Launch) -> dict[str, float]:
    """Loaded less on disk, if the log is of the same model (otherwise the difference means nothing)."""
    loaded, on_disk = run.facts.number("weights.loaded"), _on_disk(run, launch)
    same = loaded is not None and on_disk and 0.97 < loaded / on_disk < 1.3
    return {"loading": max(0.0, loaded - on_disk)} if same and loaded is not None and on_disk else {}


def _sglang(run: Run, launch: Launch) -> dict[str, float]:
    known = _loading(run, launch)
    before = run.facts.number("gpu.free_least") or run.facts.number("gpu.free_before_load")
    if before is not None and 0 <= launch.total - before < 0.1 * launch.total:
        from analyzer.sizing.sglang_inputs import LATE_READING

        known["context"] = max(0.0, launch.total - before - LATE_READING)
    if (graphs := run.facts.number("graphs.bytes")) is not None:
        known["graphs"] = graphs
    return known


def _vllm(run: Run, launch: Launch) -> dict[str, float]:
    known = _loading(run, launch)
    for name, fact in (("activation", "activation.bytes"), ("non_torch", "non_torch.bytes"),
                       ("graphs", "graphs.applied")):  # fmt: skip
        if (value := run.facts.number(fact)) is not None and value > 0:
            known[name] = value
    if "graphs" not in known and (graphs := run.facts.number("graphs.bytes")):
        known["graphs"] = graphs
    return known
