"""Progress on stderr while code is compiled, which can take a minute at the first decision.

After a second, one line says what is compiled, once for a process and those forked from it. If
stderr is a terminal, elapsed seconds follow, and are erased at the end. ``ONEBIT_PROGRESS=0`` hides
both. If compiled code is found on disk, nothing is shown.
"""

from __future__ import annotations

import mmap
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Event, Lock, Thread
from time import monotonic

VARIABLE = "ONEBIT_PROGRESS"
"""The environment variable that hides progress, if it is 0."""

SECONDS = 1.0
"""Time before the first line, and between two updates."""

_WIDTH = 79
_MAX_JOIN_SECONDS = 1.0

_WRITING = Lock()
"""Held while stderr is written, and during a fork: a child finds stderr's own locks free."""


class _Process:
    """The state of this process."""

    compiling = False
    announce: Callable[[str], None] | None = None


_announced = mmap.mmap(-1, 1)
"""One byte that forked processes share: whether any of them announced that it compiles."""


def announce_with(announce: Callable[[str], None]) -> None:
    """Announce with a function, such as a logger's, in place of lines on stderr."""
    _Process.announce = announce


def hide() -> None:
    """Show nothing, in this process and in those that it starts."""
    os.environ[VARIABLE] = "0"


@contextmanager
def compiling(what: str, where: Callable[[], object | None]) -> Iterator[None]:
    """Show that `what` is compiled; `where()` is the folder of its code, None if there is none."""
    if _Process.compiling or os.environ.get(VARIABLE) == "0":
        yield
        return
    _Process.compiling = True  # by this thread: Numba compiles in one at a time
    ended = Event()
    shown = Thread(target=_show, args=(what, where, ended), daemon=True)
    with suppress(RuntimeError):  # no thread can be started
        shown.start()
    try:
        yield
    finally:
        ended.set()
        if shown.ident is not None:
            # Some programs fork only while no other thread runs. But decisions must not wait for a
            # terminal that is stopped.
            shown.join(_MAX_JOIN_SECONDS)
        _Process.compiling = False


def _show(what: str, where: Callable[[], object | None], ended: Event) -> None:
    start = monotonic()
    if ended.wait(SECONDS):
        return
    if not _announced[0]:
        _announced[0] = 1
        announce = _Process.announce or (lambda line: _write(f"onebit: {line}\n"))
        announce(_line(what, where()))
    if _Process.announce is not None or not _is_terminal():
        return
    line = ""
    while not ended.is_set():
        line = f"onebit: compiling {what}, {monotonic() - start:.0f} s"[:_WIDTH]
        _write(f"\r{line}")
        ended.wait(SECONDS)
    _write(f"\r{' ' * len(line)}\r")


def _line(what: str, folder: object | None) -> str:
    how = (
        "in each process, as no folder for its code can be written: set NUMBA_CACHE_DIR"
        if folder is None
        else "once for this machine: up to a minute"
    )
    return f"compiling {what}, {how} ({VARIABLE}=0 hides this line)"


def _is_terminal() -> bool:
    try:
        return sys.stderr.isatty()
    except (AttributeError, ValueError):  # there is none, or it is closed
        return False


def _write(text: str) -> None:
    with _WRITING, suppress(AttributeError, OSError, ValueError):
        sys.stderr.write(text)
        sys.stderr.flush()


def _begin_child() -> None:
    _Process.compiling = False
    _WRITING.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_WRITING.acquire, after_in_parent=_WRITING.release, after_in_child=_begin_child
    )
