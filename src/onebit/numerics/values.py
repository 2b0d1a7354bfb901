"""The probability that each label has the highest value: worth times P(right), minus cost.

Each label's probability of being right is drawn as a function of a normal draw t_k of its own, with
mean m_k and deviation d_k, and its value is V_k = w_k P(t_k) - c_k. There are two models:

- one logistic function a label: P(t) = 1 / (1 + e^{-t}), where m_k are the log-odds;
- a softmax: P(t) = min(1, e^t), where m_k is the logarithm of the label's probability. That is
  e^{z_k} / sum_j e^{s_j}, for a draw z_k of the score and the means s_j of all: the sum is kept at
  its estimate, so that a value depends on one draw alone. With equal worth and cost the highest
  draw wins, as it does without them.

V_k increases in t_k, so the distribution of the largest value is a product of normal ones,

    p_k = integral of Phi'(z_k) times the product over j != k of Phi(z_j(v)), over v = V_k(z_k),

a one-dimensional integral, here by Gauss-Legendre quadrature in panels. Values at the largest
probability, one, are equal for all larger draws: there the larger draw wins, among labels with
equal w_k - c_k.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
from numba import boolean, float64, int64

from onebit.core.compiling import called_from_python, entry_point, lean_kernel
from onebit.core.offer import on_offer
from onebit.numerics.winning import (
    _CELLS,
    _NEGLIGIBLE,
    _NODES,
    _PANEL,
    _REACH,
    _WEIGHTS,
    _cubic,
    _log_excess,
    _table_position,
    winning_probabilities,
)
from onebit.numerics.winning import ROOM as WINNING_ROOM

ROOM = 10
"""Rows of the scratch that `fill_valued` takes."""

_LEAST_DEVIATION = 1e-9
"""A draw with a smaller deviation is its mean."""

_LEAST_MEAN = -200.0
"""Least mean of a draw: probabilities below e^-200 count as e^-200."""

_CERTAIN_LOG_ODDS = 20.0
"""Log-odds above which a logistic function counts as one, which it is to 2e-9."""


@lean_kernel
def fill_valued(means, deviations, worth, cost, logistic, offer, p, room):
    """Fill the probability that each label on offer has the highest value; return the greedy one.

    The greedy label has the highest value at the means. `room` is scratch of shape (ROOM, K).
    """
    n_offered, best, highest = 0, -1, -1
    most = lowest = 0.0
    for k in range(p.size):
        p[k] = 0.0
    for k in on_offer(offer, p.size):
        value = worth[k] * _probability(means[k], logistic) - cost[k]
        if best < 0 or value > most:
            best, most = k, value
        n_offered += 1
    extra = _log_excess(n_offered)
    reach, panel = _REACH + extra / _REACH, _PANEL / (1.0 + 0.3 * extra)
    for k in on_offer(offer, p.size):
        t = means[k] - reach * deviations[k] if _is_drawn(deviations[k], worth[k]) else means[k]
        low = worth[k] * _probability(t, logistic) - cost[k]
        if highest < 0 or low > lowest:
            highest, lowest = k, low
    # Values are relative to minus the cost of that label: among labels of equal cost, differences
    # of small probabilities then keep their digits.
    base, is_drawn = cost[highest], _is_drawn(deviations[highest], worth[highest])
    t = means[highest] - (reach * deviations[highest] if is_drawn else 0.0)
    bottom = worth[highest] * _probability(t, logistic)
    m, d, w, c, ends, won = room[0], room[1], room[2], room[3], room[4], room[5]
    labels, z, hazards, slopes = room[6], room[7], room[8], room[9]
    cap, n = _CERTAIN_LOG_ODDS if logistic else 0.0, 0
    for k in on_offer(offer, p.size):
        if not _is_drawn(deviations[k], worth[k]):
            continue
        m[n], d[n], w[n], c[n] = max(means[k], _LEAST_MEAN), deviations[k], worth[k], cost[k] - base
        if _value(m[n] + reach * d[n], w[n], c[n], logistic) > bottom:
            labels[n], won[n], ends[n] = k, 0.0, (cap - m[n]) / d[n]
            n += 1
    if n == 0 or (n == 1 and is_drawn):
        p[highest] = 1.0
        return best
    total = 0.0
    if not is_drawn:
        below = 0.0
        for i in range(n):
            at, _ = _below_and_hazard(_standard(bottom, m, d, w, c, ends, i, logistic))
            below += at
        total = p[highest] = math.exp(below)
    while n > 1:
        # The panel ends where the first draw has moved by `panel`, or where it is certain.
        r, top, z_top = -1, 0.0, 0.0
        for i in range(n):
            z[i] = _standard(bottom, m, d, w, c, ends, i, logistic)
            end = min(z[i] + panel, ends[i])
            u = _value(m[i] + d[i] * end, w[i], c[i], logistic)
            if r < 0 or u < top:
                r, top, z_top = i, u, end
        width = z_top - z[r]
        below = 0.0
        for i in range(n):
            at, _ = _below_and_hazard(_standard(top, m, d, w, c, ends, i, logistic))
            below += at
        if below > _NEGLIGIBLE and width > 0.0:
            start = z[r]
            for node, weight in zip(_NODES, _WEIGHTS):  # noqa: B905  (Numba knows no strict)
                u = _value(m[r] + d[r] * (start + 0.5 * width * (1.0 + node)), w[r], c[r], logistic)
                below = 0.0
                for i in range(n):
                    at, hazards[i] = _below_and_hazard(_standard(u, m, d, w, c, ends, i, logistic))
                    below += at
                    slopes[i] = _slope(u, d[i], w[i], c[i], logistic)
                density = 0.5 * weight * width * math.exp(below) * slopes[r]
                for i in range(n):
                    if slopes[i] > 0.0:
                        won[i] += density * hazards[i] / slopes[i]
        bottom = max(bottom, top)
        if z_top >= ends[r] or not width > 0.0:
            _add_certain(m, d, w, c, ends, won, n, r, bottom, logistic, reach, panel, hazards, z)
        left = 0
        for i in range(n):
            # `z` has NaN where a draw cannot be any higher.
            is_done = math.isnan(z[i])
            if not is_done and _standard(bottom, m, d, w, c, ends, i, logistic) < reach:
                m[left], d[left], w[left], c[left] = m[i], d[i], w[i], c[i]
                ends[left], won[left], labels[left] = ends[i], won[i], labels[i]
                left += 1
            else:
                p[int(labels[i])] = won[i]
                total += won[i]
        n = left
    for i in range(n):
        p[int(labels[i])] = max(0.0, 1.0 - total)
    total = 0.0
    for k in on_offer(offer, p.size):
        total += p[k]
    for k in on_offer(offer, p.size):
        p[k] /= total
    return best


@lean_kernel
def _is_drawn(deviation, worth):
    """Return whether a value is drawn; otherwise it is known."""
    return deviation >= _LEAST_DEVIATION and worth > 0.0


@lean_kernel
def _below_and_hazard(z):
    """Return ln Phi(z) and phi(z) / Phi(z)."""
    place = _table_position(z * _CELLS)
    return _cubic(place, 0), _cubic(place, 4)


@lean_kernel
def _probability(t, logistic):
    """Return P(t)."""
    if logistic:
        return 1.0 / (1.0 + math.exp(-t)) if t > _LEAST_MEAN else math.exp(_LEAST_MEAN)
    return math.exp(min(max(t, _LEAST_MEAN), 0.0))


@lean_kernel
def _value(t, w, c, logistic):
    """Return the value of a draw."""
    return w * _probability(t, logistic) - c


@lean_kernel
def _standard(u, m, d, w, c, ends, i, logistic):
    """Return the z of draw i at which its value is u, within its ends."""
    P = (u + c[i]) / w[i]
    if not P > 0.0:
        return -1e3
    if logistic:
        P = P / (1.0 - P) if P < 1.0 else 1e300
    return min((math.log(P) - m[i]) / d[i], ends[i])


@lean_kernel
def _slope(u, d, w, c, logistic):
    """Return the derivative of a value with respect to z, at u."""
    P = (u + c) / w
    return d * (u + c) * (1.0 - P) if logistic else d * (u + c)


@lean_kernel
def _add_certain(m, d, w, c, ends, won, n, r, u, logistic, reach, panel, hazards, z):
    """Add the probabilities to win of draws whose label is certainly right: r and its equals.

    Their values are the same, and the larger draw wins. `z` becomes NaN for each of them.
    """
    end, outside = w[r] - c[r], 0.0
    t = m[r] + d[r] * ends[r]
    for i in range(n):
        if i == r or abs(w[i] - c[i] - end) <= 1e-12 * (w[i] + w[r]):
            z[i] = math.nan
        else:
            at, _ = _below_and_hazard(_standard(u, m, d, w, c, ends, i, logistic))
            outside += at
    if outside < _NEGLIGIBLE:
        return
    while True:
        narrowest, count = 0.0, 0
        for i in range(n):
            if math.isnan(z[i]) and (t - m[i]) / d[i] < reach:
                narrowest = d[i] if count == 0 else min(narrowest, d[i])
                count += 1
        if count == 0:
            return
        width = max(panel * narrowest, 1e-12 * abs(t))
        for node, weight in zip(_NODES, _WEIGHTS):  # noqa: B905  (Numba knows no strict)
            at_t, below = t + 0.5 * width * (1.0 + node), outside
            for i in range(n):
                if math.isnan(z[i]):
                    at, hazards[i] = _below_and_hazard((at_t - m[i]) / d[i])
                    below += at
            density = 0.5 * weight * width * math.exp(below)
            for i in range(n):
                if math.isnan(z[i]):
                    won[i] += density * hazards[i] / d[i]
        t += width


@called_from_python
def _fill_valued_for_python(means, deviations, worth, cost, logistic, offer, p, room):
    return fill_valued(means, deviations, worth, cost, logistic, offer, p, room)


@cache
def _fill_valued_entry() -> Any:
    column = float64[::1]
    return entry_point(
        _fill_valued_for_python,
        (column, column, column, column, boolean, int64[::1], column, float64[:, ::1]),
    )


def valued_policy(
    means: np.ndarray,
    deviations: np.ndarray,
    worth: np.ndarray,
    cost: np.ndarray,
    offer: np.ndarray,
    p: np.ndarray,
    *,
    logistic: bool = False,
) -> int:
    """Call `fill_valued` from Python."""
    room = np.empty((ROOM, p.size))
    return int(_fill_valued_entry()(means, deviations, worth, cost, logistic, offer, p, room))


def widened_by_value(
    means: np.ndarray,
    deviations: np.ndarray,
    explore: float,
    worth: np.ndarray,
    cost: np.ndarray,
    offer: np.ndarray,
) -> np.ndarray:
    """Return the deviations of draws of log-odds, wider for labels that might be worth much more.

    Draws are `explore` = nu times as wide as the model says. With b the label of the highest value
    V_b at the means, label k would have the value w_k - c_k if it were always right. With
    g_k = (w_k - c_k - V_b) / w_k, the possible gain as a share of its worth, and r_k = 1 - d_b^2 /
    d_k^2, which is larger the less is known of k, nu becomes nu + (1 - nu) g_k r_k. So labels that
    were hardly ever chosen are explored where they may gain something, and nowhere else.
    """
    if not 0.0 < explore < 1.0:
        return deviations
    value = worth / (1.0 + np.exp(-np.maximum(means, _LEAST_MEAN))) - cost
    best = offer[np.argmax(value[offer])]
    gain = np.clip((worth - cost - value[best]) / np.maximum(worth, 1e-300), 0.0, 1.0)
    squares = np.maximum(deviations, 1e-150) ** 2
    less_known = np.maximum(0.0, 1.0 - squares[best] / squares)
    return deviations * (1.0 + (1.0 - explore) / explore * gain * less_known)


def compile_values() -> None:
    """Compile what decisions with worth and cost need."""
    _fill_valued_entry()
    _winning_entry()


@called_from_python
def _winning_for_python(means, deviations, p, room, offer):
    return winning_probabilities(means, deviations, p, room, offer)


@cache
def _winning_entry() -> Any:
    column = float64[::1]
    return entry_point(_winning_for_python, (column, column, column, float64[:, ::1], int64[::1]))


def linear_policy(
    means: np.ndarray, deviations: np.ndarray, offer: np.ndarray, p: np.ndarray
) -> int:
    """Call `winning_probabilities` from Python: for values that are linear in their draws."""
    room = np.empty((WINNING_ROOM, p.size))
    return int(_winning_entry()(means, deviations, p, room, offer))
