"""Features and the products of all pairs of them, squares included: a quadratic model."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from onebit.core.compiling import lean_kernel
from onebit.core.example import INDEX


class Scratch(NamedTuple):
    """The last x.

    Attributes
    ----------
    indices, values
        Features and products of x, scaled.
    size
        Number of them.
    """

    indices: np.ndarray
    values: np.ndarray
    size: np.ndarray


class Products(NamedTuple):
    """The view; it has no state besides its scratch.

    Attributes
    ----------
    n_inputs
        Number of inputs of the model, from `n_products`.
    """

    n_inputs: int
    scratch: Scratch


def n_products(n_features: int) -> int:
    """Return how many features an example becomes, its constant included."""
    return n_features + n_features * (n_features + 1) // 2 + 1


def new_products(n_features: int) -> Products:
    """Return the view of that many features."""
    n = n_products(n_features)
    scratch = Scratch(np.zeros(n, dtype=INDEX), np.zeros(n), np.zeros((), dtype=np.int64))
    return Products(n, scratch)


@lean_kernel
def fill_products(view, scaled):
    """Fill scaled features, whose last is a constant, and all their products of two.

    Product (i, j), i <= j, stands after the d features, row by row; the constant comes last, as it
    is.
    """
    indices, values = view.scratch.indices, view.scratch.values
    d, m = scaled.n_features - 1, scaled.indices.size - 1
    for i in range(m):
        indices[i], values[i] = scaled.indices[i], scaled.values[i]
    n = m
    for a in range(m):
        for b in range(a, m):
            i = min(scaled.indices[a], scaled.indices[b])
            j = max(scaled.indices[a], scaled.indices[b])
            indices[n] = d + i * d - i * (i + 1) // 2 + j
            values[n] = scaled.values[a] * scaled.values[b]
            n += 1
    indices[n], values[n] = d + d * (d + 1) // 2, scaled.values[m]
    view.scratch.size[()] = n + 1


def columns_of_products(view: Products, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the first and the second column of each input of the last x; -1 if there is none."""
    indices = view.scratch.indices[: view.scratch.size]
    nothing = np.full(d, -1)
    one, other = np.triu_indices(d)
    first = np.concatenate([np.arange(d), one, [-1]])[indices]
    second = np.concatenate([nothing, np.where(one == other, -1, other), [-1]])[indices]
    return first, second
