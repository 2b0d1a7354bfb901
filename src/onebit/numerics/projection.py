"""Projection onto a ball in the norm of a matrix A: the point of ||w|| <= radius nearest to v.

The point that minimises (w - v)' A (w - v) is w(mu) = (A + mu I)^{-1} A v = (I + mu A^{-1})^{-1} v,
with mu >= 0 such that ||w(mu)|| = radius, the secular equation. A^{-1} is what learners have. The
products with it that a solution takes are those of the Lanczos process begun at v: it finds an
orthonormal Q and a tridiagonal T with A^{-1} Q = Q T + a rest, so that w(mu) = Q y(mu) with
(I + mu T) y = ||v|| e_1, where mu is found in time linear in the size of T.
"""

from __future__ import annotations

import math

import numpy as np

from onebit.core.compiling import kernel
from onebit.numerics.linear import assign
from onebit.numerics.second_order import rewrite

_PRECISION = 1e-15
"""Of the solution, as a share of the radius."""

_LARGEST_MU = 1e100
"""A larger one is due to rounding of an A^{-1} v that is zero: then w is v, shortened."""


@kernel
def project_in_norm(A_inv, w, radius):
    """Move w into the ball, and tell whether it had to be moved.

    O(n) if w is inside, else O(m n^2), where m <= n is the number of Lanczos steps.
    """
    norm = math.sqrt(np.dot(w, w))
    if norm <= radius:
        return False
    rewrite(A_inv)
    n = w.size
    Q, diagonal, off_diagonal, y = np.empty((n, n)), np.empty(n), np.empty(n), np.empty(n)
    q = w / norm
    mu, size = 0.0, 0
    while size < n:
        assign(Q[size], q)
        q = np.dot(A_inv.base, q)
        diagonal[size] = np.dot(q, Q[size])
        size += 1
        for _ in range(2):  # once more, for what rounding left of the earlier directions
            q -= np.dot(np.dot(Q[:size], q), Q[:size])
        off_diagonal[size - 1] = math.sqrt(np.dot(q, q))
        mu = _secular(diagonal[:size], off_diagonal[:size], norm, radius, mu, y[:size])
        # w solves (I + mu A^{-1}) w = v with v off by this length.
        if mu * off_diagonal[size - 1] * abs(y[size - 1]) <= _PRECISION * radius:
            break
        q /= off_diagonal[size - 1]
    nearest = np.dot(y[:size], Q[:size])
    if np.dot(nearest, nearest) <= 2.0 * radius * radius:
        assign(w, nearest)
    else:  # rounding left no digits of A^{-1}, and so none of T
        w *= radius / norm
    return True


@kernel
def _secular(diagonal, off_diagonal, norm, radius, mu, y):
    """Return the mu with ||y|| = radius, where (I + mu T) y = norm e_1, and fill y.

    1 / ||y|| is concave and increasing in mu. So Newton's method for 1 / ||y|| = 1 / radius comes
    to the left of the solution in one step, wherever it starts, and then grows towards it without
    ever passing it: where mu no longer grows, only rounding is left.
    """
    u = np.empty(y.size)
    for step in range(100):
        y[:] = 0.0
        y[0] = norm
        _solve(diagonal, off_diagonal, mu, y)
        length = math.sqrt(np.dot(y, y))
        if length == 0.0:  # the mu to start with was so large that all of y underflowed
            mu = 0.0
            continue
        # The derivative of y is -u with (I + mu T) u = T y.
        for i in range(y.size):
            u[i] = diagonal[i] * y[i]
            if i > 0:
                u[i] += off_diagonal[i - 1] * y[i - 1]
            if i < y.size - 1:
                u[i] += off_diagonal[i] * y[i + 1]
        _solve(diagonal, off_diagonal, mu, u)
        slope = np.dot(y, u)
        if not slope > 0.0:  # it is, but for underflow
            break
        better = mu + length * length / slope * (length / radius - 1.0)
        if not better < _LARGEST_MU or (step > 0 and not better > mu * (1.0 + _PRECISION)):
            break
        mu = max(better, 0.0)
    y *= radius / length
    return mu


@kernel
def _solve(diagonal, off_diagonal, mu, y):
    """Put (I + mu T)^{-1} y in the place of y, for a positive semidefinite T."""
    n = y.size
    pivots = np.empty(n)
    pivots[0] = 1.0 + mu * diagonal[0]
    for i in range(1, n):
        scaled = mu * off_diagonal[i - 1]
        share = scaled / pivots[i - 1]
        # No pivot is below the least eigenvalue, which is one or more: rounding might.
        pivots[i] = max(1.0 + mu * diagonal[i] - share * scaled, 1.0)
        y[i] -= share * y[i - 1]
    y[n - 1] /= pivots[n - 1]
    for i in range(n - 2, -1, -1):
        y[i] = (y[i] - mu * off_diagonal[i] * y[i + 1]) / pivots[i]
