"""Turns that threads take with one learner.

Compiled code trusts the state it is given, and runs over a stream without the GIL: two threads in
one state would corrupt memory. So a thread holds the learner's lock while it uses the state. A run
over a stream releases the lock after each block of rounds; threads that wait come next, as no
thread gets the lock twice while another one queues for it.

During a fork the locks of all learners are held, so that the child process finds consistent states
and free locks.
"""

from __future__ import annotations

import os
from threading import Lock, RLock
from weakref import WeakSet


class Turns:
    """A fair lock: it is handed to the threads that wait, in their order.

    ``with turns:`` queues. Where queueing would take too long, as in single rounds, `lock` is taken
    directly if it is free: ``lock.acquire(False) or turns.wait()``.
    """

    __slots__ = ("__weakref__", "_queue", "lock")

    def __init__(self) -> None:
        # Re-entrant, as a user's function that a kernel calls may use the learner.
        self.lock = RLock()
        self._queue = Lock()
        _ALL.add(self)

    def wait(self) -> bool:
        """Take the lock after all threads that came before."""
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
"""Held by the thread that forks, which alone may use `_held`."""
_held: list[Turns] = []


def _hold_all() -> None:
    _FORKING.acquire()
    while new := [turns for turns in _all() if turns not in _held]:  # others may start meanwhile
        for turns in new:
            turns._queue.acquire()
            turns.lock.acquire()
            _held.append(turns)


def _all() -> list[Turns]:
    while True:
        try:
            return list(_ALL)
        except RuntimeError:  # another thread started a learner
            continue


def _release_all() -> None:
    while _held:
        turns = _held.pop()
        turns.lock.release()
        turns._queue.release()
    _FORKING.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_hold_all, after_in_parent=_release_all, after_in_child=_release_all)
