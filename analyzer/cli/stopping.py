"""Ctrl-C and SIGTERM: the program ends in order, leaves nothing half written, and says so in a sentence."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from analyzer.errors import Terminated, UserError

if TYPE_CHECKING:
    from analyzer.sources import Interrupt


def end_in_order() -> None:
    """Lets SIGTERM end the program as Ctrl-C does. A caller that handles the signal itself keeps its own way."""

    def terminate(*_: object) -> None:
        raise Terminated

    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        try:
            signal.signal(signal.SIGTERM, terminate)
        except ValueError:  # not the main thread
            pass


@contextmanager
def keeping_what_came() -> Iterator[Interrupt]:
    """Lets the first Ctrl-C end the reading of a pipe and not the program; whatever else it meets ends at once.

    A terminal sends it to every process of a pipeline, so the server in front ends for it as well.
    """
    from analyzer.sources import Interrupt

    interrupt = Interrupt()

    def ask(*_: object) -> None:
        if interrupt.asked or not interrupt.heard:
            raise KeyboardInterrupt
        interrupt.asked = True

    old = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or old is not signal.default_int_handler:
        yield interrupt
        return
    signal.signal(signal.SIGINT, ask)
    try:
        yield interrupt
    finally:
        signal.signal(signal.SIGINT, old)


def stopped(error: KeyboardInterrupt) -> UserError:
    """The sentence on a program that was stopped, with what is left if something is, and a shell's exit status."""
    what, status = ("terminated", 143) if isinstance(error, Terminated) else ("interrupted", 130)
    return UserError(what + (f": {error}" if str(error) else ""), status=status)
