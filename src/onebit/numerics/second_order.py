"""The inverse of a matrix that grows by rank-one updates: A += z z'.

The Sherman-Morrison formula, A^{-1} -= v v' / (1 + q) with v = A^{-1} z and q = z' A^{-1} z,
rewrites the whole of A^{-1} for one z. An `Inverse` only stores v, and rewrites the matrix once for
many of them, by a matrix-matrix product.
"""

from __future__ import annotations

import os
import sys
from typing import Annotated, NamedTuple

import numpy as np

from onebit.core.compiling import kernel, lean_kernel
from onebit.core.example import INDEX, Example
from onebit.core.state import Field

PENDING = 64
"""The largest number of updates that are collected before the matrix is rewritten."""

SETTLED = 1e-15
"""A quadratic form this small, relative to its first value, is mostly rounding error."""

_ROUNDING, _MORE_ROUNDING = 1e-8, 1.0
"""Relative to `Inverse.first`, how far below zero rounding may take an eigenvalue.

The error is larger for updates of any size from 1e-300 to 1e30 than for updates of at most unit
norm: it was 0.3 in trials, and `is_settled` keeps it from growing.
"""

_TILE = 64
"""Rows and columns rewritten at once.

Products of 64 x 64 x 64 are the largest that OpenBLAS runs in one thread: on a busy machine, two
threads that wait for each other take a hundred times as long.
"""


class Inverse(NamedTuple):
    """A^{-1} = base - sum over i < n_pending of weights[i] vectors[i] vectors[i]'.

    Before any update it is `first` times the identity, and it is never larger. `rounding`, relative
    to that, is how far below zero rounding may take its eigenvalues.

    With a leading axis in every field it is one inverse for each class; `of_class` takes one out.
    """

    base: Annotated[np.ndarray, Field("n", "n")]
    vectors: Annotated[np.ndarray, Field(PENDING, "n")]
    weights: Annotated[np.ndarray, Field(PENDING, least=0.0)]
    n_pending: Annotated[np.ndarray, Field(1, dtype=np.int64, least=0, most=PENDING - 1)]
    first: float
    rounding: float

    def check(self) -> None:
        """Check that each inverse is symmetric and positive semidefinite, up to rounding."""
        n = self.base.shape[-1]
        vectors, weights = self.vectors.reshape(-1, PENDING, n), self.weights.reshape(-1, PENDING)
        for k, base in enumerate(self.base.reshape(-1, n, n)):
            if not np.array_equal(base, base.T):
                raise ValueError("base is not symmetric")
            if not base.diagonal().max(initial=0.0) <= 1.000001 * self.first:
                raise ValueError(f"base is larger than {self.first:g}, which it was at first")
            count = int(self.n_pending.reshape(-1)[k])
            pending = vectors[k, :count]
            with np.errstate(all="ignore"):
                matrix = base - (pending.T * weights[k, :count]) @ pending
                matrix /= self.first
            matrix[np.diag_indices(n)] += self.rounding
            try:
                sound = bool(np.isfinite(np.linalg.cholesky(matrix)).all())
            except np.linalg.LinAlgError:
                sound = False
            if not sound:
                raise ValueError("base minus what is pending is not positive semidefinite")


def new_inverse(n: int, a: float) -> Inverse:
    """Return the inverse of ``a I``, n x n, for updates of any size, guarded by `is_settled`."""
    return of_class(new_inverses(1, n, a, any_size=True), 0)


def new_inverses(n_classes: int, n: int, a: float, *, any_size: bool = False) -> Inverse:
    """Return the inverse of ``a I``, n x n, once for each class, for updates of at most unit norm.

    Updates of any size (`any_size`) must be guarded by `is_settled`.
    """
    needed, available = 8 * n_classes * n * n, _memory()
    if needed > available:
        raise ValueError(
            f"a full covariance of {n:,} x {n:,} takes {needed / 2**30:.1f} GiB and this machine "
            f"has {available / 2**30:.1f} GiB: take the diagonal form, or fewer features"
        )
    base = np.zeros((n_classes, n, n))
    base[:, np.arange(n), np.arange(n)] = 1.0 / a
    return Inverse(
        base=base,
        vectors=np.zeros((n_classes, PENDING, n)),
        weights=np.zeros((n_classes, PENDING)),
        n_pending=np.zeros((n_classes, 1), dtype=np.int64),
        first=1.0 / a,
        rounding=_MORE_ROUNDING if any_size else _ROUNDING,
    )


