"""FastCB, for labels with logistic models."""

from __future__ import annotations

import math

from onebit.theory.bound import Bound, NotProvenError

LEAST_GAMMA = 10.0
"""The least gamma / K for which the bound is derived."""


def fast_cb_regret(
    T: int,
    d: int,
    K: int,
    B: float = 1.0,
    R: float = 1.0,
    regularization: float | None = None,
) -> float:
    """Return a bound on the regret of the K regressions of `FastCB` in T rounds, in nats.

    It is K times that of `aioli` in T / K rounds: each round is of one regression, and the bound is
    concave in the rounds.

    Examples
    --------
    >>> round(fast_cb_regret(T=20_000, d=1, K=2, B=2.0), 1)
    46.5
    """
    lambda_ = 1.0 / B**2 if regularization is None else regularization
    growth = T / K * R**2 / (8.0 * lambda_ * d * (1.0 + B * R))
    return K * (lambda_ * B**2 + d * (1.0 + B * R) * math.log1p(growth))


def fast_cb_gamma(K: int, L: float, regret: float) -> float:
    """Return the gamma that minimises the first-order terms of `fast_cb`, or 10 K if larger."""
    return max(LEAST_GAMMA * K, math.sqrt(2.8 * K * L / (7.4 * regret)))


def fast_cb(K: int, L: float, regret: float, gamma: float | None = None) -> float:
    """Return a bound on the expected mistakes of `FastCB`, if each label has a logistic model.

    It is (L + 7.4 gamma regret) / (1 - 2.8 K / gamma), for gamma >= 10 K; derived in the notes of
    `onebit.FastCB`.

    Parameters
    ----------
    K : int
    L : float
        Expected mistakes of the best labels, by the models.
    regret : float
        That of the regressions, in nats: `fast_cb_regret`.
    gamma : float, optional
        `fast_cb_gamma`, if not given.

    Returns
    -------
    float

    Examples
    --------
    >>> round(fast_cb(K=2, L=100.0, regret=46.5))
    9697
    """
    gamma = fast_cb_gamma(K, L, regret) if gamma is None else gamma
    if gamma < LEAST_GAMMA * K:
        raise NotProvenError(f"the bound is derived for gamma of at least 10 K; got {gamma:g}")
    return (L + 7.4 * gamma * regret) / (1.0 - 2.8 * K / gamma)


FAST_CB = Bound(
    "O(sqrt(K L* Reg) + K Reg) over L*, the mistakes of the best labels of logistic models",
    why_not="the theorem is about the best labels of a model of the noise, not about the loss of a "
    "comparator: bounds.fast_cb(K, L, bounds.fast_cb_regret(T, d, K, B, R))",
)
