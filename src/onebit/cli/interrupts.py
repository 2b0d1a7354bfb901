"""Interrupts while modules are imported, which takes a second or more."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import current_thread, main_thread
from types import FrameType
from typing import NoReturn


@contextmanager
def quiet_interrupts() -> Iterator[None]:
    """Exit at once on Ctrl-C, without a traceback: there is nothing to clean up."""
    default = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if not default or current_thread() is not main_thread():
        yield
        return
    signal.signal(signal.SIGINT, _exit)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _exit(number: int, frame: FrameType | None) -> NoReturn:
    os._exit(128 + number)