def _memory() -> int:
    if not hasattr(os, "sysconf"):
        return sys.maxsize
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def of_class(A_inv, k):
    """Return the inverse of class `k`, as a view."""
    return Inverse(
        A_inv.base[k],
        A_inv.vectors[k],
        A_inv.weights[k],
        A_inv.n_pending[k],
        A_inv.first,
        A_inv.rounding,
    )


class_inverse = kernel(of_class)
"""`of_class`, for kernels."""

lean_class_inverse = lean_kernel(of_class)
"""`of_class`, for lean kernels."""


@kernel
def difference(x, plus, minus, scale, n_classes):
    """Return ``scale * (e_plus - e_minus) (x) x`` as an example of n_features * n_classes features.

    Feature j of class k is number ``j * n_classes + k``, its place in the flattened weights.
    """
    n = x.indices.size
    indices, values = np.empty(2 * n, dtype=INDEX), np.empty(2 * n)
    for i in range(n):
        indices[2 * i] = x.indices[i] * n_classes + plus
        indices[2 * i + 1] = x.indices[i] * n_classes + minus
        values[2 * i] = scale * x.values[i]
        values[2 * i + 1] = -values[2 * i]
    return Example(indices, values, x.n_features * n_classes)


@kernel
def outer(c, x):
    """Return ``c (x) x``, one c for each class, as an example in the order of `difference`."""
    n, n_classes = x.indices.size, c.size
    indices, values = np.empty(n * n_classes, dtype=INDEX), np.empty(n * n_classes)
    for i in range(n):
        for k in range(n_classes):
            indices[i * n_classes + k] = x.indices[i] * n_classes + k
            values[i * n_classes + k] = c[k] * x.values[i]
    return Example(indices, values, x.n_features * n_classes)


@lean_kernel
def inner(z, dense):
    """Return z . dense."""
    total = 0.0
    for i in range(z.indices.size):
        total += z.values[i] * dense[z.indices[i]]
    return total


@kernel
def is_settled(A_inv, z, v, q):
    """Return whether v = A^{-1} z and q = z' v are only rounding error.

    The weights are then so well determined along z that no step could move them. v' v <= first * q
    as long as rounding has made no eigenvalue of A^{-1} negative.
    """
    known = q < SETTLED * A_inv.first * np.dot(z.values, z.values)
    return known or np.dot(v, v) > 1.01 * A_inv.first * q


@kernel
def times(A_inv, z):
    """Return A^{-1} z."""
    product = np.empty(A_inv.base.shape[0])
    fill_times(A_inv, z, product)
    return product


@lean_kernel
def fill_times(A_inv, z, product):
    """Fill `product` with A^{-1} z."""
    for j in range(product.size):
        product[j] = 0.0
    add_products(z.indices, z.values, A_inv.base, product)
    # Four updates at a time, as each addition to a sum waits for the last.
    vectors, weights, count = A_inv.vectors, A_inv.weights, A_inv.n_pending[0]
    alone = count % 4
    for r in range(alone):
        share = weights[r] * inner(z, vectors[r])
        for j in range(product.size):
            product[j] -= share * vectors[r, j]
    for r in range(alone, count, 4):
        v_0, v_1, v_2, v_3 = vectors[r], vectors[r + 1], vectors[r + 2], vectors[r + 3]
        a = b = c = d = 0.0
        for i in range(z.indices.size):
            j, z_i = z.indices[i], z.values[i]
            a, b, c, d = a + z_i * v_0[j], b + z_i * v_1[j], c + z_i * v_2[j], d + z_i * v_3[j]
        a, b, c, d = a * weights[r], b * weights[r + 1], c * weights[r + 2], d * weights[r + 3]
        for j in range(product.size):
            product[j] -= a * v_0[j] + b * v_1[j] + c * v_2[j] + d * v_3[j]


@kernel
def products_along(A_inv, z):
    """Return v = A^{-1} z, q = z' v and whether they `is_settled`."""
    v = times(A_inv, z)
    q = inner(z, v)
    return v, q, is_settled(A_inv, z, v, q)


