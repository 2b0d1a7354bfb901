"""The probability that each of several independent normal draws is the largest."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file
from scipy.special import log_ndtr

from onebit.core.compiling import lean_kernel, no_alias
from onebit.core.offer import n_on_offer, nth_on_offer
from onebit.numerics.argmax import argmax

_REACH = 6.0
"""Standard deviations within which a draw is assumed to lie; one in 10^9 does not."""

ROOM = 12
"""Rows of the scratch that `winning_probabilities` takes."""

_UPPER_REACH = 5.7
"""Standard deviations above all means beyond which a single draw is too unlikely to count."""

_FEW_DRAWS = 50
"""With more draws the reach grows, so that the chance that any exceeds it does not.

Beyond r = 6, the chance to exceed r + ln(c) / 6 is less than 1 / c of that to exceed r.
"""

_NEGLIGIBLE = math.log(1e-10)
"""A panel below which the largest draw lies with a smaller probability is left out."""

_LEAST_DEVIATION = 1e-300
"""A smaller deviation is zero."""

_PANEL = 2.0
"""Width of a panel of the integral, in standard deviations of the narrowest draw in it.

Less for more than _FEW_DRAWS, as the largest of more draws has a narrower distribution.
"""

_FARTHEST_BELOW, _CERTAIN_ABOVE = 11.0, 8.0
"""No z is farther below zero: more than the reach, for 10^8 draws, and _PANEL together.

Above _CERTAIN_ABOVE, a draw is below with a probability that is one, up to rounding.
"""

_CELLS = 32
"""Cells of the table for each unit of z."""


def _tabulated() -> np.ndarray:
    """Return _TABLE: ln Phi(z) and phi(z) / Phi(z) as cubics in each cell of z, by their powers.

    Each is right to 1e-9. Both take eight products; an exponential and a quotient would take
    several times as long.
    """
    nodes = 0.5 + 0.5 * np.cos(np.pi * (np.arange(4) + 0.5) / 4.0)
    cells = np.arange(int((_FARTHEST_BELOW + _CERTAIN_ABOVE) * _CELLS))
    z = (cells[:, None] + nodes) / _CELLS - _FARTHEST_BELOW
    below = log_ndtr(z)
    hazards = np.exp(-0.5 * z * z - below) / math.sqrt(2.0 * math.pi)
    to_powers = np.linalg.inv(np.vander(nodes, increasing=True)).T
    table = np.hstack([below @ to_powers, hazards @ to_powers])
    return np.append(table, np.zeros(8))  # beyond, nothing is above


_ZERO_CELL, _LAST_CELL = _FARTHEST_BELOW * _CELLS, (_FARTHEST_BELOW + _CERTAIN_ABOVE) * _CELLS
"""Positions in the table: of z = 0, and of all z beyond its end."""


def _legendre() -> tuple[np.ndarray, np.ndarray]:
    """Return _NODES and _WEIGHTS, of Gauss-Legendre quadrature."""
    return np.polynomial.legendre.leggauss(12)


_MEAN_TOLERANCE, _WIDTH_TOLERANCE = 1.0, 0.0025
"""Draws are nearly alike if their means differ from the middle by at most `_MEAN_TOLERANCE`
deviations, and their deviations by at most the share `_WIDTH_TOLERANCE`."""

_N_MEAN_NODES, _N_WIDTH_NODES = 16, 4
"""Nodes, in mean and in width, between which draws that are nearly alike are interpolated."""

_N_NODES = _N_MEAN_NODES * _N_WIDTH_NODES

_LEAST_SIMILAR_DRAWS = 2 * _N_NODES
"""Least number of nearly alike draws that are interpolated."""

_N_WIDTH_BINS = 60
"""Bins of width 2 _WIDTH_TOLERANCE in which most widths are looked for, from the largest down."""


def _nodes_and_powers(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return n Chebyshev nodes in [-1, 1], and their Lagrange polynomials, as powers."""
    nodes = np.cos(np.pi * (np.arange(n) + 0.5) / n)
    return nodes, np.linalg.inv(np.vander(nodes, increasing=True))


