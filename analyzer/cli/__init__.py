"""The command line: one module per command, none of them holds logic."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from analyzer.errors import UserError

COMMANDS = (
    "explain", "events", "follow", "attach", "prove-spec", "inspect", "plan", "audit", "query", "compare", "rules",
    "docs",
)  # fmt: skip
_GLOBAL = {"--help", "-h", "--version", "--install-completion", "--show-completion"}


def main(argv: Sequence[str] | None = None) -> None:
    """Runs the command line and leaves with the exit status of contract.md."""
    args = list(sys.argv[1:] if argv is None else argv)
    try:
        from analyzer.cli.app import build_app

        build_app()(args=_with_default_command(args), prog_name="kvautopsy")
    except UserError as error:
        _say(f"kvautopsy: {error}")
        sys.exit(error.status)
    except KeyboardInterrupt:
        sys.exit(130)


def _with_default_command(args: list[str]) -> list[str]:
    """``kvautopsy server.log`` and ``… | kvautopsy`` mean ``kvautopsy explain …``."""
    if not args:
        return args if sys.stdin is None or sys.stdin.isatty() else ["explain"]
    first = args[0]
    if first in COMMANDS or first in _GLOBAL or "_KVAUTOPSY_COMPLETE" in os.environ:
        return args
    from pathlib import Path

    if first == "-" or (not first.startswith("-") and Path(first).exists()):
        return ["explain", *args]
    return args


def _say(text: str) -> None:
    from analyzer.redact import clean

    print(clean(text), file=sys.stderr)  # noqa: T201
