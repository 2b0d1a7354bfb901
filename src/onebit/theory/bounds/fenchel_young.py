"""Randomized decoding of the logistic loss, with full information and with one bit."""

from __future__ import annotations

import math

from onebit.theory.bound import Bound, NotProvenError, Setting, check_length

ETA = 0.8555
"""eta_0, the least 2 (loss - chance of a mistake) / ||gradient||^2 for examples of unit length.

It is the minimum over p in (0, 1/2] of (ln 2)^2 (2 p^2 - 1 - log2 p) / (1 - p)^2, 0.85554 at
p = 0.387, rounded down; the derivation is in the notes of `onebit.FenchelYoung`.
"""


def theory_gamma(K: int, X: float, D: float, T: int) -> float:
    """Return the exploration that minimises the bound with one bit in each of T rounds."""
    return min(1.0, K * X * D / math.sqrt(2.0 * ETA * (K - 1) * T))


def theory_eta(feedback: str, gamma: float, K: int, X: float) -> float:
    """Return the largest step size for which the bound holds."""
    eta = ETA / X**2
    return eta if feedback == "full" else eta * gamma / K


def fenchel_young(
    T: int,
    K: int,
    L: float,
    U: float,
    feedback: str = "bandit",
    X: float = 1.0,
    gamma: float | None = None,
    eta: float | None = None,
) -> float:
    """Return a bound on the expected mistakes of `FenchelYoung`.

    It is L + ||U||^2 / (2 eta) + gamma T (K - 1) / K, for a step of at most `theory_eta`: the
    surrogate loss of a round exceeds its chance of a mistake by eta / 2 times the expected squared
    norm of the gradient's estimate, up to gamma (K - 1) / K.

    Parameters
    ----------
    T, K : int
    L : float
        Sum of the logistic loss, in bits.
    U : float
        ||U||_F, of any weights.
    feedback : {"bandit", "full"}
    X : float
        Largest norm of an example.
    gamma, eta : float, optional
        The learner's exploration and step size; those of the theory for T rounds and D = ||U||, if
        not given.

    Returns
    -------
    float

    Examples
    --------
    >>> round(fenchel_young(T=10_000, K=3, L=500.0, U=1.0, feedback="full"), 2)
    500.58
    >>> round(fenchel_young(T=10_000, K=3, L=500.0, U=1.0), 1)
    716.2
    """
    if gamma is None:
        gamma = theory_gamma(K, X, U, T) if feedback == "bandit" else 0.0
    largest = theory_eta(feedback, gamma, K, X)
    eta = largest if eta is None else eta
    if not 0.0 < eta <= largest * (1 + 1e-9):
        raise NotProvenError(f"the bound holds for a step of at most {largest:.3g}; got {eta:g}")
    return L + U**2 / (2.0 * eta) + gamma * T * (K - 1) / K


def _fenchel_young(s: Setting) -> float:
    me = s.learner
    check_length(s.X, me.max_norm)
    bandit = me.feedback == "bandit"
    gamma = me.gamma
    if gamma == "theory":
        gamma = theory_gamma(s.K, me.max_norm, me.radius, me.horizon) if bandit else 0.0
    eta = None if me.eta == "theory" else float(me.eta)
    return fenchel_young(s.T, s.K, s.L, s.length, me.feedback, me.max_norm, gamma, eta)


FENCHEL_YOUNG = Bound(
    "O(X D sqrt(K T)) over logistic loss; full: O(X^2 ||U||^2)",
    _fenchel_young,
    loss="logistic",
)