TABLES = Path(__file__).with_name("winning.safetensors")
"""The tables below, computed once.

Their last bits depend on the processor and on the libraries that compute them. Read from a file,
they are the same everywhere, and so are the decisions that follow from them, and the machine code
that contains them.
"""


def tables() -> dict[str, np.ndarray]:
    """Compute what is in TABLES; `tools/winning_tables.py` writes it."""
    nodes, weights = _legendre()
    mean_nodes, mean_powers = _nodes_and_powers(_N_MEAN_NODES)
    width_nodes, width_powers = _nodes_and_powers(_N_WIDTH_NODES)
    return {
        "table": _tabulated(),
        "nodes": nodes,
        "weights": weights,
        "mean_nodes": mean_nodes,
        "mean_powers": mean_powers,
        "width_nodes": width_nodes,
        "width_powers": width_powers,
    }


_STORED = load_file(TABLES)
_TABLE = _STORED["table"]
_NODES, _WEIGHTS = tuple(_STORED["nodes"].tolist()), tuple(_STORED["weights"].tolist())
_MEAN_NODES, _MEAN_POWERS = _STORED["mean_nodes"], _STORED["mean_powers"]
_WIDTH_NODES, _WIDTH_POWERS = _STORED["width_nodes"], _STORED["width_powers"]
_MEAN_VALUES, _WIDTH_VALUES = _MEAN_POWERS.T.copy(), _WIDTH_POWERS.T.copy()


@lean_kernel
def winning_probabilities(means, deviations, p, room, offer=None):
    """Fill ``p[k]`` with the probability that draw k is the largest; return the k of largest mean.

    Only the draws on offer take part; the others have probability zero.

    Draw k is normal, with mean ``means[k]`` and standard deviation ``deviations[k]``, so

        p_k = integral over u of phi_k(u) times the product over j != k of Phi_j(u),

    by Gauss-Legendre quadrature in panels, upwards from the lowest u that the largest draw can
    have. A panel is as wide as its narrowest draw allows, and a draw that cannot reach it is left
    out: classes far below the best cost one comparison. Of many draws, equal ones, such as those of
    labels that were never chosen, are integrated once, and those that are nearly alike are
    interpolated. `room` is scratch of shape (ROOM, K).

    Each p has an absolute error of at most 1e-7, for any number of draws whose means and deviations
    are at most 1e300 in size. A draw with a deviation below 1e-300 is its mean; of several such
    draws with the same mean, the first is the largest.
    """
    best = argmax(means, offer)
    fill_winning(means, deviations, best, p, room, offer)
    return best


