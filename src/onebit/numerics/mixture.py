"""Mixtures of softmax distributions, by the logarithms of their probabilities."""

from __future__ import annotations

import math

import numpy as np

from onebit.core.compiling import kernel
from onebit.numerics.argmax import argmax


@kernel
def log_mixture(Z, log_weights, scores):
    """Fill scores with ln p, where p is the weighted mean of sigma(Z[i]) over the rows i.

    The weights sum to one. Even where the probability of a class underflows in all rows, ln p is
    finite.
    """
    M, K = Z.shape
    log_terms, largest = np.empty((M, K)), np.full(K, -np.inf)
    for i in range(M):
        log_total = log_sum(Z[i])
        for k in range(K):
            log_terms[i, k] = log_weights[i] + Z[i, k] - log_total
            largest[k] = max(largest[k], log_terms[i, k])
    for k in range(K):
        total = 0.0
        for i in range(M):
            total += math.exp(log_terms[i, k] - largest[k])
        scores[k] = largest[k] + math.log(total)


@kernel
def log_sum(z):
    """Return ln of the sum of e^{z_k}."""
    largest, total = z[argmax(z)], 0.0
    for k in range(z.size):
        total += math.exp(z[k] - largest)
    return largest + math.log(total)


@kernel
def smooth(scores, mu):
    """Replace scores = ln p by ln((1 - mu) p + mu / K)."""
    if mu > 0.0:
        least = math.log(mu) - math.log(scores.size)  # mu / K itself may be zero by underflow
        for k in range(scores.size):
            kept = math.log1p(-mu) + scores[k]
            scores[k] = max(kept, least) + math.log1p(math.exp(-abs(kept - least)))
