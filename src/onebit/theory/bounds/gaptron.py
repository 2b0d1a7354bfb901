"""Gaptron, with full information and with one bit."""

from __future__ import annotations

import math

from onebit import losses
from onebit.theory.bound import Bound, NotProvenError, Setting, check_length


def theory_gamma(loss: str, K: int, X: float, D: float, T: int) -> float:
    """Return the exploration that Theorems 4 to 6 require with one bit in each of T rounds."""
    if loss == "hinge":
        return min(1.0, K**2 * X * D / ((K - 1) * math.sqrt(2 * T)))  # Theorem 5
    if loss == "smooth_hinge":
        return min(1.0, math.sqrt(2 / T) * K * X * D)  # Theorem 6, as its proof needs it
    # Theorem 4 is the smaller of two bounds, here without their factor K X D.
    exploring = max(2 * K * X * D / losses.LN2, 2 * math.sqrt(T / losses.LN2))
    if exploring * math.exp(-2 * D * X) > K * X * D / losses.LN2:
        return 0.0
    return min(1.0, K * X * D / math.sqrt(T * losses.LN2))


def theory_eta(loss: str, feedback: str, gamma: float, K: int, X: float, D: float) -> float:
    """Return the largest step size for which the theorems bound the surrogate gap by zero."""
    eta = {"logistic": losses.LN2 / 2, "hinge": 1 - 1 / K, "smooth_hinge": 1 / 4}[loss] / (K * X**2)
    if feedback == "full":
        return eta  # Theorems 1 to 3
    # A label's probability is at least max{a, gamma} / K.
    return eta / K * (max(math.exp(-2 * D * X), gamma) if loss == "logistic" else gamma)


def gaptron(
    T: int,
    K: int,
    L: float,
    U: float,
    loss: str = "logistic",
    feedback: str = "bandit",
    X: float = 1.0,
    D: float = 1.0,
    gamma: float | None = None,
    eta: float | None = None,
) -> float:
    """Return a bound on the expected mistakes of `Gaptron` (Lemma 1, Theorems 1 to 6).

    Lemma 1 is L + ||U||^2 / (2 eta) + gamma T (K - 1) / K, if the surrogate gap is not positive;
    `theory_eta` is the largest step size that ensures this. With full information and gamma = 0
    this is

    - Theorem 1, logistic: L + K X^2 ||U||^2 / ln 2,
    - Theorem 2, hinge: L + K^2 X^2 ||U||^2 / (2 (K - 1)),
    - Theorem 3, smooth hinge: L + 2 K X^2 ||U||^2,

    and with one bit, ||U|| <= D and the gamma of the theorems, at most what Theorems 4 to 6 say.

    Parameters
    ----------
    T, K : int
    L : float
        Sum of the loss; "logistic" is in bits.
    U : float
        ||U||_F, at most D.
    loss, feedback : str
        The learner's parameters.
    X, D : float
        Its max_norm and radius.
    gamma, eta : float, optional
        Its exploration and step size, if not those of the theorems for T rounds.

    Returns
    -------
    float

    Examples
    --------
    >>> gaptron(T=10_000, K=3, L=500.0, U=1.0, loss="hinge", feedback="full")
    502.25
    >>> round(gaptron(T=10_000, K=3, L=500.0, U=1.0, loss="hinge"), 1)
    924.3
    """
    if gamma is None:
        gamma = theory_gamma(loss, K, X, D, T) if feedback == "bandit" else 0.0
    largest = theory_eta(loss, feedback, gamma, K, X, D)
    eta = largest if eta is None else eta
    if eta > largest * (1 + 1e-9):
        raise NotProvenError(f"the bound holds for a step of at most {largest:.3g}; got {eta:g}")
    if U > D * (1 + 1e-9):
        raise NotProvenError(f"the bound is against weights of length at most D = {D:g}; got {U:g}")
    return L + U**2 / (2.0 * eta) + gamma * T * (K - 1) / K


def _gaptron(s: Setting) -> float:
    me = s.learner
    check_length(s.X, me.max_norm)
    D = math.inf if me.radius is None else float(me.radius)
    gamma = me.gamma
    if gamma == "theory":
        bandit = me.feedback == "bandit"
        gamma = theory_gamma(me.loss, s.K, me.max_norm, D, me.horizon) if bandit else 0.0
    if me.eta == "practical" and me.feedback == "bandit":
        raise NotProvenError('nothing is proven for eta="practical"; it is for "theory"')
    eta = None if isinstance(me.eta, str) else float(me.eta)
    return gaptron(s.T, s.K, s.L, s.length, me.loss, me.feedback, me.max_norm, D, gamma, eta)


GAPTRON = Bound(
    "O(K X D sqrt(T)) over the loss; full: O(K X^2 ||U||^2)",
    _gaptron,
    loss=lambda learner, X, radius: losses.of(learner.loss),
    ball=lambda learner: ("frobenius", learner.radius),
)
