"""The class with the largest score."""

from __future__ import annotations

from onebit.core.compiling import lean_kernel
from onebit.core.offer import first_on_offer, on_offer


@lean_kernel
def argmax(scores, offer=None):
    """Return the class on offer with the largest score; of several, the lowest."""
    best = first_on_offer(offer)
    for k in on_offer(offer, scores.size):
        if scores[k] > scores[best]:
            best = k
    return best


@lean_kernel
def argmax_except(scores, excluded, offer=None):
    """Return the class on offer other than `excluded` with the largest score, or -1 if none is.

    Of several, it is the lowest.
    """
    best = -1
    for k in on_offer(offer, scores.size):
        if k != excluded and (best < 0 or scores[k] > scores[best]):
            best = k
    return best
