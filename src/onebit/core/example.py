"""One example, dense or sparse, as the list of its (feature, value) pairs.

A kernel walks the pairs of an `Example`, without knowing whether they came from a NumPy array or a
CSR matrix. In a dense row all features are listed: `indices` is then one ``arange`` that all rows
share, so no row is copied or converted.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numba import int64, typeof

from onebit.core.compiling import as_writeable, called_from_python, entry_point, lean_kernel

INDEX = np.uint32
"""Type of a feature's index: half the memory traffic of int64, and without negative indices."""


class Example(NamedTuple):
    """One x: the indices of its features, strictly increasing, and their values."""

    indices: np.ndarray
    values: np.ndarray
    n_features: int


EXAMPLE = Example(np.zeros(0, dtype=INDEX), np.zeros(0), 0)
"""Prototype of Numba's Example type."""


def dense(x: Example) -> np.ndarray:
    """Return x as a 1-D array."""
    row = np.zeros(x.n_features)
    row[x.indices] = x.values
    return row


class Rows(NamedTuple):
    """Many examples. If not `sparse`, all rows share the whole of `indices`.

    Dense values may be float32: compiled code takes slices of them, which `slice_rows` converts.
    """

    indptr: np.ndarray
    indices: np.ndarray
    values: np.ndarray
    n_features: int
    sparse: bool


ROWS = Rows(np.zeros(1, dtype=np.int64), *EXAMPLE, sparse=True)
"""Prototype of Numba's Rows type."""


@lean_kernel
def row(rows, i):
    """Return example `i` of `rows`, as views."""
    lo, hi = rows.indptr[i], rows.indptr[i + 1]
    if rows.sparse:
        return Example(rows.indices[lo:hi], rows.values[lo:hi], rows.n_features)
    return Example(rows.indices[:], rows.values[lo:hi], rows.n_features)


def rows_of(X: Any) -> Rows:
    """Return the rows of a matrix: a C-ordered array, or CSR in canonical format and float64."""
    n, d = X.shape
    if sp.issparse(X):
        # Copying the indices would take a tenth of the time of a fast learner's rounds. So other
        # threads must not change them meanwhile.
        indptr = np.array(X.indptr, dtype=np.int64)
        indices = np.ascontiguousarray(X.indices, dtype=np.int32).view(INDEX)
        values = np.ascontiguousarray(X.data)
        return Rows(indptr, as_writeable(indices), as_writeable(values), d, sparse=True)
    indptr = np.arange(n + 1, dtype=np.int64) * d
    return Rows(indptr, np.arange(d, dtype=INDEX), as_writeable(X.reshape(-1)), d, sparse=False)


def one_row(x: Example) -> Rows:
    """Return one example as rows."""
    indptr = np.array([0, x.values.size])
    return Rows(indptr, as_writeable(x.indices), as_writeable(x.values), x.n_features, sparse=True)


def count_rows(rows: Rows) -> int:
    """Return the number of examples."""
    return rows.indptr.size - 1


def slice_rows(rows: Rows, lo: int, hi: int) -> Rows:
    """Return rows `lo` to `hi` in float64, sharing memory if they already are in float64."""
    indptr = rows.indptr[lo : hi + 1]
    if is_double(rows):
        return rows._replace(indptr=indptr)
    values = rows.values[indptr[0] : indptr[-1]].astype(np.float64)
    return rows._replace(indptr=indptr - indptr[0], values=values)


def is_double(rows: Rows) -> bool:
    """Return whether the values are float64, as compiled code takes them."""
    return rows.values.dtype == np.float64


CONVERTED_VALUES = 2**19
"""About how many values of rows in float32 are converted at a time: 4 MB."""


def most_in_block(rows: Rows) -> int | None:
    """Return how many rows a slice should have at most; None, if any number will do."""
    return None if is_double(rows) else max(1, CONVERTED_VALUES // rows.n_features)


LARGEST = 1e30
"""The largest feature: its square, and its products with weights, stay finite."""

SOUND, TOO_LARGE, NOT_SORTED, OUTSIDE, NO_ROW = 0, 1, 2, 3, 4


@lean_kernel
def inspect_row(indices, values, n_features):
    """Return the fault of one row and its position; SOUND if it is a valid example."""
    previous = -1
    for i in range(values.size):
        if not abs(values[i]) <= LARGEST:  # true for NaN, too
            return TOO_LARGE, i
        if indices[i] <= previous:
            return NOT_SORTED, i
        previous = indices[i]
    if previous >= n_features:
        return OUTSIDE, values.size - 1
    return SOUND, 0


@called_from_python
def inspect(indices, values, n_features):
    """Return `inspect_row`, for Python."""
    return inspect_row(indices, values, n_features)


@cache
def inspect_entry() -> Any:
    """Return `inspect` compiled to trust the types of an example's arrays, which is faster."""
    return entry_point(inspect, (*typeof(EXAMPLE)[:2], int64))


@called_from_python
def inspect_rows(indptr, indices, values, n_features, sparse):
    """Return the fault of the first bad row, its position, and the row."""
    n_values = min(indices.size, values.size) if sparse else values.size
    for r in range(indptr.size - 1):
        if not 0 <= indptr[r] <= indptr[r + 1] <= n_values:
            return NO_ROW, 0, r
    for r in range(indptr.size - 1):
        lo, hi = indptr[r], indptr[r + 1]
        own = indices[lo:hi] if sparse else indices
        fault, i = inspect_row(own, values[lo:hi], n_features)
        if fault != SOUND:
            return fault, i, r
    return SOUND, 0, 0
