"""Processes that play in parallel, forked from this one."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import active_children, get_context, parent_process
from threading import Thread, active_count
from typing import Any


def may_copy() -> bool:
    """Whether this process can be forked safely: not while another thread may hold a lock."""
    return sys.platform == "linux" and active_count() == 1


def in_copies(
    n_jobs: int, function: Callable[..., Any], calls: Iterable[tuple[Any, ...]]
) -> Iterator[Any]:
    """Yield the results of a function as they come; calls start in their order.

    A forked process has all modules and compiled code, which would take a new one seconds.
    """
    others = set(active_children())
    pool = ProcessPoolExecutor(n_jobs, get_context("fork"), _begin)
    try:
        futures = as_completed([pool.submit(function, *call) for call in calls])
        yield from (future.result() for future in futures)
    except BaseException:
        # Nobody waits for what is still being played, for minutes perhaps.
        for process in set(active_children()) - others:
            process.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _begin() -> None:
    """Make a process end when it is interrupted, or when its parent has ended."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
