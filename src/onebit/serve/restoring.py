"""Models that are rebuilt while they are in use, as a row has changed what earlier ones say."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from onebit.serve.amending import amendments_of
from onebit.serve.live import LiveModel
from onebit.serve.log import LogError
from onebit.serve.replaying import restore

if TYPE_CHECKING:
    from onebit.serve.service import Service

RETRY_SECONDS = 1.0
"""Seconds until the next attempt if the log could not be read."""


class Restorer:
    """Restores models from a snapshot before the first row that was changed.

    Until that is done, a model decides by its state before the change, applies no further rows, and
    is behind its log, as a model is behind the rows of other processes. What was changed meanwhile
    is included; further changes are taken together, after a pause that is as long as the work was.
    """

    def __init__(self, service: Service) -> None:
        self._service = service
        self._tasks: set[asyncio.Task[None]] = set()

    def begin(self, live: LiveModel) -> None:
        """Begin to restore a model, if that is not going on."""
        live.is_outdated = True
        if live.restoring is None:
            live.restoring = asyncio.get_running_loop().create_task(self._run(live))
            self._tasks.add(live.restoring)
            live.restoring.add_done_callback(self._tasks.discard)

    async def stop(self) -> None:
        """Stop what is going on; models are restored after the next start."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _run(self, live: LiveModel) -> None:
        service = self._service
        try:
            while service.live.get(live.name) is live:
                start = time.monotonic()
                try:
                    if await self._restore(live):
                        return
                except LogError as error:
                    service.log_error(f"restoring {live.name}", error)
                    await asyncio.sleep(RETRY_SECONDS)
                await asyncio.sleep(time.monotonic() - start)
        except Exception:
            service.fail(live.name, live.key)
        finally:
            live.restoring = None

    async def _restore(self, live: LiveModel) -> bool:
        """Replace a model by one that is made from its log; return False if it is amended since."""
        service = self._service
        n = live.model.n
        model, snapshot_at = await restore(service.log, live.key, service.processes)
        async with service.hold(live):
            live.model, live.snapshot_at, live.size = model, snapshot_at, model.size
            live.head, live.is_outdated = max(live.head, model.n), False
        for one in amendments_of(await service.log.amendments(live.key), model.n):
            if one.id is None and one.n > n:  # until now, this process knew decisions erased by it
                await service.log.sweep(live.key, one.since, one.n)
        while not live.free.is_set():
            await live.free.wait()
        return await service.follower.catch_up(live)
