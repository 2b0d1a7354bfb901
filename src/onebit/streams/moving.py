"""Streams with a change: from some round on, what was true before no longer is.

Each function takes a stream (X, y) and returns a copy with a change in it: the first `at` rounds
are unchanged. With ``over=n`` the change is gradual: in the n rounds that follow, a round is
unchanged with a probability that falls from one to zero. With ``back=t`` the change is undone from
round t on, in the same way. Rounds are counted from 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp


def relabelled(
    X: Any,
    y: Any,
    *,
    at: int,
    classes: Any = None,
    over: int = 0,
    back: int | None = None,
    seed: int = 0,
) -> tuple[Any, np.ndarray]:
    """Return the stream with its labels permuted from round `at` on.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_rounds, n_features)
    y : array-like of shape (n_rounds,)
    at : int
        The first round of the change.
    classes : array-like, optional
        The labels to permute, at least two; two are swapped. By default all labels in `y`.
    over : int, default=0
        Rounds that a gradual change takes.
    back : int, optional
        The round from which the original labels return: A-B-A.
    seed : int, default=0
        Seed of the permutation, which leaves no label in place, and of a gradual change.

    Returns
    -------
    X, y

    Examples
    --------
    >>> import numpy as np
    >>> from onebit import streams
    >>> X, y = np.eye(6), ["a", "b", "c", "a", "b", "c"]
    >>> streams.relabelled(X, y, at=3, classes=["a", "b"])[1].tolist()
    ['a', 'b', 'c', 'b', 'a', 'c']
    """
    X, y = checked_stream(X, y)
    found, codes = np.unique(y, return_inverse=True)
    permuted = np.arange(found.size) if classes is None else _positions(classes, found)
    if permuted.size < 2:
        raise ValueError(f"at least two labels are needed to permute them; got {permuted.size}")
    rng = np.random.default_rng(seed)
    changed = _changed(y.size, at, over, back, rng)
    new = np.arange(found.size)
    new[permuted] = _cycled(permuted, rng)
    return X, np.where(changed, found[new[codes]], y)


def held_back(X: Any, y: Any, *, label: Any, until: int, seed: int = 0) -> tuple[Any, np.ndarray]:
    """Return the stream reordered such that the rows of one label come later.

    The first `until` rounds are the first rows that have other labels. In the rounds that follow,
    the rows of the label are spread uniformly at random among the others. The rows of the label
    keep their order, and so do all others.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_rounds, n_features)
    y : array-like of shape (n_rounds,)
    label : a label in `y`
    until : int
        The first round that may have the label.
    seed : int, default=0

    Returns
    -------
    X, y

    Examples
    --------
    >>> import numpy as np
    >>> from onebit import streams
    >>> X, y = np.arange(8.0).reshape(8, 1), np.array([0, 1] * 4)
    >>> X, y = streams.held_back(X, y, label=1, until=3, seed=1)
    >>> y.tolist()
    [0, 0, 0, 1, 1, 0, 1, 1]
    >>> X.ravel().tolist()
    [0.0, 2.0, 4.0, 1.0, 3.0, 6.0, 5.0, 7.0]
    """
    X, y = checked_stream(X, y)
    held = y == label
    own, others = np.flatnonzero(held), np.flatnonzero(~held)
    if own.size == 0:
        raise ValueError(f"no row has the label {label!r}")
    if not 0 <= until <= others.size:
        raise ValueError(
            f"until is 0 to {others.size}, the number of rows of other labels; got {until}"
        )
    is_own = np.zeros(y.size - until, dtype=bool)
    places = np.random.default_rng(seed).choice(is_own.size, size=own.size, replace=False)
    is_own[places] = True
    later = np.empty(is_own.size, dtype=np.int64)
    later[is_own], later[~is_own] = own, others[until:]
    order = np.concatenate([others[:until], later])
    return X[order], y[order]


def rescaled(
    X: Any,
    y: Any,
    *,
    at: int,
    factor: float,
    features: Any = None,
    over: int = 0,
    back: int | None = None,
    seed: int = 0,
) -> tuple[Any, np.ndarray]:
    """Return the stream with features multiplied by `factor` from round `at` on.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_rounds, n_features)
    y : array-like of shape (n_rounds,)
    at : int
        The first round of the change.
    factor : float
    features : array-like of int, optional
        The features to rescale; by default all.
    over : int, default=0
        Rounds that a gradual change takes.
    back : int, optional
        The round from which on the original features return.
    seed : int, default=0
        Seed of a gradual change.

    Returns
    -------
    X, y

    Examples
    --------
    >>> import numpy as np
    >>> from onebit import streams
    >>> X, y = np.ones((3, 2)), np.array([0, 1, 0])
    >>> streams.rescaled(X, y, at=2, factor=10.0, features=[1])[0].tolist()
    [[1.0, 1.0], [1.0, 1.0], [1.0, 10.0]]
    """
    X, y = checked_stream(X, y)
    factors = np.ones(X.shape[1])
    factors[_columns(features, X.shape[1])] = factor
    changed = _changed(y.size, at, over, back, np.random.default_rng(seed))
    if sp.issparse(X):
        X = X.astype(np.float64)  # a copy
        X.data *= np.where(np.repeat(changed, np.diff(X.indptr)), factors[X.indices], 1.0)
        return X, y
    return np.where(changed[:, np.newaxis], X * factors, X), y


def swapped(
    X: Any,
    y: Any,
    *,
    at: int,
    features: Any = None,
    over: int = 0,
    back: int | None = None,
    seed: int = 0,
) -> tuple[Any, np.ndarray]:
    """Return the stream with its features permuted from round `at` on.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_rounds, n_features)
    y : array-like of shape (n_rounds,)
    at : int
        The first round of the change.
    features : array-like of int, optional
        The features to permute, at least two; two are swapped. By default all.
    over : int, default=0
        Rounds that a gradual change takes.
    back : int, optional
        The round from which on the original features return.
    seed : int, default=0
        Seed of the permutation, which leaves no feature in place, and of a gradual change.

    Returns
    -------
    X, y

    Examples
    --------
    >>> import numpy as np
    >>> from onebit import streams
    >>> X, y = np.array([[1.0, 2.0, 3.0]] * 3), np.array([0, 1, 0])
    >>> streams.swapped(X, y, at=1, features=[0, 2], back=2)[0].tolist()
    [[1.0, 2.0, 3.0], [3.0, 2.0, 1.0], [1.0, 2.0, 3.0]]
    """
    X, y = checked_stream(X, y)
    permuted = _columns(features, X.shape[1])
    if permuted.size < 2:
        raise ValueError(f"at least two features are needed to permute them; got {permuted.size}")
    rng = np.random.default_rng(seed)
    changed = _changed(y.size, at, over, back, rng)
    new = np.arange(X.shape[1])
    new[permuted] = _cycled(permuted, rng)
    if sp.issparse(X):
        moved = np.repeat(changed, np.diff(X.indptr))
        indices = np.where(moved, new[X.indices], X.indices).astype(X.indices.dtype)
        X = sp.csr_array((X.data.copy(), indices, X.indptr.copy()), shape=X.shape)
        X.sort_indices()
        return X, y
    result = X.copy()
    result[np.ix_(changed, new)] = X[changed]
    return result, y


def checked_stream(X: Any, y: Any) -> tuple[Any, np.ndarray]:
    """Return a stream as a matrix (CSR if it is sparse) and an array of labels."""
    X = sp.csr_array(X) if sp.issparse(X) else np.asarray(X)
    y = np.asarray(y)
    if X.ndim != 2 or y.ndim != 1 or X.shape[0] != y.size:
        raise ValueError(
            f"X is a matrix, with a row for each label in y; got shapes {X.shape} and {y.shape}"
        )
    return X, y


def _changed(n: int, at: int, over: int, back: int | None, rng: np.random.Generator) -> np.ndarray:
    """Return for each of n rounds whether it is changed."""
    if not 0 <= at <= n:
        raise ValueError(f"at is a round, 0 to {n}; got {at}")
    if over < 0:
        raise ValueError(f"over is a number of rounds; got {over}")
    if back is not None and not at <= back <= n:
        raise ValueError(f"back is a round, {at} to {n}; got {back}")
    rounds, draws = np.arange(n), rng.random(n)

    def since(start: int) -> np.ndarray:
        """Return which rounds from `start` on are changed: more and more of them."""
        return (rounds >= start) & (draws * over <= rounds - start)

    return since(at) if back is None else since(at) & ~since(back)


def _cycled(places: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return these items permuted by a random cycle, which leaves none in place."""
    cycle = rng.permutation(places.size)
    moved = np.empty_like(places)
    moved[cycle] = places[np.roll(cycle, -1)]
    return moved


def _positions(labels: Any, classes: np.ndarray) -> np.ndarray:
    """Return the positions of these labels among the sorted classes."""
    labels = np.unique(labels)
    missing = labels[~np.isin(labels, classes)]
    if missing.size:
        raise ValueError(f"no row has the label {missing[0].item()!r}")
    return np.searchsorted(classes, labels)


def _columns(features: Any, n_features: int) -> np.ndarray:
    """Return the selected features, each once."""
    if features is None:
        return np.arange(n_features)
    columns = np.unique(np.asarray(features, dtype=np.int64))
    if columns.size and not 0 <= columns[0] <= columns[-1] < n_features:
        raise ValueError(f"features are numbered 0 to {n_features - 1}; got {columns.tolist()}")
    return columns
