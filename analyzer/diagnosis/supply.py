"""How a fact that a log lacks can be supplied, where the rule itself does not say it."""

from __future__ import annotations

_WAYS: tuple[tuple[tuple[str, ...], str], ...] = (
    (("draft.weights.on_disk",), "give --model-dir (and --draft-dir for a draft of its own), or --draft-file-bytes"),
    (("draft.layers", "draft.arch"), "give --model-dir, and --draft-dir for a draft of its own"),
    (("weights.on_disk", "model."), "give --model-dir"),
    (("container.oom_killed",), "give --oom-killed if the container's State.OOMKilled is true"),
    (("container.", "failure.exit_code"), "give --exit-code"),
    (("load.", "spec.acceptance", "spec.accept_length", "spec.drafted", "spec.accepted"),
     "give a log that goes on into serving requests, or --metrics"),
    (("engine.version",), "give the log from its first line"),
)  # fmt: skip


def how_to_supply(name: str) -> str:
    """What the user can give to make fact ``name`` known; empty if only the log itself could hold it."""
    for prefixes, way in _WAYS:
        if name.startswith(prefixes):
            return way
    return ""