@kernel
def times_each(A_inv, x, P):
    """Fill ``P[k] = A^{-1} (e_k (x) x)`` for each class k, in the order of `difference`.

    The rows of A^{-1} that belong to one feature are contiguous, so one product serves all classes.
    """
    n_classes = P.shape[0]
    P[:] = 0.0
    add_products(x.indices, x.values, A_inv.base.reshape(-1, P.size), P.reshape(-1))
    count = A_inv.n_pending[0]
    pending, shares = np.arange(count), np.empty(count)
    for k in range(n_classes):
        for r in range(count):
            vector, total = A_inv.vectors[r], 0.0
            for i in range(x.indices.size):
                total += x.values[i] * vector[x.indices[i] * n_classes + k]
            shares[r] = -A_inv.weights[r] * total
        add_products(pending, shares, A_inv.vectors, P[k])


@lean_kernel
def add_products(indices, values, rows, total):
    """Add to `total` the sum of ``values[i] * rows[indices[i]]``.

    It takes four rows at a time, so that `total` is read and written once instead of four times.
    """
    alone = indices.size % 4
    for i in range(alone):
        row, value = rows[indices[i]], values[i]
        for j in range(total.size):
            total[j] += value * row[j]
    for i in range(alone, indices.size, 4):
        row_0, row_1 = rows[indices[i]], rows[indices[i + 1]]
        row_2, row_3 = rows[indices[i + 2]], rows[indices[i + 3]]
        a, b, c, d = values[i], values[i + 1], values[i + 2], values[i + 3]
        for j in range(total.size):
            total[j] += a * row_0[j] + b * row_1[j] + c * row_2[j] + d * row_3[j]


@lean_kernel
def quadratic(A_inv, z):
    """Return z' A^{-1} z."""
    total = 0.0
    for i in range(z.indices.size):
        total += z.values[i] * inner(z, A_inv.base[z.indices[i]])
    for r in range(A_inv.n_pending[0]):
        share = inner(z, A_inv.vectors[r])
        total -= A_inv.weights[r] * share * share
    return total


@lean_kernel
def subtract(A_inv, v, weight):
    """Do A^{-1} -= weight v v'.

    No more updates than the matrix has rows are collected: reading them would take longer than
    reading the matrix.
    """
    count = A_inv.n_pending[0]
    for i in range(v.size):
        A_inv.vectors[count, i] = v[i]
    A_inv.weights[count] = weight
    A_inv.n_pending[0] = count + 1
    if count + 1 >= min(A_inv.weights.size, v.size):
        rewrite(A_inv)


@kernel
def rank_one_step(W, A_inv, v, weight, step):
    """Do A^{-1} -= weight v v' and W -= step v, where W is flattened as in `difference`."""
    subtract(A_inv, v, weight)
    flat = W.reshape(-1)
    for i in range(v.size):
        flat[i] -= step * v[i]


@kernel
def rewrite(A_inv):
    """Apply the pending updates to `base`: its lower triangle, tile by tile, then the upper."""
    base, n, count = A_inv.base, A_inv.base.shape[0], A_inv.n_pending[0]
    if count == 0:
        return
    columns, weighted = np.empty((n, count)), np.empty((n, count))
    for i in range(n):
        for r in range(count):
            columns[i, r] = A_inv.vectors[r, i]
            weighted[i, r] = A_inv.weights[r] * columns[i, r]
    for top in range(0, n, _TILE):
        bottom = min(top + _TILE, n)
        for left in range(0, bottom, _TILE):
            product = np.dot(weighted[top:bottom], columns[left : left + _TILE].T)
            _subtract_tile(base, top, left, product)
    A_inv.n_pending[0] = 0


@lean_kernel
def _subtract_tile(base, top, left, product):
    """Subtract `product` from the tile of `base` at (top, left), and copy that across the diagonal.

    In a tile on the diagonal, the part below it is first copied above it, and then onto itself.
    Rows and columns are sliced first, as the compiler then knows that indices are non-negative;
    when indexing `base` directly it would check the sign of each.
    """
    height, width = product.shape
    for i in range(height):
        row = base[top + i, left : left + width]
        for j in range(width):
            row[j] -= product[i, j]
    for j in range(width):
        row, column = base[left + j, top : top + height], base[top : top + height, left + j]
        for i in range(height):
            row[i] = column[i]
