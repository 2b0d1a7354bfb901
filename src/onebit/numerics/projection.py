"""Projection onto a ball in the norm of a matrix A: the point of ||w|| <= radius nearest to v.

The point that minimises (w - v)' A (w - v) is w(mu) = (A + mu I)^{-1} A v = (I + mu A^{-1})^{-1} v,
with mu >= 0 such that ||w(mu)|| = radius, the secular equation. Learners keep A^{-1}. The solution
needs products with it only in the Lanczos process started at v, which finds an orthonormal Q and a
tridiagonal T with A^{-1} Q = Q T + a remainder, so that w(mu) = Q y(mu) with (I + mu T) y = ||v||
e_1, and mu is found in time linear in the size of T.
"""

from __future__ import annotations

import math

import numpy as np

from onebit.core.compiling import kernel
from onebit.numerics.linear import assign
from onebit.numerics.second_order import rewrite

_PRECISION = 1e-15
"""Tolerance of the solution, as a share of the radius."""

_LARGEST_MU = 1e100
"""A larger mu is due to rounding of an A^{-1} v that is zero: w is then v, rescaled."""


@kernel
def project_in_norm(A_inv, w, radius):
    """Project w onto the ball; return whether it was outside.

    It costs O(n) if w is inside, else O(m n^2), where m <= n is the number of Lanczos steps.
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
        for _ in range(2):  # twice, to remove what rounding left of the earlier directions
            q -= np.dot(np.dot(Q[:size], q), Q[:size])
        off_diagonal[size - 1] = math.sqrt(np.dot(q, q))
        mu = _secular(diagonal[:size], off_diagonal[:size], norm, radius, mu, y[:size])
        # w solves (I + mu A^{-1}) w = v up to an error of this norm in v.
        if mu * off_diagonal[size - 1] * abs(y[size - 1]) <= _PRECISION * radius:
            break
        q /= off_diagonal[size - 1]
    nearest = np.dot(y[:size], Q[:size])
    if np.dot(nearest, nearest) <= 2.0 * radius * radius:
        assign(w, nearest)
    else:  # A^{-1}, and so T, is only rounding error
        w *= radius / norm
    return True


@kernel
def _secular(diagonal, off_diagonal, norm, radius, mu, y):
    """Return the mu with ||y|| = radius, where (I + mu T) y = norm e_1, and fill y.

    1 / ||y|| is concave and increasing in mu. So Newton's method for 1 / ||y|| = 1 / radius is to
    the left of the solution after one step, wherever it starts, and then increases towards it
    without overshooting: when mu no longer grows, it is exact up to rounding.
    """
    u = np.empty(y.size)
    for step in range(100):
        y[:] = 0.0
        y[0] = norm
        _solve(diagonal, off_diagonal, mu, y)
        length = math.sqrt(np.dot(y, y))
        if length == 0.0:  # the initial mu was so large that all of y underflowed
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
        if not slope > 0.0:  # it is positive, except for underflow
            break
        better = mu + length * length / slope * (length / radius - 1.0)
        if not better < _LARGEST_MU or (step > 0 and not better > mu * (1.0 + _PRECISION)):
            break
        mu = max(better, 0.0)
    y *= radius / length
    return mu


@kernel
def _solve(diagonal, off_diagonal, mu, y):
    """Replace y by (I + mu T)^{-1} y, for a positive semidefinite T."""
    n = y.size
    pivots = np.empty(n)
    pivots[0] = 1.0 + mu * diagonal[0]
    for i in range(1, n):
        scaled = mu * off_diagonal[i - 1]
        share = scaled / pivots[i - 1]
        # In exact arithmetic no pivot is below the least eigenvalue, which is at least one.
        pivots[i] = max(1.0 + mu * diagonal[i] - share * scaled, 1.0)
        y[i] -= share * y[i - 1]
    y[n - 1] /= pivots[n - 1]
    for i in range(n - 2, -1, -1):
        y[i] = (y[i] - mu * off_diagonal[i] * y[i + 1]) / pivots[i]
