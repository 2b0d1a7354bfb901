"""Features and the products of all pairs of them, squares included: a quadratic model.

m features have m (m + 1) / 2 products. These are multiplied by sqrt(2 / (m + 1)), so that together
they have about the squared length of the features. Otherwise they would drown the features, as the
whole example is then divided by its length and all weights have the same prior.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, NamedTuple

import numpy as np

from onebit.core.compiling import lean_kernel
from onebit.core.example import INDEX
from onebit.core.state import Field


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
    """The view.

    Attributes
    ----------
    n_inputs
        Number of inputs of the model, from `n_products`.
    is_balanced
        Whether products have about the squared length of the features: 1, or 0 for a model that
        began before they had, and whose weights are for products as they are.
    """

    n_inputs: int
    is_balanced: Annotated[np.ndarray, Field(dtype=np.int64, least=0, most=1)]
    scratch: Scratch


def n_products(n_features: int) -> int:
    """Return how many features an example becomes, its constant included."""
    return n_features + n_features * (n_features + 1) // 2 + 1


def new_products(n_features: int) -> Products:
    """Return the view of that many features."""
    n = n_products(n_features)
    scratch = Scratch(np.zeros(n, dtype=INDEX), np.zeros(n), np.zeros((), dtype=np.int64))
    return Products(n, np.ones((), dtype=np.int64), scratch)


def with_balance(arrays: Mapping[str, np.ndarray], place: str) -> dict[str, np.ndarray]:
    """Return the arrays of a learner whose view at `place` is not balanced, unless they say so."""
    return {f"{place}.is_balanced": np.zeros((), dtype=np.int64)} | dict(arrays)


@lean_kernel
def fill_products(view, scaled):
    """Fill scaled features, whose last is a constant, and all their products of two.

    Product (i, j), i <= j, stands after the d features, row by row; the constant comes last, as it
    is. m is the number of features that are listed: all measurements, and others that are not zero.
    """
    indices, values = view.scratch.indices, view.scratch.values
    d, m = scaled.n_features - 1, scaled.indices.size - 1
    weight = math.sqrt(2.0 / (m + 1.0)) if view.is_balanced[()] else 1.0
    for i in range(m):
        indices[i], values[i] = scaled.indices[i], scaled.values[i]
    n = m
    for a in range(m):
        for b in range(a, m):
            i = min(scaled.indices[a], scaled.indices[b])
            j = max(scaled.indices[a], scaled.indices[b])
            indices[n] = d + i * d - i * (i + 1) // 2 + j
            values[n] = weight * scaled.values[a] * scaled.values[b]
            n += 1
    indices[n], values[n] = d + d * (d + 1) // 2, scaled.values[m]
    view.scratch.size[()] = n + 1


def columns_of_products(view: Products, d: int) -> np.ndarray:
    """Return the columns of each input of the last x, of shape (n, 3); -1 where it has fewer."""
    one, other = np.triu_indices(d)
    columns = np.full((d + one.size + 1, 3), -1)
    columns[:d, 0] = np.arange(d)
    columns[d:-1, 0] = one
    columns[d:-1, 1] = np.where(one == other, -1, other)
    return columns[view.scratch.indices[: view.scratch.size]]
