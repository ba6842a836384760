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
        status = _run(_with_default_command(args))
    except UserError as error:
        _say(f"kvautopsy: {error}")
        status = error.status
    except BrokenPipeError:
        # The reader went away (head, less): nothing to report, and Python must not complain at exit either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 0
    except KeyboardInterrupt:
        status = 130
    sys.exit(status)


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


def _run(args: list[str]) -> int:
    import click

    from analyzer.cli.app import build_app

    command = build_app()
    try:
        result = command.main(args=args, prog_name="kvautopsy", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        _say(error.format_message())
        return 2
    except click.ClickException as error:
        error.show()
        return 2
    except click.exceptions.Abort:
        return 130
    return result if isinstance(result, int) else 0


def _say(text: str) -> None:
    from analyzer.redact import clean

    print(clean(text), file=sys.stderr)  # noqa: T201
