"""Views: what a model sees of x.

A view is None, for the features as `onebit.numerics.scales` makes them, or a state of its own that
makes further inputs of them: `Bins` for bins and cells, `Products` for products. A state has
`n_inputs`, and `indices`, `values` and `size` in its scratch; the kernels below are compiled for
the view that they are given.
"""

from __future__ import annotations

from typing import Any

from onebit.core.compiling import chosen_by_type, lean_kernel
from onebit.core.example import Example
from onebit.numerics.bins import Bins, fill_binned, n_inputs, new_bins, observe_bins
from onebit.numerics.pair_products import fill_products, n_products, new_products

LARGEST_PRODUCTS = 800_000
"""Most numbers in the matrices of products, for these to be affordable."""

LARGEST_FULL = 200_000
"""Most numbers in covariance matrices, n * n * K, for covariance="auto" to take full ones."""

MOST_COLUMNS, MOST_CLASSES = 256, 32
"""Most columns and most labels for which cells are affordable.

The tables of cells then take at most 63 MB; 20 MB for ten labels, 11 MB for ten columns, too."""

NAMES = ("line", "cells", "products")
"""Names of views. A mixture has one, and all before it."""


def is_full_affordable(n_inputs: int, n_classes: int) -> bool:
    """Return whether covariance="auto" takes full matrices at these sizes."""
    return n_inputs**2 * n_classes <= LARGEST_FULL


def affordable(n_features: int, n_classes: int) -> str:
    """Return the last of the views that rows and labels of these sizes can have."""
    if n_features > MOST_COLUMNS or n_classes > MOST_CLASSES:
        return "line"
    is_affordable = n_products(n_features) ** 2 * n_classes <= LARGEST_PRODUCTS
    return "products" if is_affordable else "cells"


def new_view(name: str, n_features: int, n_classes: int) -> Any:
    """Return a view before the first round."""
    if name == "cells":
        return new_bins(n_features, n_classes)
    return new_products(n_features) if name == "products" else None


def n_encoded(name: str, n_features: int) -> int:
    """Return how many inputs a view has, the constant that scales add included."""
    if name == "cells":
        return n_inputs(n_features)
    return n_products(n_features) if name == "products" else n_features + 1


def n_weights(name: str, n_features: int, n_classes: int, *, full: bool) -> int:
    """Return how many weights a view has, or numbers in full covariance matrices."""
    n = n_encoded(name, n_features) if name in ("cells", "products") else n_features
    return n ** (2 if full else 1) * n_classes


@lean_kernel
def encode(view, x, scaled, n_classes):
    """Return what a model sees of x, whose scaled features are given, the constant last.

    It is in memory that the next x takes too.
    """
    if view is None:
        return scaled
    fill_view(view, x, scaled, n_classes)
    return last_encoded(view, scaled)


@lean_kernel
def last_encoded(view, scaled):
    """Return what `encode` returned last."""
    if view is None:
        return scaled
    n = view.scratch.size[()]
    return Example(view.scratch.indices[:n], view.scratch.values[:n], view.n_inputs)


def fill_view(view, x, scaled, n_classes):
    """Fill the scratch of a view with what it makes of x."""
    if isinstance(view, Bins):
        fill_binned(view, x, scaled, n_classes)
    else:
        fill_products(view, scaled)


@chosen_by_type(fill_view)
def _fill_view(view, x, scaled, n_classes):
    if view.instance_class is Bins:
        return lambda view, x, scaled, n_classes: fill_binned(view, x, scaled, n_classes)
    return lambda view, x, scaled, n_classes: fill_products(view, scaled)


@lean_kernel
def observe_view(view, rounds):
    """Count the values of the x that was encoded last, after `rounds` earlier rounds."""
    if view is None:
        return
    count_in_view(view, rounds)


def count_in_view(view, rounds):
    """`observe_view` for a view that is not None."""
    if isinstance(view, Bins):
        observe_bins(view, rounds)


@chosen_by_type(count_in_view)
def _count_in_view(view, rounds):
    if view.instance_class is Bins:
        return lambda view, rounds: observe_bins(view, rounds)
    return lambda view, rounds: None
