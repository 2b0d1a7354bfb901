"""Long work of the event loop, in slices: requests are served in between."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable
from typing import TypeVar

T = TypeVar("T")

PART_BYTES = 2**16
"""Bytes of a long reply that are sent before requests get their turn."""

SLICE_SECONDS = 0.0001
"""Seconds of work before requests get their turn.

A thread would hold the interpreter for longer, as the operating system decides who runs next.
"""


TURNS = 8
"""Turns of the event loop that a request takes: from its arrival to its reply, with a write."""


async def give_way() -> None:
    """Wait until requests that came in the meantime are answered, not only begun."""
    for _ in range(TURNS):
        await asyncio.sleep(0)


async def in_parts(content: bytes) -> AsyncIterator[bytes]:
    """Yield content in parts, as sending much at once takes long."""
    view = memoryview(content)
    for i in range(0, len(content), PART_BYTES):
        yield bytes(view[i : i + PART_BYTES])
        await give_way()


async def in_slices(items: Iterable[T]) -> AsyncIterator[T]:
    """Yield items; requests are served in between."""
    start = time.perf_counter()
    for item in items:
        yield item
        if time.perf_counter() - start > SLICE_SECONDS:
            await asyncio.sleep(0)
            start = time.perf_counter()
