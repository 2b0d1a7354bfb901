"""Following a log that other processes write to, too."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from onebit.serve.live import LiveModel
from onebit.serve.log import LogError, LogHead
from onebit.serve.replaying import replay

if TYPE_CHECKING:
    from onebit.serve.service import Service

FOLLOW_SECONDS = 0.05
"""Seconds between two looks for what other processes wrote."""

LEAD_SECONDS = 1.0
"""Seconds between two attempts to lead models without a leader."""


class Follower:
    """Applies what other processes wrote, and notices models that they made or removed."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def run(self) -> None:
        """Follow the log, and lead models that have no leader."""
        service, tried = self._service, 0.0
        while True:
            try:
                await self.follow()
                if time.monotonic() - tried > LEAD_SECONDS:
                    led = await service.log.lead([live.key for live in service.live.values()])
                    for live in service.live.values():
                        live.is_leader = live.key in led
                    tried = time.monotonic()
            except Exception as error:
                service.log_error("following", error)
                for live in service.live.values():
                    live.is_leader = False
                tried = 0.0
                await asyncio.sleep(LEAD_SECONDS / 2)
            await asyncio.sleep(FOLLOW_SECONDS)

    async def follow(self) -> None:
        """Look once for what other processes wrote."""
        service, changes = self._service, -1
        heads: dict[str, LogHead] = {}
        while changes != service.changes:  # a list from before a change here may contradict it
            changes = service.changes
            heads = await service.log.heads()
        self._drop_removed(heads)
        for name, (key, head) in heads.items():
            if name not in service.live:
                if not service.is_known(name):
                    await service.read(name, key)
            elif service.live[name].key == key:
                await self._follow_model(service.live[name], head)

    def _drop_removed(self, heads: dict[str, LogHead]) -> None:
        service = self._service
        for name, live in list(service.live.items()):
            if name not in heads or heads[name].key != live.key:
                del service.live[name]
        for known in (service.failed, service.unread):
            for name, key in list(known.items()):
                if name not in heads or heads[name].key != key:
                    del known[name]

    async def _follow_model(self, live: LiveModel, head: int) -> None:
        live.head = max(live.head, head)
        if live.model.is_packed and not live.is_leader:
            return  # it follows once it is used
        if live.restoring is not None:
            return
        if live.head > live.model.n:
            await self._service.writer.settle()  # what was written here need not be read
        if live.head > live.model.n:
            await self.catch_up(live)

    async def catch_up(self, live: LiveModel) -> bool:
        """Apply all rows of a model's log; restore it, and return False, if one amends others."""
        if not live.free.is_set():
            return True
        service, live.following, is_complete = self._service, True, True
        try:
            is_complete = await replay(service.log, live.key, live.model)
            if not is_complete:
                service.restorer.begin(live)
        except LogError:
            raise
        except Exception:
            service.fail(live.name, live.key)
        else:
            service.applier.maybe_snapshot(live)
        finally:
            live.following = False
        return is_complete
