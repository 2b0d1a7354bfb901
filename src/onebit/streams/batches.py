"""Streams as batches: from arrays in memory, and from examples that come one by one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

import numpy as np
import scipy.sparse as sp

from onebit.core.validation import as_labels

SIZE = 10_000
"""Examples in a batch: small, yet large enough that the overhead per batch is negligible."""


def batches(X: Any, y: Any, size: int = SIZE) -> Iterator[tuple[Any, Any]]:
    """Yield the rows of `X` and their labels in their order, `size` at a time.

    Parameters
    ----------
    X : {ndarray, sparse matrix} of shape (n_samples, n_features)
    y : ndarray of shape (n_samples,)
    size : int, default=10_000
        Rows in a batch; the last one may have fewer.

    Yields
    ------
    X, y : of at most `size` rows
        Slices, which share the memory of dense arrays.

    Examples
    --------
    >>> import numpy as np
    >>> from onebit import streams
    >>> X, y = np.eye(5), np.arange(5)
    >>> [labels.tolist() for _, labels in streams.batches(X, y, size=2)]
    [[0, 1], [2, 3], [4]]
    """
    check_size(size)
    X = sp.csr_array(X) if sp.issparse(X) else np.asarray(X)
    y = np.asarray(y)
    if X.shape[:1] != y.shape[:1]:
        shapes = f"{X.shape} and {y.shape}"
        raise ValueError(f"X and y must have the same number of rows; got shapes {shapes}")
    for lo in range(0, len(y), size):
        yield X[lo : lo + size], y[lo : lo + size]


def batched(
    examples: Iterable[tuple[Any, Any]], size: int = SIZE, n_features: int | None = None
) -> Iterator[tuple[Any, np.ndarray]]:
    """Group examples that come one by one into batches, lazily.

    Parameters
    ----------
    examples : iterable of pairs (x, label)
        All x are of one kind: 1-D arrays, sparse rows, or dicts {feature index: value}.
    size : int, default=10_000
        Examples in a batch; the last one may have fewer.
    n_features : int, optional
        Needed for dicts, whose features are numbered 0 to ``n_features - 1``.

    Yields
    ------
    X : ndarray or csr_array of at most `size` rows
    y : ndarray, their labels

    Examples
    --------
    >>> from onebit import Banditron, play, streams
    >>> clicks = (({n % 3: 1.0, 3: 0.5}, "even" if n % 2 == 0 else "odd") for n in range(1000))
    >>> learner = Banditron(classes=["even", "odd"], random_state=0)
    >>> play(learner, streams.batched(clicks, size=100, n_features=4)).rounds
    1000
    """
    check_size(size)
    source = iter(examples)
    first = 0
    while batch := list(islice(source, size)):
        xs, labels = zip(*batch, strict=True)
        yield _stacked(xs, n_features, first), as_labels(labels, np.array(labels), "examples")
        first += len(batch)


def check_size(size: int) -> None:
    """Raise unless `size` can be the size of a batch."""
    if size < 1:
        raise ValueError(f"size must be at least 1; got {size}")


def _stacked(xs: tuple[Any, ...], n_features: int | None, first: int) -> Any:
    """Return examples `first`, `first + 1`, ... as one matrix."""
    if isinstance(xs[0], Mapping):
        return _stacked_dicts(xs, n_features, first)
    sparse = sp.issparse(xs[0])
    rows = [_row(x) for x in xs]
    width = rows[0].shape[-1:] if n_features is None else (n_features,)
    expected = (1, *width) if sparse else width
    for i, row in enumerate(rows, start=first):
        if sp.issparse(row) != sparse or row.shape != expected or not width:
            raise ValueError(
                f"example {i} must be {'a sparse row' if sparse else 'a 1-D array'} of shape "
                f"{expected}; got {'a sparse one' if sp.issparse(row) else 'an array'} of shape "
                f"{row.shape}"
            )
    return sp.csr_array(sp.vstack(rows)) if sparse else np.stack(rows)


def _row(x: Any) -> Any:
    if not sp.issparse(x):
        return np.asarray(x, dtype=np.float64)
    return x.reshape(1, -1) if x.ndim == 1 else x


def _stacked_dicts(xs: tuple[Any, ...], n_features: int | None, first: int) -> sp.csr_array:
    if n_features is None:
        raise ValueError("examples that are dicts need n_features=...")
    indptr, indices, values = [0], [], []
    for i, x in enumerate(xs, start=first):
        for feature in sorted(x):
            if not 0 <= feature < n_features:
                raise ValueError(
                    f"example {i} has a feature {feature}, but features are numbered "
                    f"0 to {n_features - 1}"
                )
            indices.append(feature)
            values.append(x[feature])
        indptr.append(len(indices))
    data = np.array(values, dtype=np.float64)
    return sp.csr_array((data, indices, indptr), shape=(len(xs), n_features))
