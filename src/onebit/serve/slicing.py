"""Long work of the event loop, in slices: requests have their turn in between."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable
from typing import TypeVar

T = TypeVar("T")

SLICE_SECONDS = 0.0001
"""Seconds of work before requests get their turn.

A thread would hold the interpreter for longer, as the operating system decides who runs next.
"""


async def in_slices(items: Iterable[T]) -> AsyncIterator[T]:
    """Yield items, and let requests have their turn in between."""
    start = time.perf_counter()
    for item in items:
        yield item
        if time.perf_counter() - start > SLICE_SECONDS:
            await asyncio.sleep(0)
            start = time.perf_counter()
