"""Locks on files, between processes.

They are POSIX locks, which end with the process that holds them. Where there are none, as on
Windows, `lock` raises: two services on one log, or two sweeps in one folder, would damage it.
"""

from __future__ import annotations

import errno
from typing import IO

try:
    import fcntl
except ImportError:  # missing on Windows
    fcntl = None  # type: ignore[assignment]

CAN_LOCK = fcntl is not None
"""Whether files can be locked on this system."""


def lock(file: IO[bytes] | IO[str] | int, *, wait: bool = True) -> None:
    """Lock an open file until it is closed.

    If another process holds it, wait, or raise BlockingIOError. Where files cannot be locked, raise
    OSError.
    """
    if fcntl is None:
        raise OSError(errno.ENOTSUP, "files cannot be locked on this system, which has no fcntl")
    fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
