"""Features and the products of all pairs of them, squares included: what bends a line."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from onebit.core.compiling import lean_kernel
from onebit.core.example import INDEX, Example


class ProductScratch(NamedTuple):
    """The last x.

    Attributes
    ----------
    indices, values
        What became of it.
    size
        How many values that has.
    """

    indices: np.ndarray
    values: np.ndarray
    size: np.ndarray


def n_products(n_features: int) -> int:
    """Return how many features an example becomes, its constant included."""
    return n_features + n_features * (n_features + 1) // 2 + 1


def new_product_scratch(n_features: int) -> ProductScratch:
    """Return memory for the products of that many features."""
    n = n_products(n_features)
    return ProductScratch(np.zeros(n, dtype=INDEX), np.zeros(n), np.zeros((), dtype=np.int64))


@lean_kernel
def with_products(scratch, scaled):
    """Return scaled features, whose last is a constant, with all their products of two.

    Product (i, j), i <= j, stands after the d features, row by row; the constant comes last, as it
    is. It is in memory that the next x takes too.
    """
    indices, values = scratch.indices, scratch.values
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
    scratch.size[()] = n + 1
    return last_with_products(scratch, scaled)


@lean_kernel
def last_with_products(scratch, scaled):
    """Return what `with_products` returned last."""
    n, d = scratch.size[()], scaled.n_features - 1
    return Example(scratch.indices[:n], scratch.values[:n], d + d * (d + 1) // 2 + 1)
