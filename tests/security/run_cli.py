"""The real program in a process of its own, with limits, as a user or a CI job meets it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = ROOT / "samples" / "sglang" / "dense_mf030.log"
CRASH = ROOT / "samples" / "failures" / "vllm_0.18.1_kv_too_small_hf.log"


def run(
    *args: str | Path,
    stdin: bytes | None = b"",
    timeout: float = 60,
    before: Callable[[], None] | None = None,
    env: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[bytes]:
    """``kvautopsy ARGS``. ``stdin=None`` closes standard input; ``before`` runs in the child (limits)."""
    command = [sys.executable, "-m", "analyzer", *map(str, args)]
    if stdin is None:
        command = ["sh", "-c", 'exec "$@" <&-', "sh", *command]
    return subprocess.run(
        command,
        input=stdin or b"",
        capture_output=True,
        timeout=timeout,
        cwd=ROOT,
        preexec_fn=before,
        env=None if env is None else dict(env),
        check=False,
    )


def quiet(done: subprocess.CompletedProcess[bytes]) -> str:
    """Standard error as text, after the check that it shows no inside of the program."""
    said = done.stderr.decode("utf-8", "replace")
    assert "Traceback (most recent call last)" not in said, said[-3000:]
    assert "Exception ignored" not in said, said[-3000:]
    return said
