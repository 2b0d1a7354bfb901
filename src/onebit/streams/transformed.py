"""Transformed streams: noisy labels, shuffled, repeated, or normalised.

Each function takes a stream as `onebit.play` does, a pair (X, y) or an iterable of batches, and
returns one of the same kind. Batches can be iterated as often as those that were given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import normalize

from onebit.streams.moving import checked_stream
from onebit.streams.synthetic import check_noise, replaced


class Batches:
    """Batches that are regenerated for each `iter`."""

    def __init__(self, make: Callable[[], Iterator[tuple[Any, np.ndarray]]]) -> None:
        self._make = make

    def __iter__(self) -> Iterator[tuple[Any, np.ndarray]]:
        return self._make()


def noisy(
    X: Any,
    y: Any = None,
    *,
    noise: float,
    classes: Any = None,
    replace_by: str = "other",
    seed: int = 0,
) -> Any:
    """Return the stream with each label replaced with probability `noise`.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_rounds, n_features), or iterable of batches
    y : array-like of shape (n_rounds,)
        None for batches.
    noise : float in [0, 1]
    classes : array-like, optional
        All labels; needed for batches. By default those in `y`.
    replace_by : {"other", "any"}, default="other"
        By one of the other labels, or by any of them, which may be the right one.
    seed : int, default=0

    Returns
    -------
    X, y, or batches

    Examples
    --------
    >>> import numpy as np
    >>> from onebit import streams
    >>> X, y = np.ones((1000, 1)), np.array(["a", "b"] * 500)
    >>> _, noisy = streams.noisy(X, y, noise=0.1)
    >>> int((noisy != y).sum())
    89
    """
    check_noise(noise, replace_by)
    if y is None and classes is None:
        raise ValueError("noise in batches needs classes=...: all labels there can be")
    known = np.unique(y if classes is None else classes)
    if known.size < 2:
        raise ValueError(f"wrong labels need at least two classes; got {known.size}")

    def replace(labels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        codes = np.searchsorted(known, labels).clip(max=known.size - 1)
        if not np.array_equal(known[codes], labels):
            unknown = np.asarray(labels)[known[codes] != labels][0]
            raise ValueError(f"unknown label {unknown.item()!r}: it is none of the classes")
        return known[replaced(codes, known.size, noise, replace_by, rng)]

    if y is not None:
        X, y = checked_stream(X, y)
        return X, replace(y, np.random.default_rng(seed))

    def batches() -> Iterator[tuple[Any, np.ndarray]]:
        rng = np.random.default_rng(seed)
        return ((rows, replace(labels, rng)) for rows, labels in X)

    return Batches(batches)


def shuffled(X: Any, y: Any = None, *, seed: int = 0) -> Any:
    """Return the stream with its rows in a random order.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_rounds, n_features), or iterable of batches
        Batches are all read into memory; X and y are returned.
    y : array-like of shape (n_rounds,)
        None for batches.
    seed : int, default=0

    Returns
    -------
    X, y

    Examples
    --------
    >>> import numpy as np
    >>> from onebit import streams
    >>> streams.shuffled(np.eye(4), np.arange(4), seed=0)[1].tolist()
    [2, 0, 1, 3]
    """
    X, y = in_memory(X) if y is None else checked_stream(X, y)
    order = np.random.default_rng(seed).permutation(len(y))
    return X[order], y[order]


def repeated(X: Any, y: Any = None, *, epochs: int) -> Any:
    """Return the stream `epochs` times, one after the other, as batches of one epoch or less.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_rounds, n_features), or iterable of batches
        Batches must be iterable more than once.
    y : array-like of shape (n_rounds,)
        None for batches.
    epochs : int, at least 1

    Returns
    -------
    batches

    Examples
    --------
    >>> import numpy as np
    >>> from onebit import Perceptron, play, streams
    >>> X, y = np.eye(3), np.arange(3)
    >>> play(Perceptron(classes=y), streams.repeated(X, y, epochs=5)).rounds
    15
    """
    if epochs < 1:
        raise ValueError(f"epochs is at least 1; got {epochs}")
    if y is None and iter(X) is X and epochs > 1:
        raise ValueError("these batches can be iterated only once: epochs must be 1")
    once: Iterable[tuple[Any, np.ndarray]] = X if y is None else [checked_stream(X, y)]
    return Batches(lambda: (batch for _ in range(epochs) for batch in once))


def unit_length(X: Any, y: Any = None) -> Any:
    """Return the stream with each example divided by its Euclidean norm; 0 stays 0.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_rounds, n_features), or iterable of batches
    y : array-like of shape (n_rounds,)
        None for batches.

    Returns
    -------
    X, y, or batches

    Examples
    --------
    >>> import numpy as np
    >>> from onebit import streams
    >>> streams.unit_length(np.array([[3.0, 4.0], [0.0, 0.0]]), np.array([0, 1]))[0].tolist()
    [[0.6, 0.8], [0.0, 0.0]]
    """
    if y is not None:
        X, y = checked_stream(X, y)
        return _normalised(X), y
    return Batches(lambda: ((_normalised(rows), labels) for rows, labels in X))


def in_memory(stream: Iterable[tuple[Any, np.ndarray]]) -> tuple[Any, np.ndarray]:
    """Return batches as one pair (X, y)."""
    batches = list(stream)
    if len(batches) == 1:
        return batches[0]
    parts, labels = zip(*batches, strict=True)
    X = sp.vstack(parts, format="csr") if sp.issparse(parts[0]) else np.concatenate(parts)
    return X, np.concatenate(labels)


def _normalised(X: Any) -> Any:
    X = normalize(X)
    return sp.csr_array(X) if sp.issparse(X) else X
