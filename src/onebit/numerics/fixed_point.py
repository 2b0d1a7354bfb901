"""The fixed points z = g - A sigma(z) of improper logistic predictors, sigma = softmax.

A is symmetric and positive semidefinite. p = sigma(z) is the unique distribution that minimises 1/2
p'Ap - g . p + sum of p_k ln p_k, so z exists and is unique. The iteration z <- g - A sigma(z) need
not converge: for large A it oscillates between two points. Instead z = g - A v is sought, where v
minimises the convex

    Psi(v) = 1/2 v'Av + ln sum of exp(g - A v)_k,

whose gradient is A (v - sigma(g - A v)): this needs neither an inverse nor a root of A, which may
be singular. Newton's step from v is -(I + S A)^{-1} r with r = v - p and S = diag(p) - pp'.
"""

from __future__ import annotations

import math

import numpy as np

from onebit.core.compiling import kernel
from onebit.numerics.argmax import argmax
from onebit.numerics.cholesky import backward, factor, forward, forward_rows
from onebit.numerics.linear import assign
from onebit.numerics.softmax import covariance_root, softmax

_PRECISION = 1e-12
"""Tolerance for z, relative to its size."""

_ARMIJO_SHARE = 0.4
"""Share of the decrease predicted by the gradient of Psi that a step must achieve (Armijo).

A Newton step achieves one half where Psi is quadratic. With a small share, steps that overshoot to
the same value on the other side would be accepted, and there can be many of them.
"""

_SMALL_MOVE = 1e-7
"""Largest change of z in the last step."""

_MAX_STEPS = 100
"""Largest number of steps. For A of size 100 or less, a dozen is enough."""


@kernel
def fixed_point(A, g, z, p):
    """Fill z with the solution of z = g - A p, and p with sigma(z); return the number of steps."""
    K = g.size
    v, u, Ar = np.empty(K), np.empty(K), np.empty(K)
    L, M, w = np.empty((K, K - 1)), np.empty((K - 1, K - 1)), np.empty(K - 1)
    softmax(g, 1.0, v)
    value = _evaluate(A, g, v, z, p, Ar)
    for step in range(_MAX_STEPS):
        if _largest(Ar) <= _PRECISION * (1.0 + _largest(z)):
            return step
        # With S = L L', (I + S A)^{-1} r = r - L (I + L'AL)^{-1} L'A r.
        covariance_root(p, L)
        assign(M, np.dot(L.T, np.dot(A, L)))
        for k in range(K - 1):
            M[k, k] += 1.0
        factor(M)
        assign(w, np.dot(Ar, L))
        forward(M, w)
        backward(M, w)
        delta = np.dot(L, w) - v + p
        move = _largest(np.dot(A, delta))  # of z, for the full step
        slope, size = np.dot(Ar, delta), 1.0
        while True:
            assign(u, v + size * delta)
            better = _evaluate(A, g, u, z, p, Ar)
            # After so short a move Psi is quadratic, and its decrease may be lost in rounding.
            if move <= 0.5 or better <= value + _ARMIJO_SHARE * size * slope or size < 1e-8:
                break
            size *= 0.5
        # The remaining error is of the order of the square of the move.
        if move <= _SMALL_MOVE:
            return step + 1
        assign(v, u)
        value = better
    return _MAX_STEPS


@kernel
def lookahead_fixed_point(A, g, c, z, p):
    """Fill z with a solution of z = g + u(p) - A p, and p with sigma(z); return the iterations.

    With T = 2A, S = diag(p) - pp' and T' = T (I + c S T)^{-1}, u is (I + c T S) diag(T') / 4. It
    hardly depends on p where c T is small, as it is in `onebit.Folklore`: each iteration solves for
    z with the u of the one before.
    """
    K = g.size
    shifted, before, d = np.empty(K), np.full(K, np.inf), np.empty(K)
    L, F = np.empty((K, K - 1)), np.empty((K - 1, K - 1))
    p[:] = 1.0 / K
    for step in range(_MAX_STEPS):
        # With S = L L' and F F' = I + c L'TL, T' is T - c V'V for V = F^{-1} L'T.
        covariance_root(p, L)
        V = 2.0 * np.dot(L.T, A)
        assign(F, c * np.dot(V, L))
        for k in range(K - 1):
            F[k, k] += 1.0
        factor(F)
        forward_rows(F, V)
        for k in range(K):
            less = 0.0
            for i in range(K - 1):
                less += c * V[i, k] * V[i, k]
            # T' lies between 0 and T. By rounding, for a large x, T itself may not be positive.
            d[k] = 2.0 * A[k, k] - less if less < 2.0 * A[k, k] else 0.0
        mean = np.dot(p, d)
        assign(shifted, g + 0.25 * d + 0.5 * c * np.dot(A, p * (d - mean)))
        fixed_point(A, shifted, z, p)
        if _largest(z - before) <= _PRECISION * (1.0 + _largest(z)):
            return step + 1
        assign(before, z)
    return _MAX_STEPS


@kernel
def _evaluate(A, g, v, z, p, Ar):
    """Fill z = g - A v, p = sigma(z) and A r, the gradient of Psi; return Psi(v)."""
    half = 0.0
    for k in range(g.size):
        Av = 0.0
        for i in range(g.size):
            Av += A[k, i] * v[i]
        z[k] = g[k] - Av
        half += 0.5 * v[k] * Av
    softmax(z, 1.0, p)
    for k in range(g.size):
        Ar[k] = 0.0
        for i in range(g.size):
            Ar[k] += A[k, i] * (v[i] - p[i])
    best = argmax(z)
    return half + z[best] - math.log(p[best])


@kernel
def _largest(v):
    """Return max over k of |v_k|."""
    largest = 0.0
    for k in range(v.size):
        largest = max(largest, abs(v[k]))
    return largest


@kernel
def binary_fixed_point(m, a):
    """Return the solution of u = m - a tanh(u / 2), for a >= 0.

    It has the sign of m, and u + a tanh(u / 2) is increasing in u, and concave for u > 0. So
    Newton's method from any point below the solution for |m| converges from below; |m| - a and
    |m| / (1 + a / 2), its first step from zero, are such points.
    """
    target = abs(m)
    u = max(target - a, target / (1.0 + 0.5 * a))
    for _ in range(_MAX_STEPS):
        bend = math.tanh(0.5 * u)
        step = (target - u - a * bend) / (1.0 + 0.5 * a * (1.0 - bend * bend))
        if step <= 1e-15 * (1.0 + u):  # negative only by rounding
            break
        u += step
    return math.copysign(u, m)
