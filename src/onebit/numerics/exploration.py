"""Policies that several learners share."""

from __future__ import annotations

from onebit.core.compiling import lean_kernel
from onebit.numerics.argmax import argmax


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
