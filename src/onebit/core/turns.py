"""The locks of learners, for threads, forked processes and interrupts.

Compiled code trusts the state it is given, and runs over a stream without the GIL: two threads in
one state would corrupt memory. So a thread holds the learner's lock while it uses the state. A run
over a stream releases the lock after each block of rounds; threads that wait come next, as no
thread gets the lock twice while another one queues for it.

A fork waits until no other thread is in a round, or compiles, so that the child process finds
consistent states and free locks. It never deadlocks: a thread that forks inside a round of its own,
as a user's classifier may, waits for no learner, since the others may wait for its own; any other
thread waits for at most `LONGEST_WAIT`. A learner that another thread still uses then has an
incomplete state in the child, where its lock cannot be acquired and an error says why.

To start a learner takes no lock that a started one needs: a run is built aside, and a single
assignment makes it the learner's (`Learner._validated`). `starting` only avoids doing it twice.

Python raises KeyboardInterrupt between any two of its instructions. Where it comes right after
`acquire`, the lock is released by the `except` around it; `release` is one instruction.
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
"""Its methods for forks, which `threading` itself relies on, are not in the types."""

LONGEST_WAIT = 120.0
"""Seconds that a fork waits for other threads, which may compile for a minute in a round."""


class Turns(RLock):
    """A fair lock: it is handed to the threads that wait, in their order.

    ``with turns:`` queues. Where queueing would take too long, as in single rounds, it is acquired
    directly if it is free: ``turns.acquire(False) or turns.wait()``. It is re-entrant, as a user's
    function that a kernel calls, or a signal handler, may use the learner.
    """

    __slots__ = ("_lost", "_queue")

    def __init__(self) -> None:
        self._lost = False
        self._queue = RLock()
        _ALL.add(self)

    def wait(self) -> bool:
        """Acquire the lock after all threads that came before."""
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
        """Release the lock after an error, which an interrupt may raise before it is acquired."""
        if self._is_owned():
            self.release()

    def _begin_process(self) -> None:
        """Make the lock usable in a forked process, where other threads are gone."""
        self._queue = RLock()
        if self._is_owned():
            return
        free = self.acquire(False)
        self._at_fork_reinit()
        if not free and self not in _held:
            self._lost = True
            self._acquire_restore((1, _NOBODY))


_NOBODY = 1
"""Identifies no thread: what it holds is never released."""

_ALL: WeakSet[Turns] = WeakSet()

_starting: dict[int, Any] = {}
"""A lock for each learner that is being started, by its `id`."""


@contextmanager
def starting(learner: Any) -> Iterator[None]:
    """Wait until no other thread starts this learner."""
    lock = _starting.setdefault(id(learner), RLock())
    try:
        with lock:
            yield
    finally:
        _starting.pop(id(learner), None)


# Forks

_FORKING = RLock()
"""Held by a thread that waits for others in order to fork."""

_held: list[Turns] = []
"""What the thread with `_FORKING` holds, of learners that nobody is using."""


class _Own(threading.local):
    """The locks that this thread holds for its forks; a signal handler may fork during a fork."""

    def __init__(self) -> None:
        self.locks: list[list[Any]] = []


_own = _Own()


def _before_fork() -> None:
    locks: list[Any] = []
    _own.locks.append(locks)
    if not any(turns._is_owned() for turns in _all()):
        _FORKING.acquire()
        locks.append(_FORKING)
        _hold_all(locks)
    # Last, as a thread may compile in a round, while none that compiles waits for a round.
    compiler_lock.acquire()
    locks.append(compiler_lock)


def _hold_all(locks: list[Any]) -> None:
    end, seen = monotonic() + LONGEST_WAIT, set[Turns]()
    while new := [turns for turns in _all() if turns not in seen]:  # others may start meanwhile
        for turns in new:
            seen.add(turns)
            if not turns._queue.acquire(timeout=max(0.0, end - monotonic())):
                continue
            locks.append(turns._queue)
            if turns.acquire(timeout=max(0.0, end - monotonic())):
                locks.append(turns)
                _held.append(turns)


def _all() -> list[Turns]:
    while True:
        try:
            return list(_ALL)
        except RuntimeError:  # another thread started a learner
            continue


def _after_fork() -> None:
    locks = _own.locks.pop()
    if _FORKING in locks:
        _held.clear()
    while locks:
        locks.pop().release()


def _after_fork_in_child() -> None:
    for turns in _all():
        turns._begin_process()
    _after_fork()
    _held.clear()
    _starting.clear()
    if not _FORKING._is_owned():
        _FORKING._at_fork_reinit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork_in_child
    )
