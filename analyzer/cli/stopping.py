"""Ctrl-C and SIGTERM: the program ends in order, leaves nothing half written, and says so in a sentence."""

from __future__ import annotations

import signal

from analyzer.errors import Terminated, UserError


def end_in_order() -> None:
    """Lets SIGTERM end the program as Ctrl-C does. A caller that handles the signal itself keeps its own way."""

    def terminate(*_: object) -> None:
        raise Terminated

    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        try:
            signal.signal(signal.SIGTERM, terminate)
        except ValueError:  # not the main thread
            pass


def stopped(error: KeyboardInterrupt) -> UserError:
    """The sentence on a program that was stopped, with what is left if something is, and a shell's exit status."""
    what, status = ("terminated", 143) if isinstance(error, Terminated) else ("interrupted", 130)
    return UserError(what + (f": {error}" if str(error) else ""), status=status)
