"""Long work in blocks, between which others may use a learner and progress is reported."""

from __future__ import annotations

from collections.abc import Iterator
from time import perf_counter

_PAUSE = 0.05
"""Seconds of compiled code, about, between two reports of progress.

It cannot be interrupted, and other threads that use the learner wait for it.
"""


def blocks(n: int) -> Iterator[tuple[int, int]]:
    """Yield the ends of blocks of 0 .. n-1 whose work, between two yields, takes about _PAUSE."""
    lo, size = 0, 64
    while lo < n:
        hi = min(lo + size, n)
        start = perf_counter()
        yield lo, hi
        if perf_counter() - start < _PAUSE:
            size *= 2
        lo = hi
