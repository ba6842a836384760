"""The command line: one module per command, none of them holds logic."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from analyzer.cli.stopping import end_in_order, stopped
from analyzer.errors import UserError
from analyzer.lean import run_lean

_GLOBAL = {"--help", "-h", "--version", "--install-completion", "--show-completion"}

_REPAIR = "Install it anew, with what it needs: pip install --upgrade --force-reinstall kvautopsy (or pip install .)"


def main(argv: Sequence[str] | None = None) -> None:
    """Runs the command line and leaves with the exit status of contract.md."""
    args = list(sys.argv[1:] if argv is None else argv)
    run_lean()
    _open_streams()
    end_in_order()
    try:
        from analyzer.cli.app import build_app

        status = build_app()(args=_with_default_command(args), prog_name="kvautopsy", standalone_mode=False)
    except UserError as error:
        _say(f"kvautopsy: {error}")
        sys.exit(error.status)
    except KeyboardInterrupt as error:
        _say(f"kvautopsy: {stopped(error)}")
        sys.exit(stopped(error).status)
    except OSError as error:  # of --help and --version; a command's own are told by it
        from analyzer.cli.streams import forget_output, refused

        forget_output()
        _say(f"kvautopsy: {refused(error)}")
        sys.exit(2)
    except ImportError as error:
        if (error.name or "").partition(".")[0] == "analyzer":
            raise
        _say(f"kvautopsy: a package that it needs does not load: {error}\n{_REPAIR}")
        sys.exit(2)
    except Exception as error:
        sys.exit(_say_usage(error))
    sys.exit(status if isinstance(status, int) else 0)


def _open_streams() -> None:
    """What is printed to a closed stream (``>&-``) goes nowhere."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open("w"))  # noqa: SIM115


def _with_default_command(args: list[str]) -> list[str]:
    """``kvautopsy server.log`` and ``… | kvautopsy`` mean ``kvautopsy explain …``; so do its options alone.

    A word that looks like a path is one, even if nothing is there: that is then said of it.
    """
    if not args:
        return args if sys.stdin is None or sys.stdin.isatty() else ["explain"]
    first = args[0]
    from analyzer.cli.app import SHORT

    if first in SHORT or first in _GLOBAL or "_KVAUTOPSY_COMPLETE" in os.environ:
        return args
    if first.startswith("-") or any(sign in first for sign in "./*?"):
        return ["explain", *args]
    try:
        return ["explain", *args] if os.path.lexists(first) else args
    except (OSError, ValueError):  # no name of a file
        return args


def _say_usage(error: Exception) -> int:
    """Prints what typer says of a wrong use, which quotes what was typed; the exit status. Others are raised again."""
    if type(error).__name__ == "Abort":  # what typer makes of an interrupt
        return 130
    if not (hasattr(error, "show") and hasattr(error, "exit_code")):
        raise error
    import io

    told = io.StringIO()
    error.show(told)
    _say(told.getvalue().rstrip("\n"))
    return int(error.exit_code)


def _say(text: str) -> None:
    from analyzer.redact import clean

    print(clean(text), file=sys.stderr)  # noqa: T201
