"""Turns that threads take with one learner.

Compiled code trusts the state it is given, and runs over a stream without the interpreter's lock:
two threads in one state would corrupt memory. So whoever touches a state holds the learner's lock
while it does. A run over a stream lets go of it after each block of rounds; those who wait then
come first, as nobody gets the lock twice while another one queues for it.

Around a fork all learners are held, so that a child process finds whole states and free locks.
"""

from __future__ import annotations

import os
from threading import Lock, RLock
from weakref import WeakSet


class Turns:
    """A lock that is handed on to those who wait for it.

    ``with turns:`` queues. Where that takes too long, as in single rounds, `lock` is taken without
    a queue if it is free: ``lock.acquire(False) or turns.wait()``.
    """

    __slots__ = ("__weakref__", "_queue", "lock")

    def __init__(self) -> None:
        # The same thread may take it again: a user's function that a kernel calls may look at the
        # learner.
        self.lock = RLock()
        self._queue = Lock()
        _ALL.add(self)

    def wait(self) -> bool:
        """Take the lock when those who came before have had it."""
        if self.lock._is_owned():  # type: ignore[attr-defined]
            return self.lock.acquire()
        with self._queue:
            return self.lock.acquire()

    def __enter__(self) -> None:
        self.wait()

    def __exit__(self, *_: object) -> None:
        self.lock.release()


_ALL: WeakSet[Turns] = WeakSet()
_FORKING = Lock()
"""Held by the one thread that forks, which alone may touch `_held`."""
_held: list[Turns] = []


def _hold_all() -> None:
    _FORKING.acquire()
    while new := [turns for turns in _all() if turns not in _held]:  # others start meanwhile
        for turns in new:
            turns._queue.acquire()
            turns.lock.acquire()
            _held.append(turns)


def _all() -> list[Turns]:
    while True:
        try:
            return list(_ALL)
        except RuntimeError:  # another thread starts a learner
            continue


def _release_all() -> None:
    while _held:
        turns = _held.pop()
        turns.lock.release()
        turns._queue.release()
    _FORKING.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_hold_all, after_in_parent=_release_all, after_in_child=_release_all)
