"""Streams, as the command line names them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import onebit

SYNTHETIC = ("synsep", "synnonsep")
N_CLASSES = 9
"""Of the synthetic streams; a short one may not show them all."""


class Stream(NamedTuple):
    """A stream, opened: `batches()` goes through it from its beginning."""

    name: str
    n_rounds: int
    classes: list[Any]
    batches: Callable[[], Iterator[tuple[Any, Any]]]
    seconds: float
    """What it took to make it, or to look through it."""


def open_stream(name: str, rounds: int | None, seed: int) -> Stream:
    """Return a stream by its name, or that in a file."""
    start = perf_counter()
    if name.lower() in SYNTHETIC:
        name = name.lower()
        X, y = getattr(onebit.streams, name)(rounds or 100_000, seed=seed)
        return Stream(
            name, len(y), list(range(N_CLASSES)), lambda: iter([(X, y)]), perf_counter() - start
        )
    if name.lower() in onebit.streams.NAMES:
        name = name.lower()
        X, y = onebit.streams.load(name, seed=seed)
        labels = sorted(set(y.tolist()))
        X, y = X[:rounds], y[:rounds]
        return Stream(name, len(y), labels, lambda: iter([(X, y)]), perf_counter() - start)
    if not Path(name).is_file():
        known = ", ".join(onebit.streams.NAMES)
        raise ValueError(f"no stream {name!r}: it is neither a file nor one of {known}")
    file = onebit.streams.svmlight(name)
    n_rounds = file.n_examples if rounds is None else min(rounds, file.n_examples)
    return Stream(
        name,
        n_rounds,
        file.classes.tolist(),
        lambda: first_rounds(iter(file), n_rounds),
        perf_counter() - start,
    )


def first_rounds(batches: Iterator[tuple[Any, Any]], n: int) -> Iterator[tuple[Any, Any]]:
    """Yield batches until they had `n` examples."""
    for X, y in batches:
        yield X[:n], y[:n]
        n -= min(n, len(y))
        if not n:
            return
