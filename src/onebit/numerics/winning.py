"""The probability that each of several independent normal draws is the largest."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import log_ndtr

from onebit.core.compiling import lean_kernel
from onebit.core.offer import n_on_offer, on_offer
from onebit.numerics.argmax import argmax

_REACH = 6.0
"""A draw is taken to lie within so many standard deviations of its mean; one in 10^9 does not."""

ROOM = 6
"""Rows of the scratch that `winning_probabilities` takes."""

_LAST = 5.7
"""Beyond so many standard deviations above all means, no single draw is likely enough to count."""

_FEW = 50
"""Of more draws, more reach far: the reach grows, so that the chance that any exceeds it does not.

Beyond r = 6, the chance to exceed r + ln(c) / 6 is less than 1 / c of that to exceed r.
"""

_NEGLIGIBLE = math.log(1e-10)
"""A panel below which the largest draw lies with a smaller probability is left out."""

_POINT = 1e-300
"""A smaller deviation is zero."""

_PANEL = 2.0
"""Width of a panel of the integral, in standard deviations of the narrowest draw in it.

Less for more than _FEW draws, as the law of the largest is the narrower, the more there are.
"""

_FARTHEST, _CERTAIN = 11.0, 8.0
"""No z is farther below zero: more than the reach, for 10^8 draws, and _PANEL together.

