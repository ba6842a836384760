"""What the system says against standard output: one sentence, and no second complaint at the program's end."""

from __future__ import annotations

import errno
import os
import sys

from analyzer.errors import UserError

_OF_WRITING = {
    errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF, errno.EAGAIN, errno.ENXIO,
}  # fmt: skip


def forget_output() -> None:
    """Drops what could not be written, of which Python would complain when it flushes at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def refused(error: OSError) -> UserError:
    """The sentence on an error of the system that no one answered: of a named file, of the output, or of neither."""
    if error.filename:
        place = f"{error.filename}"
    else:
        place = "standard output" if error.errno in _OF_WRITING else "the system refused"
    return UserError(f"{place}: {error.strerror or error}")
