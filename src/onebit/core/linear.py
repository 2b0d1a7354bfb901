"""Linear scores s = Wx, with W stored (n_features, n_classes).

So stored, one feature of a sparse row touches one run of memory.
"""

from __future__ import annotations

from onebit.core.compiling import kernel


@kernel
def linear_scores(state, x, scores):
    """Fill ``scores[k] = w_k . x``."""
    W = state.W
    scores[:] = 0.0
    for i in range(x.indices.size):
        j, x_j = x.indices[i], x.values[i]
        for k in range(scores.size):
            scores[k] += W[j, k] * x_j


@kernel
def add_to_class(W, x, k, amount):
    """Add `amount` times x to the weights of class `k`."""
    for i in range(x.indices.size):
        W[x.indices[i], k] += amount * x.values[i]
