"""Linear scores s = Wx, with W stored (n_features, n_classes).

So stored, one feature of a sparse row touches one run of memory.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from onebit.core.compiling import kernel


@kernel
def linear_scores(state, x, scores):
    """Fill ``scores[k] = w_k . x``."""
    _products(state.W, x, scores)


@kernel
def _products(W, x, scores):
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


@kernel
def squared_norm(x):
    """Return ||x||^2."""
    total = 0.0
    for i in range(x.values.size):
        total += x.values[i] * x.values[i]
    return total


class Scaled(NamedTuple):
    """Weights W = scale V, whose length is known: to shrink all of W is to change one number.

    squares is ||V||^2, kept up to date by `put`; changes counts calls of it since squares was last
    summed anew.
    """

    V: np.ndarray
    scale: np.ndarray
    squares: np.ndarray
    changes: np.ndarray


def new_scaled(n_features: int, n_classes: int) -> Scaled:
    """Return zero weights."""
    V = np.zeros((n_features, n_classes))
    return Scaled(V, np.ones(()), np.zeros(()), np.zeros((), dtype=np.int64))


def weights(W: np.ndarray | Scaled) -> np.ndarray:
    """Return W as an array."""
    return W.scale * W.V if isinstance(W, Scaled) else W


@kernel
def scaled_scores(state, x, scores):
    """Fill ``scores[k] = w_k . x`` for scaled weights."""
    _products(state.W.V, x, scores)
    scale = state.W.scale[()]
    for k in range(scores.size):
        scores[k] *= scale


@kernel
def put(W, j, k, value):
    """Set ``V[j, k] = value``."""
    W.squares[()] += value * value - W.V[j, k] * W.V[j, k]
    W.V[j, k] = value
    W.changes[()] += 1


@kernel
def length(W):
    """Return ||W||_F.

    Sums of differences drift, so the squares are summed anew once in as many changes as there are
    weights: a constant cost for each change.
    """
    if W.changes[()] >= W.V.size:
        W.squares[()] = (W.V * W.V).sum()
        W.changes[()] = 0
    return W.scale[()] * math.sqrt(max(W.squares[()], 0.0))
