"""From the words of the command line to a launch and a target."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from analyzer.errors import UserError
from analyzer.evidence.model_dir import inspect_model
from analyzer.planning.flags import parse_flags, whole_number
from analyzer.planning.launch import Launch
from analyzer.planning.search import Target
from analyzer.units import GIB, parse_bytes


def launch_of(
    engine: str,
    version: str,
    gpu_memory: str,
    words: Sequence[str],
    *,
    draft_dir: Path | None = None,
    taken: str = "",
    weights: str = "",
) -> Launch:
    """The launch that ``words`` (model folder and engine flags) describe. Raises ``UserError`` for what is wrong."""
    if version and not re.match(r"v?\d+\.\d", version):
        raise UserError(f"--version {version}: write it like 0.5.17")
    flags = parse_flags(engine, words)
    folders = [word for word in flags.positional if Path(word).exists()]
    if not folders and flags.positional:
        raise UserError(f"there is no model folder {flags.positional[0]}", status=3)
    if len(folders) != 1:
        raise UserError(f"give one model folder, not {len(folders)}")
    draft = inspect_model(draft_dir) if draft_dir is not None else None
    return Launch(
        engine, version, _size("--gpu-memory", gpu_memory), inspect_model(folders[0]), flags.args, flags.spelled,
        flags.other, draft, _size("--taken", taken) if taken else 0.0,
        _size("--weights", weights) if weights else 0.0,
    )  # fmt: skip


def tokens_of(flag: str, text: str) -> int:
    """The number of tokens that ``text`` behind ``flag`` says. Raises ``UserError`` for none."""
    try:
        tokens = whole_number(text)
    except ValueError:
        tokens = 0
    if tokens < 1:
        raise UserError(f"{flag} {text}: give a number of tokens, like 32768 or 32k")
    return tokens


def target_of(launch: Launch, context: int | None, concurrency: int | None) -> Target | None:
    """What is searched for, None without a target. Without a context it is the one of the launch or the model.

    Raises ``UserError`` if neither has one.
    """
    if context is None and concurrency is None:
        return None
    name = "context_length" if launch.engine == "sglang" else "max_model_len"
    own = int(launch.number(name) or launch.folder.config.context or 0)
    if not (context or own):
        raise UserError("the model declares no context length: give --target-context")
    return Target(context or own, concurrency or 1)


def _size(flag: str, text: str) -> float:
    """A size; a bare number below 10,000 is GiB, as people say it."""
    try:
        if text.replace(".", "", 1).isdigit() and float(text) < 10_000:
            return float(text) * GIB
        size = float(parse_bytes(text))
    except ValueError as error:
        raise UserError(f"{flag} {text}: {error}") from None
    if not 0 < size < 1 << 50:
        raise UserError(f"{flag} {text}: no device has that much")
    return size
