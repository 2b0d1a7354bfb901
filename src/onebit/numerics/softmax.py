"""Softmax, the covariance of a draw from it, and the logistic function."""

from __future__ import annotations

import math

from onebit.core.compiling import kernel, lean_kernel
from onebit.core.offer import on_offer
from onebit.numerics.argmax import argmax
from onebit.numerics.exponential import exponential


@lean_kernel
def softmax(scores, inverse_temperature, p, offer=None):
    """Fill p with softmax(inverse_temperature * scores), over the labels on offer."""
    largest = scores[argmax(scores, offer)]
    total = 0.0
    if offer is not None:
        p[:] = 0.0
    for k in on_offer(offer, scores.size):
        p[k] = exponential(inverse_temperature * (scores[k] - largest))
    for k in on_offer(offer, scores.size):
        total += p[k]
    for k in on_offer(offer, scores.size):
        p[k] /= total


@lean_kernel
def logistic(score):
    """Return 1 / (1 + exp(-score)), exact also where it is nearly zero."""
    odds = exponential(-abs(score))
    return (odds if score < 0.0 else 1.0) / (1.0 + odds)


@kernel
def covariance_root(p, L):
    """Fill L, K x (K-1) and lower triangular, such that L L' = diag(p) - pp'.

    The Cholesky factor of the covariance of a draw from p has a closed form (Tanabe and Sagae
    1992): column j is sqrt(p_j rest / (p_j + rest)) (e_j - the others' shares of rest), where rest
    is the sum of p_i over i > j. Nothing is subtracted, so there is no cancellation.
    """
    L[:] = 0.0
    rest = p[p.size - 1]
    for j in range(p.size - 2, -1, -1):
        if p[j] > 0.0 and rest > 0.0:
            L[j, j] = math.sqrt(p[j] * (rest / (p[j] + rest)))
            for i in range(j + 1, p.size):
                L[i, j] = -L[j, j] * (p[i] / rest)
        rest += p[j]