Above _CERTAIN, a draw is below with a probability that is one, up to rounding.
"""

_CELLS = 32
"""Cells of the table for each unit of z."""


def _tabulated() -> np.ndarray:
    """Return ln Phi(z) and phi(z) / Phi(z) as cubics in each cell of z, lowest powers first.

    Each is right to 1e-9. Both take eight products; an exponential and a quotient would take
    several times as long.
    """
    nodes = 0.5 + 0.5 * np.cos(np.pi * (np.arange(4) + 0.5) / 4.0)
    cells = np.arange(int((_FARTHEST + _CERTAIN) * _CELLS))
    z = (cells[:, None] + nodes) / _CELLS - _FARTHEST
    below = log_ndtr(z)
    hazards = np.exp(-0.5 * z * z - below) / math.sqrt(2.0 * math.pi)
    to_powers = np.linalg.inv(np.vander(nodes, increasing=True)).T
    table = np.hstack([below @ to_powers, hazards @ to_powers])
    return np.append(table, np.zeros(8))  # beyond, nothing is above


_START, _END = _FARTHEST * _CELLS, (_FARTHEST + _CERTAIN) * _CELLS
"""Places in the table: of z = 0, and of all beyond it."""


_TABLE = _tabulated()

_NODES, _WEIGHTS = (tuple(values.tolist()) for values in np.polynomial.legendre.leggauss(12))


@lean_kernel
def winning_probabilities(means, deviations, p, room, offer=None):
    """Fill ``p[k]`` with the probability that draw k is the largest, and return the largest mean.

    Only the draws on offer take part; the others have probability zero.

    Draw k is normal, with mean ``means[k]`` and standard deviation ``deviations[k]``, so

        p_k = integral over u of phi_k(u) times the product over j != k of Phi_j(u),

    by Gauss and Legendre in panels from the lowest u that the largest draw can have upwards. Each
    is as wide as its narrowest draw allows, and a draw that cannot reach it is left out: classes
    far below the best cost one comparison. Of many draws, those that are equal to most, as labels
    are that were never tried, are integrated once. `room` is scratch of shape (ROOM, K).

    Each p has an absolute error of at most 1e-7, for any number of draws whose means and deviations
    are at most 1e300 in size. A draw with a deviation below 1e-300 is its mean; of several such
    draws with the same mean, the first is the largest.
    """
    best = argmax(means, offer)
    reach = _REACH + _more_than_few(n_on_offer(offer, p.size)) / _REACH
    highest = best
    for k in range(p.size):
        p[k] = 0.0
    for k in on_offer(offer, p.size):
        # A difference of means has more digits to tell than the two ends of the draws.
        if means[k] - means[highest] > reach * (deviations[k] - deviations[highest]):
            highest = k
    # u is relative to the mean of the draw whose lowest value is the highest: what matters is near
    # it. It starts a little above that value, where no draw that is far narrower can be.
    origin, bottom = means[highest], -0.99 * reach * deviations[highest]
    gaps, widths, scales, hazards = room[0], room[1], room[2], room[3]
    labels, won = room[4], room[5]
    n = 0
    for k in on_offer(offer, p.size):
        if means[k] - origin + reach * deviations[k] > bottom and deviations[k] >= _POINT:
            gaps[n], widths[n], labels[n], won[n] = means[k] - origin, deviations[k], k, 0.0
            n += 1
    n, alike = _group(gaps, widths, labels, n)
    first, gap, widest = int(labels[0]), gaps[0], widths[0]
    top = bottom
    for i in range(n):
        scales[i] = _CELLS / widths[i]
        top = max(top, gaps[i] + _LAST * widths[i])
    n_alike, total, below = alike, 0.0, _NEGLIGIBLE
    if deviations[highest] < _POINT:
        total = p[highest] = math.exp(_log_below(bottom, gaps, scales, n, alike, -1e300))
    while (n > 1 or alike > 1) and bottom < top:
        narrowest = widths[0]
        for i in range(1, n):
            narrowest = min(narrowest, widths[i])
        width = _PANEL * narrowest
        if below < -0.1:  # else no more than a few draws are likely to be higher
            width /= 1.0 + 0.3 * _more_than_few(n - 1 + alike)
        width = max(width, 1e-4 * abs(bottom))  # it is larger, up to rounding
        below = _log_below(bottom + width, gaps, scales, n, alike, _NEGLIGIBLE)
        if below > _NEGLIGIBLE:
            for node, weight in zip(_NODES, _WEIGHTS):  # noqa: B905  (Numba knows no strict)
                u = bottom + 0.5 * width * (1.0 + node)
                at_u = _fill_hazards(u, gaps, scales, n, alike, hazards)
                density = 0.5 * weight * math.exp(at_u) * (width / _CELLS)
                for i in range(n):
                    won[i] += density * scales[i] * hazards[i]
        bottom += width
        left = 0
        for i in range(n):
            if gaps[i] + reach * widths[i] > bottom:
                gaps[left], widths[left], scales[left] = gaps[i], widths[i], scales[i]
                labels[left], won[left] = labels[i], won[i]
                left += 1
            else:
                p[int(labels[i])] = won[i]
                total += won[i] * alike if i == 0 else won[i]
                alike = 1 if i == 0 else alike
        n = left
    if n == 1 and alike == 1:
        p[int(labels[0])] = max(0.0, 1.0 - total)
    else:
        for i in range(n):
            p[int(labels[i])] = won[i]
    total = 0.0
    for k in on_offer(offer, p.size):
        if n_alike > 1 and deviations[k] == widest and means[k] - origin == gap:
            p[k] = p[first]
        total += p[k]
    for k in on_offer(offer, p.size):
        p[k] /= total
    return best


@lean_kernel
def _group(gaps, widths, labels, n):
    """Let one of the widest draws stand for all that equal it; return how many are left, and these.

    It is the first then. What was never tried is known least: its draws are the widest.
    """
    if n <= _FEW:
        return n, 1
    widest = 0
    for i in range(1, n):
        if widths[i] > widths[widest]:
            widest = i
    gap, width, alike = gaps[widest], widths[widest], 0
    for i in range(n):
        alike += gaps[i] == gap and widths[i] == width
    if alike == 1:
        return n, 1
    gaps[widest], widths[widest], label = gaps[0], widths[0], labels[widest]
    labels[widest] = labels[0]
    gaps[0], widths[0], labels[0] = gap, width, label
    left = 1
    for i in range(1, n):
        if gaps[i] != gap or widths[i] != width:
            gaps[left], widths[left], labels[left] = gaps[i], widths[i], labels[i]
            left += 1
    return left, alike


@lean_kernel
def _more_than_few(n):
    """Return ln(n / _FEW) if there are so many draws, else zero."""
    return math.log(n / _FEW) if n > _FEW else 0.0


@lean_kernel
def _place(z):
    """Return where the table has z, which is in cells from its middle; within its ends."""
    place = z + _START
    place = place if place > 0.0 else 0.0  # also if it is NaN: what is read is in the table
    return place if place < _END else _END


@lean_kernel
def _tabled(place, column):
    """Return the cubic of the cell at `place` whose coefficients begin in `column`."""
    cell = int(place)
    t, c = place - cell, 8 * cell + column
    return _TABLE[c] + t * (_TABLE[c + 1] + t * (_TABLE[c + 2] + t * _TABLE[c + 3]))


@lean_kernel
def _log_below(u, gaps, scales, n, alike, least):
    """Return the logarithm of the probability that all draws are below u, or one below `least`."""
    total = 0.0
    for i in range(n):
        below = _tabled(_place((u - gaps[i]) * scales[i]), 0)
        total += below * alike if i == 0 else below
        if total < least:
            return total
    return total


@lean_kernel
def _fill_hazards(u, gaps, scales, n, alike, hazards):
    """Fill phi(z) / Phi(z) of each draw's z at u; return the logarithm that all are below u."""
    total = 0.0
    for i in range(n):
        place = _place((u - gaps[i]) * scales[i])
        hazards[i] = _tabled(place, 4)
        total += _tabled(place, 0)
    return total if alike == 1 else total + (alike - 1) * _log_below(u, gaps, scales, 1, 1, -1e300)
