"""Greedy labels and the ways to explore around them."""

from __future__ import annotations

import math

from onebit.core.compiling import lean_kernel


@lean_kernel
def argmax(scores):
    """Return the class with the largest score; of several, the lowest."""
    best = 0
    for k in range(1, scores.size):
        if scores[k] > scores[best]:
            best = k
    return best


@lean_kernel
def argmax_except(scores, excluded):
    """Return the class other than `excluded` with the largest score; of several, the lowest."""
    best = 1 if excluded == 0 else 0
    for k in range(best + 1, scores.size):
        if k != excluded and scores[k] > scores[best]:
            best = k
    return best


@lean_kernel
def softmax(scores, temper, p):
    """Fill p with the probabilities proportional to exp(temper * scores)."""
    largest = scores[argmax(scores)]
    total = 0.0
    for k in range(scores.size):
        p[k] = math.exp(temper * (scores[k] - largest))
        total += p[k]
    for k in range(scores.size):
        p[k] /= total


@lean_kernel
def greedy(state, x, scores, p):
    """Policy of a learner that does not explore."""
    best = argmax(scores)
    for k in range(p.size):
        p[k] = 0.0
    p[best] = 1.0
    return best


@lean_kernel
def gamma_greedy(state, x, scores, p):
    """With probability ``state.gamma`` any label, all alike, else the greedy one."""
    best = argmax(scores)
    gamma = state.gamma[()]
    share = gamma / p.size
    for k in range(p.size):
        p[k] = share
    p[best] = share + (1.0 - gamma)
    return best
