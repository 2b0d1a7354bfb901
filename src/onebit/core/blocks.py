"""Rows in blocks, between which other threads may use a learner and progress is reported."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from time import perf_counter

_BLOCK_SECONDS = 0.05
"""The time that a block takes, roughly.

A block cannot be interrupted, and other threads that use the learner wait for it.
"""


def blocks(n: int, ends: Sequence[int] = (), most: int | None = None) -> Iterator[tuple[int, int]]:
    """Yield the bounds of blocks of 0 .. n-1, whose size doubles until one takes long enough.

    A block ends at each of `ends`, which increase, and has at most `most` rows, if that is given.
    """
    most = n if most is None else most
    lo, size, later = 0, min(64, most), iter((*ends, n))
    end = next(later)
    while lo < n:
        while end <= lo:
            end = next(later)
        hi = min(lo + size, end, n)
        start = perf_counter()
        yield lo, hi
        if perf_counter() - start < _BLOCK_SECONDS:
            size = min(2 * size, most)
        lo = hi
