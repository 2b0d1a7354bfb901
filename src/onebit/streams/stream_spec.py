"""Streams as users specify them: a name or a file, and transformations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from onebit.streams.changes import CHANGES
from onebit.streams.formats import from_file
from onebit.streams.named import NAMES, load
from onebit.streams.synthetic import N_CLASSES_OF, SYNTHETIC
from onebit.streams.transformed import Batches, in_memory, noisy, repeated, shuffled, unit_length

SYNTHETIC_ROUNDS = 100_000
"""Default number of rounds of a synthetic stream."""


class OpenedStream(NamedTuple):
    """An opened stream: `batches()` iterates over it from the beginning."""

    name: str
    n_rounds: int
    classes: list[Any]
    batches: Callable[[], Iterator[tuple[Any, Any]]]
    seconds: float
    """Time that it took to make it, or to scan it."""


@dataclass(frozen=True)
class StreamSpec:
    """A stream, by its name or in a file, and its transformations.

    Parameters
    ----------
    name : str
        One of `NAMES`, or the path of a file.
    rounds : int, optional
        Number of examples, from the first on; by default all, or 100,000 of synthetic streams.
    label : str, optional
        The column of the label, in files that are tables.
    unit : bool, default=False
        Divide each example by its norm.
    noise : float in [0, 1], default=0
        Probability with which a label is replaced by another one.
    shuffle : bool, default=False
        Play in random order; a file is then read into memory. Named streams are shuffled unless
        they are requested in their natural order.
    epochs : int, default=1
    order : {"shuffled", "natural"}, default="shuffled"
        Order of a named stream, see `load`.
    prepared : bool, default=True
        Whether the columns of a named stream are prepared as `load` says, or left raw.
    only : tuple of labels, default=()
        Only examples with these labels, if any are given.
    change : str, default=""
        One of `CHANGES`, applied to the requested rounds.
    """

    name: str
    rounds: int | None = None
    label: str | None = None
    unit: bool = False
    noise: float = 0.0
    shuffle: bool = False
    epochs: int = 1
    order: str = "shuffled"
    prepared: bool = True
    only: tuple[Any, ...] = ()
    change: str = ""

    @property
    def is_file(self) -> bool:
        """Whether it is a file, not a name."""
        return self.name.lower() not in NAMES

    def check(self) -> None:
        """Raise if it is neither a name nor a file, or has an unknown change."""
        if self.change and self.change not in CHANGES:
            raise ValueError(f"no change {self.change!r}: there are {', '.join(CHANGES)}")
        if self.is_file and Path(self.name).is_dir():
            raise ValueError(f"{self.name}: a stream is a file, and this is a folder")
        if self.is_file and not Path(self.name).is_file():
            known = ", ".join(NAMES)
            raise ValueError(f"no stream {self.name!r}: it is neither a file nor one of {known}")

    def open(self, seed: int = 0) -> OpenedStream:
        """Return the stream; the seed determines all draws."""
        self.check()
        start = perf_counter()
        name, stream, n_rounds, classes = self._source(seed)
        if self.only:
            stream = [_with_labels(in_memory(stream), self.only)]
            n_rounds, classes = len(stream[0][1]), sorted(self.only)
        if self.shuffle:
            stream = [shuffled(stream, seed=seed)]
        if self.rounds is not None and self.rounds < n_rounds:
            n_rounds, whole = self.rounds, stream
            stream = Batches(lambda: first_rounds(whole, n_rounds))
        if self.change:
            stream = [CHANGES[self.change].make(*in_memory(stream), seed)]
        if self.noise:
            stream = noisy(stream, noise=self.noise, classes=classes, seed=seed)
        if self.unit:
            stream = unit_length(stream)
        if self.epochs != 1:
            stream = repeated(stream, epochs=self.epochs)
        total, ready = n_rounds * self.epochs, stream
        return OpenedStream(name, total, classes, lambda: iter(ready), perf_counter() - start)

    def _source(self, seed: int) -> tuple[str, Any, int, list[Any]]:
        """Return name, batches, number of examples and classes of the stream as it is."""
        name = self.name.lower()
        if not self.is_file and self.label is not None:
            raise ValueError(f"{name!r} has its labels: a column is for files")
        if name in SYNTHETIC:
            X, y = SYNTHETIC[name](self.rounds or SYNTHETIC_ROUNDS, seed=seed)
            return name, [(X, y)], len(y), list(range(N_CLASSES_OF[name]))
        if name in NAMES:
            X, y = load(name, seed=seed, order=self.order, prepared=self.prepared)
            return name, [(X, y)], len(y), sorted(set(y.tolist()))
        options = {} if self.label is None else {"label": self.label}
        file = from_file(self.name, **options)
        classes = file.classes.tolist()
        if len(classes) == 1:
            raise ValueError(f"{self.name}: all examples have the label {classes[0]!r}")
        return self.name, file, file.n_examples, classes


def _with_labels(stream: tuple[Any, np.ndarray], only: tuple[Any, ...]) -> tuple[Any, Any]:
    """Return the examples with some of the labels; each of these must occur."""
    X, y = stream
    missing = set(only) - set(y.tolist())
    if missing:
        raise ValueError(f"no example has the label {sorted(missing)[0]!r}")
    wanted = np.isin(y, only)
    return X[wanted], y[wanted]


def first_rounds(batches: Iterable[tuple[Any, Any]], n: int) -> Iterator[tuple[Any, Any]]:
    """Yield batches until they have had `n` examples."""
    for X, y in batches:
        yield X[:n], y[:n]
        n -= min(n, len(y))
        if not n:
            return
