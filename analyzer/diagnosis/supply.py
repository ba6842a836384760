"""How a fact that a log lacks can be supplied, where the rule itself does not say it."""

from __future__ import annotations

from analyzer.run.model import Run

_FROM_THE_START = "give the log from its first line"
_WAYS: tuple[tuple[tuple[str, ...], str], ...] = (
    (("draft.weights.on_disk",), "give --model-dir (and --draft-dir for a draft of its own), or --draft-file-bytes"),
    (("draft.layers", "draft.arch"), "give --model-dir, and --draft-dir for a draft of its own"),
    (("weights.on_disk", "model."), "give --model-dir"),
    (("container.oom_killed",), "give --oom-killed if the container's State.OOMKilled is true"),
    (("container.", "failure.exit_code"), "give --exit-code"),
    (("load.", "spec.acceptance", "spec.accept_length", "spec.drafted", "spec.accepted"),
     "give a log that goes on into serving requests, or --metrics"),
    (("engine.version",), _FROM_THE_START),
)  # fmt: skip


_BEFORE_SERVING = ("arguments", "init", "weights", "pool")


def how_to_supply(name: str, run: Run) -> str:
    """What the user can give to make fact ``name`` of ``run`` known; empty if nothing can."""
    for prefixes, way in _WAYS:
        if name.startswith(prefixes):
            return way
    return _FROM_THE_START if lacks_start(run) else ""


def lacks_start(run: Run) -> bool:
    """Whether the run got as far as serving, but the log shows nothing of its start."""
    return run.stage in ("ready", "serving", "shutdown") and not any(stage in run.stages for stage in _BEFORE_SERVING)
