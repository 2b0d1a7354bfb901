"""Policies that several learners share."""

from __future__ import annotations

import math

from onebit.core.compiling import lean_kernel
from onebit.core.offer import n_on_offer, on_offer
from onebit.numerics.argmax import argmax


@lean_kernel
def greedy(state, x, scores, offer, p):
    """Policy of a learner that does not explore."""
    best = argmax(scores, offer)
    for k in range(p.size):
        p[k] = 0.0
    p[best] = 1.0
    return best


@lean_kernel
def gamma_greedy(state, x, scores, offer, p):
    """Choose uniformly with probability ``state.gamma``, else the greedy label."""
    best = argmax(scores, offer)
    gamma = state.gamma[()]
    share = gamma / n_on_offer(offer, p.size)
    if offer is not None:
        p[:] = 0.0
    for k in on_offer(offer, p.size):
        p[k] = share
    p[best] = share + (1.0 - gamma)
    return best


@lean_kernel
def upper_confidence(scores, n, width, offer, p):
    """Choose the label with the largest ``scores[i] + sqrt(width n[i])``, as a one-hot p.

    The greedy label is the one with the largest score alone.
    """
    for i in on_offer(offer, p.size):
        p[i] = scores[i] + math.sqrt(width * n[i])
    y_hat = argmax(p, offer)
    for i in range(p.size):
        p[i] = 0.0
    p[y_hat] = 1.0
    return argmax(scores, offer)
