"""Confidit: regret over the best label of a linear noise model, with high probability.

Label i has probability (alpha + u_i . x) / (alpha + 1), ||x|| = 1. The regret of a round is the
probability of the best label minus that of the chosen one, so these bounds contain no loss of a
comparator. All hold with probability 1 - delta, simultaneously for all T.
"""

from __future__ import annotations

import math

from onebit.theory.bound import Bound


def confidit_terms(T: int, d: int, K: int, alpha: float) -> float:
    """Return B_3, a bound on the sum of x' A_t^{-1} x: d K ln(1 + T / (d K (1 + alpha)^2))."""
    return d * K * math.log1p(T / (d * K * (1.0 + alpha) ** 2))


def confidit(
    T: int,
    d: int,
    K: int,
    U: float,
    alpha: float = 1.0,
    delta: float = 0.05,
    approximation_error: float = 0.0,
    terms: float | None = None,
) -> float:
    """Return a bound on the regret of `Confidit`, version 1 (Theorems 1 and 2).

    By the proof of Theorem 1, the regret is at most 2 / (1 + alpha) times the sum of the widths of
    the chosen labels, whose squares sum to at most (1 + (1 + alpha)^2) (B_2 + B_3) B_3 by (18).
    With the Cauchy-Schwarz inequality, and the 2 Q of (10) in B_2, this is

        2 Q + 2 sqrt(B_1 T (B_2 + 2 Q + B_3) B_3),

    B_1 = 1 + (1 + alpha)^-2, B_2 = ||U||^2 + 18 ln((T + 4) / delta). Q, the sum of the
    approximation errors, is zero in Theorem 1.

    Parameters
    ----------
    T, d, K : int
    U : float
        The learner's parameter norm, at least ||U|| of the true weights.
    alpha, delta : float
        The learner's parameters.
    approximation_error : float
        Q, their sum over the T rounds.
    terms : float, optional
        The sum of x' A_t^{-1} x of a run, in place of B_3.

    Returns
    -------
    float

    Examples
    --------
    >>> round(confidit(T=100_000, d=2, K=2, U=1.0))
    72069
    """
    B1 = 1.0 + (1.0 + alpha) ** -2
    B2 = U**2 + 18.0 * math.log((T + 4) / delta)
    B3 = confidit_terms(T, d, K, alpha) if terms is None else terms
    Q = approximation_error
    return 2.0 * Q + 2.0 * math.sqrt(B1 * T * (B2 + 2.0 * Q + B3) * B3)


def confidit_separated(
    T: int,
    d: int,
    K: int,
    U: float,
    margin: float,
    alpha: float = 1.0,
    delta: float = 0.05,
    terms: float | None = None,
) -> float:
    """Return a bound on the regret if the best label leads by a margin (Corollary 1).

    By Lemma 7 a round costs at most 4 / ((1 + alpha) margin) times the squared width, so with (18)
    it is 4 / margin (1 + alpha + 1 / (1 + alpha)) (B_2 + B_3) B_3.

    Parameters
    ----------
    T, d, K, U, alpha, delta, terms
        As in `confidit`.
    margin : float
        The least lead of u_b . x over all other u_i . x, where b is the best label.

    Returns
    -------
    float

    Examples
    --------
    >>> round(confidit_separated(T=1_000_000, d=1, K=2, U=1.5, margin=2.0))
    38532
    """
    B2 = U**2 + 18.0 * math.log((T + 4) / delta)
    B3 = confidit_terms(T, d, K, alpha) if terms is None else terms
    return 4.0 / margin * (1.0 + alpha + 1.0 / (1.0 + alpha)) * (B2 + B3) * B3


CONFIDIT = Bound(
    "O(sqrt(T) log T) over the best label, linear noise (version 1)",
    why_not="Confidit's theorems compare with the best label of a linear noise model, not with the "
    "loss of a comparator: bounds.confidit(T, d, K, U) for streams that have one",
)