@lean_kernel
def fill_winning(means, deviations, best, p, room, offer):
    """Fill p as `winning_probabilities` does.

    `best` is a label on offer, where the search for the draw with the highest lower end begins; it
    need not have the largest mean.
    """
    reach = _REACH + _log_excess(n_on_offer(offer, p.size)) / _REACH
    highest = best
    for k in range(p.size):
        p[k] = 0.0
    for i in range(n_on_offer(offer, p.size)):
        k = nth_on_offer(offer, i, p.size)
        # A difference of means loses fewer digits than a difference of the ends of the draws.
        if means[k] - means[highest] > reach * (deviations[k] - deviations[highest]):
            highest = k
    # u is relative to the mean of the draw whose lowest value is the highest: what matters is near
    # it. It starts a little above that value, where no draw that is far narrower can be.
    origin, bottom = means[highest], -0.99 * reach * deviations[highest]
    gaps, widths, scales, hazards = room[0], room[1], room[2], room[3]
    labels, won, counts = room[4], room[5], room[6]
    n = 0
    for i in range(n_on_offer(offer, p.size)):
        k = nth_on_offer(offer, i, p.size)
        if means[k] - origin + reach * deviations[k] > bottom and deviations[k] >= _LEAST_DEVIATION:
            gaps[n], widths[n], labels[n] = means[k] - origin, deviations[k], k
            n += 1
    if n == 0 or (n == 1 and deviations[highest] >= _LEAST_DEVIATION):
        p[highest] = 1.0
        return
    n, n_equal = _merge_equal(gaps, widths, labels, counts, n)
    first, gap, widest = int(labels[0]), gaps[0], widths[0]
    n, n_similar = _merge_similar(room, n)
    top = bottom
    for i in range(n):
        won[i] = 0.0
        scales[i] = _CELLS / widths[i]
        top = max(top, gaps[i] + _UPPER_REACH * widths[i])
    at_nodes, total, below = room[7], 0.0, _NEGLIGIBLE
    if deviations[highest] < _LEAST_DEVIATION:
        total = p[highest] = math.exp(_log_below(bottom, gaps, scales, counts, n, -1e300))
    while (n > 1 or (n == 1 and counts[0] != 1.0)) and bottom < top:
        narrowest, many = widths[0], counts[0]
        for i in range(1, n):
            narrowest = min(narrowest, widths[i])
            many += counts[i]
        width = _PANEL * narrowest
        if below < -0.1:  # else at most a few draws are likely to be higher
            width /= 1.0 + 0.3 * _log_excess(many)
        width = max(width, 1e-4 * abs(bottom))  # it is larger, up to rounding
        below = _log_below(bottom + width, gaps, scales, counts, n, _NEGLIGIBLE)
        if below > _NEGLIGIBLE:
            for node, weight in zip(_NODES, _WEIGHTS):  # noqa: B905  (Numba knows no strict)
                u = bottom + 0.5 * width * (1.0 + node)
                at_u = _fill_hazards(u, gaps, scales, counts, n, hazards)
                density = 0.5 * weight * math.exp(at_u) * (width / _CELLS)
                for i in range(n):
                    won[i] += density * scales[i] * hazards[i]
        bottom += width
        left = 0
        for i in range(n):
            if gaps[i] + reach * widths[i] > bottom:
                gaps[left], widths[left], scales[left] = gaps[i], widths[i], scales[i]
                labels[left], won[left], counts[left] = labels[i], won[i], counts[i]
                left += 1
            else:
                total += counts[i] * won[i]
                _store(p, at_nodes, int(labels[i]), won[i])
        n = left
    if n == 1 and counts[0] == 1.0:
        won[0] = max(0.0, 1.0 - total)
    for i in range(n):
        _store(p, at_nodes, int(labels[i]), won[i])
    _interpolate(room, n_similar, p)
    total = 0.0
    for i in range(n_on_offer(offer, p.size)):
        k = nth_on_offer(offer, i, p.size)
        if n_equal > 1 and deviations[k] == widest and means[k] - origin == gap:
            p[k] = p[first]
        total += p[k]
    for i in range(n_on_offer(offer, p.size)):
        k = nth_on_offer(offer, i, p.size)
        p[k] /= total


@lean_kernel
def _store(p, at_nodes, label, probability):
    """Store the probability of a label, or of a node if the number is negative."""
    if label < 0:
        at_nodes[-1 - label] = probability
    else:
        p[label] = probability


@lean_kernel
def _merge_equal(gaps, widths, labels, counts, n):
    """Merge all draws that equal the widest one; return the number of draws left, and merged.

    The merged draw comes first. Labels that were never chosen have the widest draws, all equal.
    """
    for i in range(n):
        counts[i] = 1.0
    if n <= _FEW_DRAWS:
        return n, 1
    widest = 0
    for i in range(1, n):
        if widths[i] > widths[widest]:
            widest = i
    gap, width, equal = gaps[widest], widths[widest], 0
    for i in range(n):
        equal += gaps[i] == gap and widths[i] == width
    if equal == 1:
        return n, 1
    gaps[widest], widths[widest], label = gaps[0], widths[0], labels[widest]
    labels[widest] = labels[0]
    gaps[0], widths[0], labels[0], counts[0] = gap, width, label, equal
    left = 1
    for i in range(1, n):
        if gaps[i] != gap or widths[i] != width:
            gaps[left], widths[left], labels[left] = gaps[i], widths[i], labels[i]
            left += 1
    return left, equal


