"""The class with the largest score."""

from __future__ import annotations

from onebit.core.compiling import lean_kernel
from onebit.core.offer import n_on_offer, nth_on_offer


@lean_kernel
def argmax(scores, offer=None):
    """Return the class on offer with the largest score; ties go to the lowest."""
    best = nth_on_offer(offer, 0, scores.size)
    largest = scores[best]
    for i in range(1, n_on_offer(offer, scores.size)):
        k = nth_on_offer(offer, i, scores.size)
        if scores[k] > largest:
            best, largest = k, scores[k]
    return best


@lean_kernel
def argmax_except(scores, excluded, offer=None):
    """Return the class on offer with the largest score, other than `excluded`; -1 if there is none.

    Ties go to the lowest.
    """
    first = 0 if nth_on_offer(offer, 0, scores.size) != excluded else 1
    n = n_on_offer(offer, scores.size)
    if first >= n:
        return -1
    best = nth_on_offer(offer, first, scores.size)
    for i in range(first + 1, n):
        k = nth_on_offer(offer, i, scores.size)
        if k != excluded and scores[k] > scores[best]:
            best = k
    return best
