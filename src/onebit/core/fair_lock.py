"""The locks of learners, for threads, forked processes and interrupts.

Compiled code trusts the state it is given, and runs over a stream without the GIL: two threads in
one state would corrupt memory. So a thread holds the learner's lock while it uses the state. A
stream releases the lock after each block of rounds, and waiting threads are served first: no thread
gets the lock twice while another one queues for it.

A fork waits until no other thread is in a round, or compiles, so that the child process finds
consistent states and free locks. It never deadlocks: a thread that forks inside a round of its own,
as a user's classifier may, waits for no learner, since the others may wait for its own; any other
thread waits for at most `LONGEST_WAIT`. A learner that another thread still uses then has an
incomplete state in the child, where its lock cannot be acquired and an error says why.

Starting a learner takes no lock that a started one needs: a copy is started, and a single
assignment gives its run to the learner (`BaseLearner._validated`). `start_lock` only avoids doing
this twice.

Python raises KeyboardInterrupt between any two of its instructions. If it is raised right after
`acquire`, the surrounding `except` releases the lock; `release` is a single instruction.
"""

from __future__ import annotations

import _thread
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any
from weakref import WeakSet

from onebit.core.compiling import compiler_lock

RLock: Any = _thread.RLock
"""Untyped, as its methods for forks, which `threading` itself uses, are not in the type stubs."""

LONGEST_WAIT = 120.0
"""Most seconds that a fork waits for other threads, which may be compiling for a minute."""


class FairLock(RLock):
    """A re-entrant lock that waiting threads acquire in the order in which they came.

    ``with lock:`` queues. In single rounds, where queueing would take too long, it is acquired
    directly if it is free: ``lock.acquire(False) or lock.wait()``. It is re-entrant because a
    user's function that a kernel calls, or a signal handler, may use the learner.
    """

    __slots__ = ("_lost", "_queue")

    def __init__(self) -> None:
        self._lost = False
        self._queue = RLock()
        _ALL.add(self)

    def wait(self) -> bool:
        """Acquire the lock after all threads that queued earlier."""
        if self._is_owned():
            return self.acquire()
        if self._lost:
            raise RuntimeError(
                "another thread was using this learner when this process was forked, and its state "
                "is incomplete here: load it from a file, or fork while no thread uses it"
            )
        try:
            with self._queue:
                return self.acquire()
        except BaseException:
            self.release_if_owned()
            raise

    __enter__ = wait

    def release_if_owned(self) -> None:
        """Release the lock if this thread holds it: an interrupt may come before it is acquired."""
        if self._is_owned():
            self.release()

    def _begin_process(self) -> None:
        """Reset the lock in a forked process, which has no other threads."""
        self._queue = RLock()
        if self._is_owned():
            return
        free = self.acquire(False)
        self._at_fork_reinit()
        if not free and self not in _held:
            self._lost = True
            self._acquire_restore((1, _NOBODY))


_NOBODY = 1
"""The identifier of no thread: a lock that it holds is never released."""

_ALL: WeakSet[FairLock] = WeakSet()

_start_locks: dict[int, Any] = {}
"""A lock for each learner that is being started, by its `id`."""


@contextmanager
def start_lock(learner: Any) -> Iterator[None]:
    """Exclude other threads from starting this learner."""
    lock = _start_locks.setdefault(id(learner), RLock())
    try:
        with lock:
            yield
    finally:
        _start_locks.pop(id(learner), None)


# Forks

_FORKING = RLock()
"""Held by a thread that waits for others before it forks."""

_held: list[FairLock] = []
"""The locks of idle learners that the thread with `_FORKING` holds."""


class _HeldByThread(threading.local):
    """The locks that this thread holds for its forks; a signal handler may fork during a fork."""

    def __init__(self) -> None:
        self.locks: list[list[Any]] = []


_held_by_thread = _HeldByThread()


def _before_fork() -> None:
    locks: list[Any] = []
    _held_by_thread.locks.append(locks)
    if not any(lock._is_owned() for lock in _all()):
        _FORKING.acquire()
        locks.append(_FORKING)
        _hold_all(locks)
    # Last: a thread may compile during a round, but none waits for a round while it compiles.
    compiler_lock.acquire()
    locks.append(compiler_lock)


def _hold_all(locks: list[Any]) -> None:
    end, seen = monotonic() + LONGEST_WAIT, set[FairLock]()
    while new := [lock for lock in _all() if lock not in seen]:  # others may start meanwhile
        for lock in new:
            seen.add(lock)
            if not lock._queue.acquire(timeout=max(0.0, end - monotonic())):
                continue
            locks.append(lock._queue)
            if lock.acquire(timeout=max(0.0, end - monotonic())):
                locks.append(lock)
                _held.append(lock)


def _all() -> list[FairLock]:
    while True:
        try:
            return list(_ALL)
        except RuntimeError:  # another thread started a learner
            continue


def _after_fork() -> None:
    locks = _held_by_thread.locks.pop()
    if _FORKING in locks:
        _held.clear()
    while locks:
        locks.pop().release()


def _after_fork_in_child() -> None:
    for lock in _all():
        lock._begin_process()
    _after_fork()
    _held.clear()
    _start_locks.clear()
    if not _FORKING._is_owned():
        _FORKING._at_fork_reinit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork_in_child
    )
