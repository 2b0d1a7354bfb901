"""The strongly separable stream of Beygelzimer et al. (2019)."""

from __future__ import annotations

import numpy as np

_MARGIN = 0.1
"""The least absolute value of a class's coordinate, in an example of unit length."""


def strongly_separable(
    n_rounds: int = 100_000, *, n_features: int = 400, n_classes: int = 9, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Return a stream in which a hyperplane separates each class from all others.

    Each class has a coordinate of its own. It is positive in the examples of the class and negative
    in all others, and no smaller than 0.1 before the example is normalised again; the other
    coordinates are uniform noise. So one hyperplane for each class separates it from all others,
    with a margin: this is strong separability. Weak separability, where only the highest score must
    be the right one, requires less.

    Parameters
    ----------
    n_rounds : int, default=100_000
    n_features : int, default=400
    n_classes : int, default=9
        From 2 to `n_features`.
    seed : int, default=0

    Returns
    -------
    X : ndarray of shape (n_rounds, n_features), rows of unit length
    y : ndarray of shape (n_rounds,), labels 0 to n_classes - 1

    References
    ----------
    A. Beygelzimer, D. Pal, B. Szorenyi, D. Thiruvenkatachari, C.-Y. Wei and C. Zhang. Bandit
    multiclass linear classification: efficient algorithms for the separable case. ICML 2019.

    Examples
    --------
    >>> from onebit import streams
    >>> X, y = streams.strongly_separable(1000, seed=0)
    >>> of_class_4 = ((X > 0) == (y == 4)[:, None]).all(axis=0)
    >>> int(of_class_4.sum()), round(float(abs(X[:, of_class_4]).min()), 3)
    (1, 0.096)
    """
    if not 2 <= n_classes <= n_features:
        raise ValueError(
            f"n_classes is 2 to n_features, one coordinate for each class; got {n_classes} of "
            f"{n_features}"
        )
    rng = np.random.default_rng(seed)
    own = rng.choice(n_features, size=n_classes, replace=False)
    y = rng.integers(n_classes, size=n_rounds)
    X = rng.uniform(-1.0, 1.0, size=(n_rounds, n_features))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    sizes = np.maximum(np.abs(X[:, own]), _MARGIN)
    X[:, own] = np.where(np.arange(n_classes) == y[:, np.newaxis], sizes, -sizes)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X, y
