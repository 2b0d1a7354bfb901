"""The probability that each of several independent normal draws is the largest."""

from __future__ import annotations

import math

import numpy as np
from numpy.polynomial import Chebyshev, Polynomial
from scipy.special import erfcx

from onebit.core.compiling import lean_kernel
from onebit.core.offer import n_on_offer, on_offer
from onebit.numerics.argmax import argmax

_REACH = 6.0
"""A draw is taken to lie within so many standard deviations of its mean; one in 10^9 does not."""

_FEW = 50
"""Of more draws, more reach far: the reach grows, so that the chance that any exceeds it does not.

Beyond r = 6, the chance to exceed r + ln(c) / 6 is less than 1 / c of that to exceed r.
"""

_NEGLIGIBLE = 1e-10
"""A panel below which the largest draw lies with a smaller probability is left out."""

_POINT = 1e-300
"""A smaller deviation is zero."""

_PANEL = 2.0
"""Width of a panel of the integral, in standard deviations of the narrowest draw in it.

Less for more than _FEW draws, as the law of the largest is the narrower, the more there are.
"""

_FARTHEST = 11.0
"""No z is farther from zero: more than the reach, for 10^8 draws, and _PANEL together."""


def _mills() -> tuple[float, ...]:
    """Return a polynomial in w = (t - 4) / (t + 4) for Phi(-t) / phi(t), highest power first.

    Right to 3e-10 of its value for t from zero to _FARTHEST.
    """

    def ratio(w: np.ndarray) -> np.ndarray:
        return math.sqrt(math.pi / 2.0) * erfcx(4.0 * (1.0 + w) / (1.0 - w) / math.sqrt(2.0))

    domain = [-1.0, (_FARTHEST - 4.0) / (_FARTHEST + 4.0)]
    fitted = Chebyshev.interpolate(ratio, 12, domain=domain).convert(kind=Polynomial)
    return tuple(fitted.coef[::-1].tolist())


_MILLS = _mills()

_HIGHEST_DENSITY = 1.0 / math.sqrt(2.0 * math.pi)

_NODES, _WEIGHTS = (tuple(values.tolist()) for values in np.polynomial.legendre.leggauss(12))


@lean_kernel
def winning_probabilities(means, deviations, p, room, offer=None):
    """Fill ``p[k]`` with the probability that draw k is the largest, and return the largest mean.

    Only the draws on offer take part; the others have probability zero.

    Draw k is normal, with mean ``means[k]`` and standard deviation ``deviations[k]``, so

        p_k = integral over u of phi_k(u) times the product over j != k of Phi_j(u),

    by Gauss and Legendre in panels from the lowest u that the largest draw can have upwards. Each
    is as wide as its narrowest draw allows, and a draw that cannot reach it is left out: classes
    far below the best cost one comparison. `room` is scratch of shape (4, K).

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
    gaps, widths, hazards, labels = room[0], room[1], room[2], room[3]
    n = 0
    for k in on_offer(offer, p.size):
        if means[k] - origin + reach * deviations[k] > bottom and deviations[k] >= _POINT:
            gaps[n], widths[n], labels[n] = means[k] - origin, deviations[k], k
            n += 1
    total = 0.0
    if deviations[highest] < _POINT:
        total = p[highest] = _all_below(bottom, gaps, widths, n)
    while n > 1:
        narrowest = widths[0]
        for i in range(1, n):
            narrowest = min(narrowest, widths[i])
        width = _PANEL * narrowest / (1.0 + 0.3 * _more_than_few(n))
        width = max(width, 1e-4 * abs(bottom))  # it is larger, up to rounding
        if _all_below(bottom + width, gaps, widths, n) > _NEGLIGIBLE:
            per_width = 1.0 / width
            for node, weight in zip(_NODES, _WEIGHTS):  # noqa: B905  (Numba knows no strict)
                u = bottom + 0.5 * width * (1.0 + node)
                density = 0.5 * weight
                for i in range(n):
                    phi, Phi = normal_law((u - gaps[i]) / widths[i])
                    hazards[i] = phi / (Phi * (per_width * widths[i]))
                    density *= Phi
                for i in range(n):
                    p[int(labels[i])] += density * hazards[i]
                    total += density * hazards[i]
        bottom += width
        left = 0
        for i in range(n):
            if gaps[i] + reach * widths[i] > bottom:
                gaps[left], widths[left], labels[left] = gaps[i], widths[i], labels[i]
                left += 1
        n = left
    if n == 1:
        p[int(labels[0])] += max(0.0, 1.0 - total)
    total = 0.0
    for k in range(p.size):
        total += p[k]
    for k in range(p.size):
        p[k] /= total
    return best


@lean_kernel
def normal_law(z):
    """Return the density phi(z) and the probability Phi(z) of the standard normal law.

    For z up to _FARTHEST, and no less than -_FARTHEST. One exponential serves both; math.erfc would
    take most of the time.
    """
    z = max(z, -_FARTHEST)
    t = abs(z)
    w = (t - 4.0) / (t + 4.0)
    ratio = 0.0
    for coefficient in _MILLS:
        ratio = ratio * w + coefficient
    phi = _HIGHEST_DENSITY * math.exp(-0.5 * z * z)
    return phi, (phi * ratio if z < 0.0 else 1.0 - phi * ratio)


@lean_kernel
def _more_than_few(n):
    """Return ln(n / _FEW) if there are so many draws, else zero."""
    return math.log(n / _FEW) if n > _FEW else 0.0


@lean_kernel
def _all_below(u, gaps, widths, n):
    """Return the probability that the first n draws are all below u."""
    product = 1.0
    for i in range(n):
        product *= normal_law((u - gaps[i]) / widths[i])[1]
    return product
