"""Confidit: regret over the best label of a linear noise model, with high probability.

Label i has probability (alpha + u_i . x) / (alpha + 1). The regret of a round is the
probability of the best label minus that of the chosen one, so these bounds contain no loss of a
comparator. All hold with probability 1 - delta, simultaneously for all T.

The paper has ||x|| = 1 and A_0 = (1 + alpha)^2 I. With ||x|| <= X and A_0 = a I, its proofs yield
what is here: d_0(U, 0) = a ||U||^2 / 2, and x' A^{-1} x <= X^2 / a in (17).
"""

from __future__ import annotations

import math

from onebit.theory.bound import Bound


def confidit_terms(
    T: int, d: int, K: int, alpha: float, a: float | None = None, X: float = 1.0
) -> float:
    """Return B_3, a bound on the sum of x' A_t^{-1} x: d K ln(1 + T X^2 / (d K a))."""
    return d * K * math.log1p(T * X**2 / (d * K * _ridge(a, alpha)))


def _ridge(a: float | None, alpha: float) -> float:
    """Return the a of A_0 = a I; None is the paper's."""
    return (1.0 + alpha) ** 2 if a is None else a


def confidit(
    T: int,
    d: int,
    K: int,
    U: float,
    alpha: float = 1.0,
    delta: float = 0.05,
    approximation_error: float = 0.0,
    terms: float | None = None,
    a: float | None = None,
    X: float = 1.0,
) -> float:
    """Return a bound on the regret of `Confidit`, version 1 (Theorems 1 and 2).

    By the proof of Theorem 1, the regret is at most 2 / (1 + alpha) times the sum of the widths of
    the chosen labels, whose squares sum to at most (1 + alpha)^2 B_1 (B_2 + B_3) B_3 by (18). With
    the Cauchy-Schwarz inequality, and the 2 Q of (10) in B_2, this is

        2 Q + 2 sqrt(B_1 T (B_2 + 2 Q + B_3) B_3),

    B_1 = 1 + X^2 / a, B_2 = a ||U||^2 / (1 + alpha)^2 + 18 ln((T + 4) / delta). Q, the sum of the
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
    a : float, optional
        The learner's parameter; None is (1 + alpha)^2, where B_1 and B_2 are the paper's.
    X : float
        Length of the longest example: 1 if the learner normalises them.

    Returns
    -------
    float

    Examples
    --------
    >>> round(confidit(T=100_000, d=2, K=2, U=1.0))
    72069
    """
    B1, B2, B3 = _parts(T, d, K, U, alpha, delta, terms, a, X)
    Q = approximation_error
    return 2.0 * Q + 2.0 * math.sqrt(B1 * T * (B2 + 2.0 * Q + B3) * B3)


def _parts(
    T: int,
    d: int,
    K: int,
    U: float,
    alpha: float,
    delta: float,
    terms: float | None,
    a: float | None,
    X: float,
) -> tuple[float, float, float]:
    """Return B_1, B_2 and B_3."""
    ridge = _ridge(a, alpha)
    B2 = ridge * U**2 / (1.0 + alpha) ** 2 + 18.0 * math.log((T + 4) / delta)
    B3 = confidit_terms(T, d, K, alpha, a, X) if terms is None else terms
    return 1.0 + X**2 / ridge, B2, B3


def confidit_separated(
    T: int,
    d: int,
    K: int,
    U: float,
    margin: float,
    alpha: float = 1.0,
    delta: float = 0.05,
    terms: float | None = None,
    a: float | None = None,
    X: float = 1.0,
) -> float:
    """Return a bound on the regret if the best label leads by a margin (Corollary 1).

    By Lemma 7 a round costs at most 4 / ((1 + alpha) margin) times the squared width, so with (18)
    it is 4 / margin (1 + alpha) B_1 (B_2 + B_3) B_3.

    Parameters
    ----------
    T, d, K, U, alpha, delta, terms, a, X
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
    B1, B2, B3 = _parts(T, d, K, U, alpha, delta, terms, a, X)
    return 4.0 / margin * (1.0 + alpha) * B1 * (B2 + B3) * B3


CONFIDIT = Bound(
    "O(sqrt(T) log T) over the best label, linear noise (version 1)",
    why_not="Confidit's theorems compare with the best label of a linear noise model, not with the "
    "loss of a comparator: bounds.confidit(T, d, K, U) for streams that have one",
)
