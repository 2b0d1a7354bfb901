"""Whether the log can be written to now, without writing more than that needs."""

from __future__ import annotations

import asyncio
import contextlib
import time

from onebit.serve.log import LogError
from onebit.serve.service import Service

CHECK_SECONDS = 1.0
"""Minimum seconds between two checks of the log, however often someone asks."""

WAIT_SECONDS = 2.0
"""Maximum seconds to wait for a check, and for rows that are being written."""

FAILURE_SECONDS = 5.0
"""Seconds for which rows that could not be written count against the log."""


class Readiness:
    """Finds out whether a service can do its work.

    Any number of requests share one check of the log a second. That the log answers does not mean
    that rows are written: if those of requests wait, or could not be written, it is not ready.
    """

    def __init__(self, service: Service) -> None:
        self._service = service
        self._check: asyncio.Task[None] | None = None
        self._checked = -CHECK_SECONDS
        """When the last check ended."""

    async def fault(self) -> str | None:
        """Return why the service is not ready; None if it is."""
        service = self._service
        if failed := ", ".join(service.failed):
            return f"some models cannot continue with their logs: {failed}"
        now, writer = time.monotonic(), service.writer
        if writer.writing_since is not None and now - writer.writing_since > WAIT_SECONDS:
            return f"rows have been waiting for {now - writer.writing_since:.0f} s to be written"
        if writer.failed_at is not None and now - writer.failed_at < FAILURE_SECONDS:
            return "the last rows could not be written"
        return await self._fault_of_log()

    async def _fault_of_log(self) -> str | None:
        if self._check is None or (
            self._check.done() and time.monotonic() - self._checked >= CHECK_SECONDS
        ):
            self._check = asyncio.ensure_future(self._look())
        await asyncio.wait([self._check], timeout=WAIT_SECONDS)
        if not self._check.done():
            return f"the log did not answer within {WAIT_SECONDS:g} s"
        error = self._check.exception()
        if error is not None and not isinstance(error, LogError):
            raise error
        return None if error is None else str(error)

    async def _look(self) -> None:
        try:
            await self._service.log.check()
        finally:
            self._checked = time.monotonic()

    async def stop(self) -> None:
        """End a check."""
        if self._check is not None:
            self._check.cancel()
            with contextlib.suppress(asyncio.CancelledError, LogError):
                await self._check
