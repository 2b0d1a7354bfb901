"""A thread that waits for the disk, so that the event loop need not."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from queue import SimpleQueue
from threading import Thread
from typing import Any

_Work = tuple[Callable[[], Any], "asyncio.Future[Any]"]


class Committer:
    """A thread that does one task after the other.

    The standard library's executors do the same, but their overhead is as long as a disk write.
    """

    def __init__(self) -> None:
        self._queue: SimpleQueue[_Work | None] = SimpleQueue()
        self.submitted = 0
        """Tasks that are not done yet, as far as the event loop knows."""
        self._thread = Thread(target=self._run, name="commit", daemon=True)
        self._thread.start()

    def submit(self, work: Callable[[], Any]) -> asyncio.Future[Any]:
        """Do `work` in the thread; return a future of its result or exception."""
        future = asyncio.get_running_loop().create_future()
        self.submitted += 1
        self._queue.put((work, future))
        return future

    def end(self) -> None:
        """Do what is left, and end the thread."""
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (found := self._queue.get()) is not None:
            work, future = found
            try:
                result, error = work(), None
            except BaseException as raised:
                result, error = None, raised
            future.get_loop().call_soon_threadsafe(self._finish, future, result, error)

    def _finish(
        self, future: asyncio.Future[Any], result: Any, error: BaseException | None
    ) -> None:
        self.submitted -= 1
        if future.cancelled():
            return
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)
