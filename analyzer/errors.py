"""Errors that a user can act on."""

from __future__ import annotations


class UserError(Exception):
    """Something the user can mend: says what was wrong, where, and what to do.

    ``status`` is the process's exit status (contract.md): 2 wrong usage, 3 input that held nothing
    recognised or could not be read.
    """

    def __init__(self, message: str, *, status: int = 2) -> None:
        super().__init__(message)
        self.status = status


class OutputError(UserError):
    """A result that cannot be written: full disk, no permission, no such folder. No other input can mend it."""


class Terminated(KeyboardInterrupt):
    """SIGTERM: ends the program as Ctrl-C does, in order, with its own exit status."""
