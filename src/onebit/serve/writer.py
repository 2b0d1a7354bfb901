"""The one task that writes rows: many requests share one flush to disk."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from onebit.serve.log import Entry, ServiceLog, UnavailableError

if TYPE_CHECKING:
    from onebit.serve.live import LiveModel
    from onebit.serve.model import PendingDecision

MOST_ROWS = 5000
"""Maximum number of rows in a batch."""


class PendingRow(NamedTuple):
    """A row to be written, with its content and the decision that it is, or is about."""

    entry: Entry
    body: Any
    decision: PendingDecision | None = None


class _Write(NamedTuple):
    """Rows of a request, the future of their numbers, and since when they wait."""

    live: LiveModel
    rows: list[PendingRow]
    future: asyncio.Future[Any]
    since: float


class Writer:
    """Writes the rows of requests in the order in which they came.

    A batch is half of the concurrent requests: while it is being written to disk, the other half is
    answered and comes again. If all were written together, the processor would wait for the disk,
    and the disk for the processor. Where the processor waits anyway (`ServiceLog.at_once`), a batch
    has all of them.

    Parameters
    ----------
    log : ServiceLog
    written : callable
        Called with the arguments of `write` and the numbers of the rows, once they are on disk.

    Attributes
    ----------
    observe : callable
        Called with the number of rows of a batch, and the seconds it took.
    writing_since : float or None
        When the batch that is being written was begun (`time.monotonic`).
    failed_at : float or None
        When the last batch could not be written; None if it was.
    """

    def __init__(self, log: ServiceLog, written: Callable[..., None]) -> None:
        self._log, self._written = log, written
        self.observe: Callable[[int, float], None] = lambda rows, seconds: None
        self.writing_since: float | None = None
        self.failed_at: float | None = None
        self._queue: deque[_Write] = deque()
        self._batch: list[_Write] = []
        """What is being written."""
        self._some, self._ending = asyncio.Event(), False
        self._task: asyncio.Task[None] | None = None
        self._written_batch: asyncio.Future[None] | None = None
        """Future of the batch that is being written."""

    def start(self) -> None:
        """Begin to write."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        """Write what is left, and end."""
        self._ending = True
        self._some.set()
        if self._task is not None:
            await self._task

    def write(
        self, live: LiveModel, rows: list[PendingRow], future: asyncio.Future[Any] | None = None
    ) -> asyncio.Future[Any]:
        """Return a future of the numbers of the rows, or of LogError."""
        if future is None:
            future = asyncio.get_running_loop().create_future()
        self._queue.append(_Write(live, rows, future, time.monotonic()))
        self._some.set()
        return future

    def has_rows_of(self, live: LiveModel) -> bool:
        """Return whether rows of a model are to be written, or applied."""
        return any(write.live is live for some in (self._batch, self._queue) for write in some)

    async def settle(self) -> None:
        """Return once the rows that are being written now have been applied."""
        if self._written_batch is not None:
            await asyncio.wait([self._written_batch])

    async def _run(self) -> None:
        before = 0
        while self._queue or not self._ending:
            await self._some.wait()
            self._some.clear()
            while self._queue:
                most = MOST_ROWS if self._log.at_once else (len(self._queue) + before + 1) // 2
                seen = 0
                while seen < len(self._queue) < most:  # more are about to come
                    seen = len(self._queue)
                    await asyncio.sleep(0)
                self._batch = self._next_batch(most)
                if not self._batch:
                    continue
                before = len(self._batch)
                self._written_batch = asyncio.get_running_loop().create_future()
                await self._write_batch(self._batch)
                self._batch = []
                self._written_batch.set_result(None)

    def _next_batch(self, most: int) -> list[_Write]:
        batch: list[_Write] = []
        rows = 0
        while self._queue and len(batch) < most and rows < MOST_ROWS:
            write = self._queue.popleft()
            if self._is_late(write):
                _refuse([write], UnavailableError("rows waited too long to be written"))
            else:
                batch.append(write)
                rows += len(write.rows)
        return batch

    def _is_late(self, write: _Write) -> bool:
        """Return whether rows waited so long that there is too little time left to write them."""
        deadline = self._log.deadline
        return deadline is not None and time.monotonic() - write.since > deadline / 2

    async def _append(self, batch: list[_Write]) -> list[int]:
        entries = [row.entry for write in batch for row in write.rows]
        if self._log.deadline is None:
            return await self._log.append(entries)
        waited = time.monotonic() - min(write.since for write in batch)
        return await self._log.append(entries, self._log.deadline - waited)

    async def _write_batch(self, batch: list[_Write]) -> None:
        start = time.perf_counter()
        self.writing_since = time.monotonic()
        try:
            numbers = await self._append(batch)
        except Exception as error:
            self.failed_at = time.monotonic()
            if isinstance(error, UnavailableError):
                # What came in the meantime has waited as long, and would wait as long again.
                batch = [*batch, *self._queue]
                self._queue.clear()
            _refuse(batch, error)
            return
        finally:
            self.writing_since = None
        self.failed_at = None
        self.observe(len(numbers), time.perf_counter() - start)
        i = 0
        for live, rows, future, _ in batch:
            mine = numbers[i : i + len(rows)]
            i += len(rows)
            self._written(live, rows, mine)
            if not future.done():
                future.set_result(mine)


def _refuse(writes: list[_Write], error: Exception) -> None:
    for write in writes:
        if not write.future.done():
            write.future.set_exception(error)
            write.future.exception()  # the clients may be gone
