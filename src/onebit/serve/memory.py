"""Memory of learners: those that nobody uses are packed."""

from __future__ import annotations

import asyncio
import time

from onebit.serve.live import LiveModel
from onebit.serve.packing import packed

IDLE_SECONDS = 60.0
"""Seconds after which the learners of a model that nobody uses are packed."""

PACK_SECONDS = 1.0
"""Seconds between two looks for learners to pack."""


class Memory:
    """Packs learners of models that nobody uses.

    Parameters
    ----------
    live : dict
        The models in use, by name.
    most : int
        Bytes that learners which are not packed may take.
    """

    def __init__(self, live: dict[str, LiveModel], most: int) -> None:
        self._live, self._most = live, most
        self._packing = asyncio.Lock()

    async def pack_idle(self) -> None:
        """Pack learners that nobody uses, and those used least recently if there are too many."""
        while True:
            await asyncio.sleep(PACK_SECONDS)
            await self.make_room()
            for live in self._unpacked():
                live.size = live.model.size  # labels and shadows come and go
                if time.monotonic() - live.used_at > IDLE_SECONDS:
                    await self.pack(live)

    async def make_room(self) -> None:
        """Pack learners while those in use take more memory than they may.

        Whoever needs another one waits for it, so that none come faster than others go.
        """
        async with self._packing:
            for live in self._unpacked():
                if sum(other.size for other in self._live.values()) <= self._most:
                    return
                await self.pack(live)

    async def pack(self, live: LiveModel) -> bool:
        """Pack the learners of a model; return False if it is used in the meantime."""
        model, state = live.model, (live.used_at, live.model.n)
        if model.is_packed or live.deciding or live.answering or not live.free.is_set():
            return False
        found = await asyncio.to_thread(packed, model.learners)
        if state != (live.used_at, model.n) or live.deciding or live.answering:
            return False
        if live.model is not model:  # it was restored
            return False
        model.pack(found)
        live.size = 0
        return True

    async def unpack(self, live: LiveModel) -> None:
        """Unpack the learners of a model."""
        await self.make_room()
        await asyncio.to_thread(live.model.unpack)
        live.size = live.model.size

    def _unpacked(self) -> list[LiveModel]:
        """Return the models whose learners are not packed, the one used least recently first."""
        found = (live for live in self._live.values() if not live.model.is_packed)
        return sorted(found, key=lambda live: live.used_at)
