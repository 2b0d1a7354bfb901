"""The synthetic streams of the Banditron paper, and that of the Confidit paper."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import scipy.sparse as sp

from onebit.core.compiling import compiled, lean_kernel
from onebit.core.generator import below, new_generator

N_CLASSES = 9
N_FEATURES = 400
N_KEYWORDS = 120
"""Features 0 .. 119 are the keywords that identify the classes; the others are noise."""

_DROPPED, _ADDED = 5, 20


def synsep(n_rounds: int = 1_000_000, *, seed: int = 0) -> tuple[sp.csr_array, np.ndarray]:
    """Return the linearly separable stream of Kakade et al. (2008): 400 features, 9 classes.

    Each class has 20 to 40 of 120 keywords. An example has all but five of the keywords of its
    class, and 20 of 280 other words; all values are 0 or 1.

    Parameters
    ----------
    n_rounds : int, default=1_000_000
    seed : int, default=0

    Returns
    -------
    X : csr_array of shape (n_rounds, 400)
    y : ndarray of shape (n_rounds,), labels 0 to 8

    Notes
    -----
    The paper does not fix every detail; this is the construction that public re-implementations
    agree on.

    Examples
    --------
    >>> from onebit import streams
    >>> X, y = streams.synsep(1000, seed=0)
    >>> X.shape, int(X.max()), len(set(y))
    ((1000, 400), 1, 9)
    """
    X, y, _ = _synthesise(n_rounds, seed)
    return X, y


def synnonsep(
    n_rounds: int = 1_000_000, *, noise: float = 0.05, replace_by: str = "other", seed: int = 0
) -> tuple[sp.csr_array, np.ndarray]:
    """Return `synsep` with noise: each label is replaced with probability `noise`.

    Parameters
    ----------
    n_rounds : int, default=1_000_000
    noise : float in [0, 1], default=0.05
    replace_by : {"other", "any"}, default="other"
        Replace by one of the eight other labels, so that 5 % of the labels are wrong, or by any of
        the nine, so that 4.44 % are. The paper can be read either way.
    seed : int, default=0

    Returns
    -------
    X : csr_array of shape (n_rounds, 400)
    y : ndarray of shape (n_rounds,), labels 0 to 8
    """
    check_noise(noise, replace_by)
    X, y, rng = _synthesise(n_rounds, seed)
    return X, replaced(y, N_CLASSES, noise, replace_by, rng)


def confidit_synthetic(n_rounds: int = 1000, *, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return the stream of Figure 2 of Crammer and Gentile (2013): 9 features, 5 classes.

    The label is that of the largest of five linear scores of the first five features; the other
    four features say nothing about it.

    Parameters
    ----------
    n_rounds : int, default=1000
    seed : int, default=0

    Returns
    -------
    X : ndarray of shape (n_rounds, 9)
    y : ndarray of shape (n_rounds,), labels 0 to 4

    Notes
    -----
    The paper says that the four uninformative features have zero mean and unit deviation, and
    nothing about the others or about the five models: here all of them are standard normal.

    Examples
    --------
    >>> from onebit import streams
    >>> X, y = streams.confidit_synthetic(seed=0)
    >>> U = streams.confidit_models(seed=0)
    >>> X.shape, bool(((X @ U.T).argmax(axis=1) == y).all())
    ((1000, 9), True)
    """
    X = np.random.default_rng([seed, 1]).standard_normal((n_rounds, 9))
    return X, (X @ confidit_models(seed=seed).T).argmax(axis=1)


def confidit_models(*, seed: int = 0) -> np.ndarray:
    """Return the five linear models that label `confidit_synthetic`, of shape (5, 9)."""
    U = np.zeros((5, 9))
    U[:, :5] = np.random.default_rng([seed, 0]).standard_normal((5, 5))
    return U


SYNTHETIC = {"synsep": synsep, "synnonsep": synnonsep, "confidit-synthetic": confidit_synthetic}
"""Synthetic streams, by their names."""

N_CLASSES_OF = {"synsep": N_CLASSES, "synnonsep": N_CLASSES, "confidit-synthetic": 5}
"""Their numbers of classes; a short stream may not contain them all."""


def check_noise(noise: float, replace_by: str) -> None:
    """Raise for arguments that `replaced` does not take."""
    if replace_by not in ("other", "any"):
        raise ValueError(f"replace_by is 'other' or 'any'; got {replace_by!r}")
    if not 0 <= noise <= 1:
        raise ValueError(f"noise is in [0, 1]; got {noise}")


def replaced(
    y: np.ndarray, n_classes: int, noise: float, replace_by: str, rng: np.random.Generator
) -> np.ndarray:
    """Return labels 0 to n_classes - 1, each replaced with probability `noise`."""
    wrong = rng.random(y.size) < noise
    shift = rng.integers(int(replace_by == "other"), n_classes, size=y.size)
    return np.where(wrong, (y + shift) % n_classes, y)


def _synthesise(n_rounds: int, seed: int) -> tuple[sp.csr_array, np.ndarray, np.random.Generator]:
    rng = np.random.default_rng(seed)
    n_keywords = rng.integers(20, 41, size=N_CLASSES)
    keywords = np.zeros((N_CLASSES, 40), dtype=np.int32)
    for k, n in enumerate(n_keywords):
        keywords[k, :n] = rng.choice(N_KEYWORDS, size=n, replace=False)
    y = rng.integers(N_CLASSES, size=n_rounds)
    indptr = np.zeros(n_rounds + 1, dtype=np.int64)
    np.cumsum(n_keywords[y] - _DROPPED + _ADDED, out=indptr[1:])
    indices = np.empty(indptr[-1], dtype=np.int32)
    others = np.arange(N_KEYWORDS, N_FEATURES, dtype=np.int32)
    on = np.zeros(N_FEATURES, dtype=np.bool_)
    generator = new_generator(int(rng.integers(2**31)))
    _filler()(y, n_keywords, keywords, others, generator, on, indices)
    # SciPy widens the indices to the type of indptr.
    starts = indptr.astype(np.int32 if indices.size < 2**31 else np.int64)
    X = sp.csr_array((np.ones(indices.size), indices, starts), shape=(n_rounds, N_FEATURES))
    X.has_canonical_format = True
    return X, y, rng


@cache
def _filler() -> Any:
    return compiled("onebit.streams.synthetic", _fill, nogil=True)


def _fill(y, n_keywords, keywords, others, rng, on, indices):
    """Write the features of each row, in increasing order."""
    at = 0
    for i in range(y.size):
        n_on = n_keywords[y[i]]
        _choose(keywords[y[i], :n_on], n_on - _DROPPED, rng, on)
        _choose(others, _ADDED, rng, on)
        for j in range(N_FEATURES):
            if on[j]:
                indices[at] = j
                at += 1
        on[:] = False


@lean_kernel
def _choose(pool, n, rng, on):
    """Switch on `n` of the pool's features: the first steps of a Fisher-Yates shuffle."""
    for i in range(n):
        j = i + below(rng, pool.size - i)
        pool[i], pool[j] = pool[j], pool[i]
        on[pool[i]] = True
