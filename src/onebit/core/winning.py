"""The probability that each of several independent normal draws is the largest."""

from __future__ import annotations

import math

import numpy as np
from numpy.polynomial import Chebyshev, Polynomial
from scipy.special import erfcx

from onebit.core.compiling import lean_kernel
from onebit.core.exploration import argmax

_REACH = 6.0
"""A draw is taken to lie within so many standard deviations of its mean; one in 10^9 does not."""

_NEGLIGIBLE = 1e-10
"""A panel below which the largest draw lies with a smaller probability is left out."""

_PANEL = 2.0
"""Width of a panel of the integral, in standard deviations of the narrowest draw in it."""

_FARTHEST = 9.0
"""More than _REACH and _PANEL together: no z is farther from zero."""


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

_NODES, _WEIGHTS = (tuple(values.tolist()) for values in np.polynomial.legendre.leggauss(12))


@lean_kernel
def winning_probabilities(means, deviations, p, hazards):
    """Fill ``p[k]`` with the probability that draw k is the largest; return the k of the largest mean.

    Draw k is normal, with mean ``means[k]`` and standard deviation ``deviations[k]``, so

        p_k = integral over u of phi_k(u) times the product over j != k of Phi_j(u),

    by Gauss and Legendre in panels from the lowest u that the largest draw can have upwards. Each
    is as wide as its narrowest draw allows, and a draw that cannot reach it is left out: classes
    far below the best cost one comparison. `hazards` is room for K numbers.
    """
    best = argmax(means)
    bottom, narrowest = -math.inf, math.inf
    for k in range(p.size):
        p[k] = 0.0
        bottom = max(bottom, means[k] - _REACH * deviations[k])
        narrowest = min(narrowest, deviations[k])
    if not narrowest > 0.0:  # nothing to draw: x is zero, or the learner does not explore
        p[best] = 1.0
        return best
    total = 0.0
    while True:
        alive, last, narrowest = 0, best, math.inf
        for k in range(p.size):
            if means[k] + _REACH * deviations[k] > bottom:
                alive, last, narrowest = alive + 1, k, min(narrowest, deviations[k])
        if alive == 1:
            p[last] += max(0.0, 1.0 - total)
        if alive <= 1:
            break
        width = _PANEL * narrowest
        if _all_below(bottom + width, bottom, means, deviations) > _NEGLIGIBLE:
            for node, weight in zip(_NODES, _WEIGHTS):  # noqa: B905  (Numba knows no strict)
                u = bottom + 0.5 * width * (1.0 + node)
                density = 0.5 * width * weight
                for k in range(p.size):
                    if means[k] + _REACH * deviations[k] > bottom:
                        phi, Phi = normal_law((u - means[k]) / deviations[k])
                        hazards[k] = phi / (Phi * deviations[k])
                        density *= Phi
                for k in range(p.size):
                    if means[k] + _REACH * deviations[k] > bottom:
                        p[k] += density * hazards[k]
                        total += density * hazards[k]
        bottom += width
    total = 0.0
    for k in range(p.size):
        total += p[k]
    for k in range(p.size):
        p[k] /= total
    return best


@lean_kernel
def normal_law(z):
    """Return the density phi(z) and the probability Phi(z) of the standard normal law.

    For |z| up to _FARTHEST. One exponential serves both; math.erfc would take most of the time.
    """
    t = abs(z)
    w = (t - 4.0) / (t + 4.0)
    ratio = 0.0
    for coefficient in _MILLS:
        ratio = ratio * w + coefficient
    phi = math.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)
    return phi, (phi * ratio if z < 0.0 else 1.0 - phi * ratio)


@lean_kernel
def _all_below(u, bottom, means, deviations):
    """Return the probability that all draws that can reach `bottom` are below u."""
    product = 1.0
    for k in range(means.size):
        if means[k] + _REACH * deviations[k] > bottom:
            product *= normal_law((u - means[k]) / deviations[k])[1]
    return product
