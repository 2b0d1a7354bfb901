"""Kernel functions, between one example and the rows that a learner remembers."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from numbers import Real
from typing import Any

import numpy as np

from onebit.core.compiling import called_from_python
from onebit.core.example import Example, dense

KERNEL_NAMES = {"cosine", "laplacian", "linear", "poly", "polynomial", "rational", "rbf"}
"""Kernels that are positive definite whatever the signs of the features. All but "rational" are
scikit-learn's; its others can be given as functions."""


class KernelFunction:
    """``kernel_function(x, rows)``: the values k(x, x_s) of one example and each row x_s.

    Parameters
    ----------
    kernel : str or callable
        One of `KERNEL_NAMES`, or a function of two matrices that returns the kernel of each row of
        the first with each row of the second, as those of `sklearn.metrics.pairwise` do.
    parameters : dict, optional
        Keyword arguments of the kernel.
    """

    def __init__(
        self, kernel: str | Callable[..., Any], parameters: dict[str, Any] | None = None
    ) -> None:
        self._kernel = kernel
        self._parameters = dict(parameters or {})
        if not callable(kernel):
            _check_parameters(kernel, self._parameters)

    def __call__(self, x: Example, rows: np.ndarray) -> np.ndarray:
        """Return the kernel of x with each row."""
        if len(rows) == 0:
            return np.zeros(0)
        if self._kernel in ("linear", "rational"):
            # Not a matrix product: its blocking may round the same row differently in two places.
            products = _products(x.indices, x.values, rows)
            function = linear if self._kernel == "linear" else rational
            return function(products, **self._parameters)
        if self._kernel == "rbf":  # scikit-learn's is several times slower for a single x
            return rbf(_squared_distances(dense(x), rows), rows.shape[1], **self._parameters)
        if callable(self._kernel):
            function = self._kernel
        else:
            function = _pairwise().PAIRWISE_KERNEL_FUNCTIONS[self._kernel]
        values = np.asarray(function(dense(x)[np.newaxis], rows, **self._parameters))
        if values.shape != (1, len(rows)):
            raise ValueError(
                f"a kernel of 1 row with {len(rows)} rows returns shape (1, {len(rows)}); "
                f"{function!r} returned {values.shape}"
            )
        if not np.isfinite(values).all():
            raise ValueError(f"the kernel {self._kernel!r} returned NaN or infinity")
        return values[0]


def parameters_of(kernel: str) -> Collection[str]:
    """Return the names of the parameters of one of scikit-learn's kernels."""
    return _pairwise().KERNEL_PARAMS[kernel]


def _pairwise() -> Any:
    # On first use: the metrics take longer to import than all else that onebit needs of
    # scikit-learn.
    from sklearn.metrics import pairwise

    return pairwise


def _check_parameters(kernel: str, parameters: dict[str, Any]) -> None:
    """Raise for parameters that a kernel of `KERNEL_NAMES` does not take."""
    known = ["nu"] if kernel == "rational" else parameters_of(kernel)
    for name, value in parameters.items():
        if name not in known:
            has = f"it has {', '.join(sorted(known))}" if known else "it has none"
            raise ValueError(f"the kernel {kernel!r} has no parameter {name!r}: {has}")
        if value is None and name == "gamma":
            continue
        if not isinstance(value, Real) or not math.isfinite(value):
            raise ValueError(f"{name} of the kernel {kernel!r} is a finite number; got {value!r}")
        if name == "nu" and not 0.0 < float(value) < 1.0:
            raise ValueError(f"nu of the rational kernel is in (0, 1); got {value}")


def linear(products: np.ndarray) -> np.ndarray:
    """Return ``<x, x'>``."""
    return products


def rbf(squares: np.ndarray, n_features: int, gamma: float | None = None) -> np.ndarray:
    """Return ``exp(-gamma ||x - x'||^2)``; gamma is 1 / n_features unless given."""
    return np.exp(-(1.0 / n_features if gamma is None else gamma) * squares)


def rational(products: np.ndarray, nu: float = 0.5) -> np.ndarray:
    """Return ``1 / (1 - nu <x, x'>)``, for x and x' in the unit ball and nu in (0, 1)."""
    return 1.0 / (1.0 - nu * products)


def shortened(x: Example) -> Example:
    """Return the projection of x onto the unit ball: x itself, or x normalised."""
    length = np.linalg.norm(x.values)
    return x if length <= 1.0 else x._replace(values=x.values / length)


@called_from_python
def _products(indices, values, rows):
    """Return ``<x, x_s>`` for each row x_s."""
    products = np.zeros(rows.shape[0])
    for s in range(rows.shape[0]):
        for i in range(indices.size):
            products[s] += values[i] * rows[s, indices[i]]
    return products


@called_from_python
def _squared_distances(x, rows):
    """Return ``||x - x_s||^2`` for each row x_s."""
    squares = np.zeros(rows.shape[0])
    for s in range(rows.shape[0]):
        for j in range(x.size):
            squares[s] += (x[j] - rows[s, j]) ** 2
    return squares
