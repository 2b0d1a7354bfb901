"""A ridge regression for each class, kept up to date by rank-one updates.

For class k, A_k = a I + sum of x x' over the examples it learned from, and its weights w_k are
A_k^{-1} times the sum of r x, where r is the target.
"""

from __future__ import annotations

from onebit.core.compiling import lean_kernel
from onebit.numerics.linear import products
from onebit.numerics.second_order import fill_times, inner, lean_class_inverse, subtract


@lean_kernel
def ridge_scores(W, A_inv, x, scores, v, n):
    """Fill ``scores[k] = w_k . x``, ``v[k] = A_k^{-1} x`` and ``n[k] = x' A_k^{-1} x``."""
    products(W, x, scores)
    for k in range(scores.size):
        fill_times(lean_class_inverse(A_inv, k), x, v[k])
        n[k] = max(0.0, inner(x, v[k]))  # non-negative up to rounding


@lean_kernel
def ridge_step(W, A_inv, k, v, n, residual):
    """Learn an example of class `k`, whose inverse is A_inv; `residual` is r - w_k . x.

    By Sherman and Morrison, A^{-1} x becomes v / (1 + n).
    """
    step = residual / (1.0 + n)
    for j in range(v.size):
        W[j, k] += step * v[j]
    subtract(A_inv, v, 1.0 / (1.0 + n))
