"""Processes that play at the same time, as copies of this one."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context, parent_process
from threading import Thread, active_count
from typing import Any


def may_copy() -> bool:
    """Whether a copy of this process can work: one made while a thread holds a lock cannot."""
    return sys.platform == "linux" and active_count() == 1


def in_copies(
    n_jobs: int, function: Callable[..., Any], calls: Iterable[tuple[Any, ...]]
) -> Iterator[Any]:
    """Yield what a function returns, as it comes; calls begin in their order.

    A copy has all modules and compiled code at once, which takes a new process seconds.
    """
    pool = ProcessPoolExecutor(n_jobs, get_context("fork"), _begin)
    try:
        futures = as_completed([pool.submit(function, *call) for call in calls])
        yield from (future.result() for future in futures)
    finally:
        pool.shutdown(cancel_futures=True)


def _begin() -> None:
    """Let a process end when it is interrupted, or when nobody waits for its results any more."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