@lean_kernel
def _merge_similar(room, n):
    """Replace draws that are nearly alike by draws at nodes.

    Return the number of draws left, nodes first, and the number of draws that were replaced.

    With z = (u - mean) / width, each ln Phi(z) is a polynomial in mean and width, up to 1e-9 in the
    sum, that is given by its values at nodes. So the count of a node is the sum of its Lagrange
    polynomial over the draws, which may be negative, and p, which is a polynomial too, is
    interpolated between nodes.
    """
    if n < _LEAST_SIMILAR_DRAWS:
        return n, 0
    gaps, widths, labels, counts = room[0], room[1], room[4], room[6]
    alike, ts, ws, moments = room[8], room[9], room[10], room[11]
    width, gap, most = _most_frequent_width(gaps, widths, n, room[7], moments)
    if most < _LEAST_SIMILAR_DRAWS:
        return n, 0
    found = 0
    for i in range(n):
        scale = 1.0 / widths[i]
        ts[i] = (gaps[i] - gap) * (1.0 / _MEAN_TOLERANCE) * scale
        ws[i] = (width * scale - 1.0) * (1.0 / _WIDTH_TOLERANCE)
        found += _is_similar(ts[i], ws[i])
    if found < _LEAST_SIMILAR_DRAWS:
        return n, 0
    for c in range(_N_NODES):
        moments[c] = 0.0
    left, found = 0, 0
    for i in range(n):
        t, w = ts[i], ws[i]
        if _is_similar(t, w):
            alike[found], ts[found], ws[found] = labels[i], t, w
            found += 1
            _add_powers(moments, t, w, counts[i])
        else:
            gaps[left], widths[left] = gaps[i], widths[i]
            labels[left], counts[left] = labels[i], counts[i]
            left += 1
    # More were gathered than there are nodes, so that there is room for these before the others.
    for i in range(left - 1, -1, -1):
        to = i + _N_NODES
        gaps[to], widths[to], labels[to], counts[to] = gaps[i], widths[i], labels[i], counts[i]
    _transform(moments, _MEAN_VALUES, _WIDTH_POWERS, counts)
    for c in range(_N_NODES):
        widths[c] = width / (1.0 + _WIDTH_TOLERANCE * _WIDTH_NODES[c % _N_WIDTH_NODES])
        gaps[c] = gap + _MEAN_TOLERANCE * widths[c] * _MEAN_NODES[c // _N_WIDTH_NODES]
        labels[c] = -1.0 - c
    return left + _N_NODES, found


@lean_kernel
def _is_similar(t, w):
    """Return whether a draw is near enough, with a tolerance for draws at the end of a bin."""
    return abs(t) <= 1.01 and abs(w) <= 1.01


@lean_kernel
def _most_frequent_width(gaps, widths, n, bins, sums):
    """Return the most frequent width, the mean gap of its draws, and the number of these draws."""
    largest = 0.0
    for i in range(n):
        largest = max(largest, widths[i])
    for b in range(_N_WIDTH_BINS + 1):
        bins[b] = sums[b] = 0.0
    for i in range(n):
        place = (1.0 - widths[i] / largest) * (0.5 / _WIDTH_TOLERANCE)
        b = int(place) if place < _N_WIDTH_BINS else _N_WIDTH_BINS  # also if it is NaN
        bins[b] += 1.0
        sums[b] += gaps[i]
    most = 0
    for b in range(_N_WIDTH_BINS):
        if bins[b] > bins[most]:
            most = b
    gap = sums[most] / max(1.0, bins[most])
    return largest * (1.0 - (2 * most + 1) * _WIDTH_TOLERANCE), gap, bins[most]


@lean_kernel
def _add_powers(moments, t, w, count):
    """Add `count` times all products of powers of t and w; those of w are next to each other."""
    a, b, c, d = count, count * w, count * (w * w), count * (w * w * w)
    for j in range(0, _N_NODES, 4):
        moments[j] += a
        moments[j + 1] += b
        moments[j + 2] += c
        moments[j + 3] += d
        a *= t
        b *= t
        c *= t
        d *= t


@lean_kernel
def _interpolate(room, n_similar, p):
    """Fill the probabilities of draws that are nearly alike from those at the nodes."""
    if n_similar > 0:
        at_nodes, alike, ts, ws, factors = room[7], room[8], room[9], room[10], room[11]
        _transform(at_nodes, _MEAN_POWERS, _WIDTH_VALUES, factors)
        for i in range(n_similar):
            p[int(alike[i])] = max(0.0, _polynomial(factors, ts[i], ws[i]))


@lean_kernel
def _polynomial(factors, t, w):
    """Return the sum of factors times powers of t and w, those of w next to each other."""
    a = b = c = d = 0.0
    # Two powers of t at once, as each step waits for the last.
    for j in range(_N_NODES - 8, -8, -8):
        a = a * (t * t) + (factors[j] + t * factors[j + 4])
        b = b * (t * t) + (factors[j + 1] + t * factors[j + 5])
        c = c * (t * t) + (factors[j + 2] + t * factors[j + 6])
        d = d * (t * t) + (factors[j + 3] + t * factors[j + 7])
    return (a + w * b) + w * w * (c + w * d)


@lean_kernel
def _transform(values, of_means, of_widths, result):
    """Fill, for a matrix of values, row by row, of_means values of_widths."""
    no_alias()
    for i in range(_N_NODES):
        result[i] = 0.0
    for i in range(_N_MEAN_NODES):
        for r in range(_N_WIDTH_NODES):
            total = 0.0
            for c in range(_N_WIDTH_NODES):
                total += values[_N_WIDTH_NODES * i + c] * of_widths[c, r]
            for j in range(_N_MEAN_NODES):
                result[_N_WIDTH_NODES * j + r] += of_means[j, i] * total


@lean_kernel
def _log_excess(n):
    """Return ln(n / _FEW_DRAWS) for more than `_FEW_DRAWS` draws, else zero."""
    return math.log(n / _FEW_DRAWS) if n > _FEW_DRAWS else 0.0


@lean_kernel
def _table_position(z):
    """Return the position in the table of z, given in cells from its middle, within its ends."""
    place = z + _ZERO_CELL
    place = place if place > 0.0 else 0.0  # also if it is NaN: what is read is in the table
    return place if place < _LAST_CELL else _LAST_CELL


@lean_kernel
def _cubic(place, column):
    """Return the cubic of the cell at `place` whose coefficients begin in `column`."""
    cell = int(place)
    t, c = place - cell, 8 * cell + column
    return _TABLE[c] + t * (_TABLE[c + 1] + t * (_TABLE[c + 2] + t * _TABLE[c + 3]))


@lean_kernel
def _log_below(u, gaps, scales, counts, n, least):
    """Return the logarithm of the probability that all draws are below u, or one below `least`."""
    total = 0.0
    for i in range(n):
        total += counts[i] * _cubic(_table_position((u - gaps[i]) * scales[i]), 0)
        if i >= _N_NODES and total < least:  # nodes may count negatively, and come first
            return total
    return total


@lean_kernel
def _fill_hazards(u, gaps, scales, counts, n, hazards):
    """Fill phi(z) / Phi(z) of each draw's z at u; return the logarithm that all are below u."""
    total = 0.0
    for i in range(n):
        place = _table_position((u - gaps[i]) * scales[i])
        hazards[i] = _cubic(place, 4)
        total += counts[i] * _cubic(place, 0)
    return total
