"""The class with the largest score."""

from __future__ import annotations

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
