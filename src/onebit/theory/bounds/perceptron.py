"""Full information: the Perceptron and its relatives."""

from __future__ import annotations

import math
from typing import Any

from onebit import losses
from onebit.theory.bound import Bound, NotProvenError, Setting


def perceptron(L: float, U: float, X: float, q: float = 1.0) -> float:
    """Return the most mistakes that SOBA's Theorem 1 allows the multiclass Perceptron.

    It is the root M of M = M^(1 - 1/q) L^(1/q) + ||U|| X sqrt(2 M): for q = 1 at most L + 2 X^2
    ||U||^2 + X ||U|| sqrt(2 L), for q = 2 it is (sqrt(L) + ||U|| X sqrt(2))^2. Divided by sqrt(M),
    the left side grows and the right side does not, so there is one root, and no M that satisfies
    the theorem is above it.

    Parameters
    ----------
    L : float
        Sum of the hinge loss to the power q.
    U, X : float
        ||U||_F and the length of the longest example.
    q : float in [1, 2]

    Returns
    -------
    float

    Examples
    --------
    >>> round(perceptron(L=100.0, U=3.0, X=1.0), 1)
    152.4
    """
    if not 1.0 <= q <= 2.0:
        raise ValueError(f"the theorem is for q in [1, 2]; got {q}")
    c = math.sqrt(2.0) * U * X
    high = 2.0 * (L + c * c) + 1.0

    def excess(M: float) -> float:
        return M - M ** (1.0 - 1.0 / q) * L ** (1.0 / q) - c * math.sqrt(M)

    while excess(high) < 0.0:
        high *= 2.0
    if L == 0.0:
        return c * c
    # Below the root the excess is negative, except at M = 0.
    low = max(c * c, L) * (1.0 - 1e-12)
    return low if excess(low) >= 0.0 else float(_root(excess, low, high, xtol=1e-9))


def second_order_perceptron(
    L: float, U: float, X: float, d: int, K: int, a: float = 1.0, eta: float = 1.0
) -> float:
    """Return the most mistakes of `SecondOrderPerceptron` in full form.

    This is SOBA's Lemma 2 with every label known, p = 1, and updates only on mistakes, whose
    margins m_t are non-negative: for eta U it says

        M <= L + a eta ||U||^2 / (2 - eta) + Q / (eta (2 - eta)),

    Q = sum of z' A_t^{-1} z <= ln det(A / a) <= d K ln(1 + 2 X^2 M / (a d K)). The bound is the M
    for which this holds with equality. L is the eta-loss, and eta <= 2 / (2 max ||u_k|| X + 1) is
    required, so that the quadratic is below the loss.

    Parameters
    ----------
    L, U, X : float
        Sum of the eta-loss, ||U||_F, length of the longest example.
    d, K : int
    a : float
        The learner's parameter.
    eta : float in (0, 1]

    Returns
    -------
    float

    Examples
    --------
    >>> round(second_order_perceptron(L=100.0, U=1.0, X=1.0, d=5, K=3), 1)
    146.3
    """
    fixed = L + a * eta * U**2 / (2.0 - eta)

    def excess(M: float) -> float:
        Q = d * K * math.log1p(2.0 * X**2 * M / (a * d * K))
        return fixed + Q / (eta * (2.0 - eta)) - M

    high = fixed + 1.0
    while excess(high) > 0.0:
        high *= 2.0
    return float(_root(excess, fixed, high, xtol=1e-9)) if excess(fixed) > 0.0 else fixed


def largest_eta(longest_row: float, X: float) -> float:
    """Return the largest eta for which SOBA's theorems hold: min{1, 2 / (2 max ||u_k|| X + 1)}."""
    return min(1.0, 2.0 / (2.0 * longest_row * X + 1.0))


def passive_aggressive(L: float, U: float, X: float, C: float, variant: str = "PA-I") -> float:
    """Return the most mistakes of `PassiveAggressive`.

    Crammer et al. (2006) with the pair z = (e_y - e_j) (x) x, ||z||^2 = 2 ||x||^2, in place of y x.
    Each step tau of a round with losses l, of the learner, and l*, of U for the same pair, gives
    sum of tau (2 l - 2 l* - 2 tau ||x||^2) <= ||U||^2.

    PA-I: tau l >= min{C, 1 / (2 X^2)} where l >= 1, and 2 tau ||x||^2 <= l, so that M <= max{2 X^2,
    1 / C} (||U||^2 + 2 C L). PA-II: M <= sum of l^2 <= (2 X^2 + 1 / (2 C)) (||U||^2 + 2 C L), with
    L the squared hinge. PA: M <= 2 X^2 ||U||^2, if U has zero hinge loss.

    Parameters
    ----------
    L : float
        Sum of the hinge loss, for PA-II of its square.
    U, X : float
    C : float
        The learner's parameter.
    variant : {"PA", "PA-I", "PA-II"}

    Returns
    -------
    float
    """
    if variant == "PA-I":
        return max(2.0 * X**2, 1.0 / C) * (U**2 + 2.0 * C * L)
    if variant == "PA-II":
        return (2.0 * X**2 + 0.5 / C) * (U**2 + 2.0 * C * L)
    if L > 0.0:
        raise NotProvenError(
            f"for PA something is proven only if U has no hinge loss; it has {L:.3g}"
        )
    return 2.0 * X**2 * U**2


def arow(L: float, N: int, UAU: float, log_det: float) -> float:
    """Return the most mistakes of `AROW` in full form, in a run (Crammer et al. 2009, Theorem 2).

    It is L - N + sqrt(U' A U (ln det(A / r) + N)), where A = r Sigma^{-1} after the run, N is the
    number of updates on right labels, and L the hinge loss of U. The proof goes through with z =
    (e_y - e_j) (x) x in place of y x.

    Parameters
    ----------
    L : float
    N : int
    UAU, log_det : float
        U' A U and ln det(A / r).

    Returns
    -------
    float
    """
    return L - N + math.sqrt(UAU * (log_det + N))


def _arow(s: Setting) -> float:
    if s.learner.covariance != "full":
        raise NotProvenError("of AROW with a diagonal covariance nothing is proven")
    if s.updates is None or s.mistakes is None:
        raise NotProvenError("the bound of AROW depends on the mistakes and updates of a run")
    # U' A U = r ||U||^2 + sum over the updates of <U, z>^2, each at most 2 X^2 ||U||^2; and det(A /
    # r) is largest when all eigenvalues are equal.
    n, size = s.updates, s.d * s.K
    UAU = s.length**2 * (s.learner.r + 2.0 * s.X**2 * n)
    log_det = size * math.log1p(2.0 * s.X**2 * n / (s.learner.r * size))
    return arow(s.L, n - s.mistakes, UAU, log_det)


def _second_order(s: Setting) -> float:
    if s.learner.covariance != "full":
        raise NotProvenError("of the diagonal second-order Perceptron nothing is proven")
    eta = largest_eta(s.longest_row, s.X)
    return second_order_perceptron(s.L, s.length, s.X, s.d, s.K, s.learner.a, eta)


def _root(excess: Any, low: float, high: float, **options: float) -> float:
    from scipy.optimize import brentq  # which takes long to import

    return brentq(excess, low, high, **options)


def eta_of_ball(learner: Any, X: float, radius: float) -> losses.Loss:
    """Return the eta-loss for which the theorems hold for all weights in a ball."""
    return losses.of("eta", largest_eta(radius, X))


PERCEPTRON = Bound("L + ||U|| X sqrt(2 M)", lambda s: perceptron(s.L, s.length, s.X))
SECOND_ORDER_PERCEPTRON = Bound(
    "L + O(||U||^2 + d K ln(L)) over eta-loss (full)", _second_order, loss=eta_of_ball
)
AROW = Bound("L - N + sqrt(U' A U (ln det(A / r) + N)) (full)", _arow, needs=("run",))
PASSIVE_AGGRESSIVE = Bound(
    "max(2 X^2, 1 / C) (||U||^2 + 2 C L) (PA-I)",
    lambda s: passive_aggressive(s.L, s.length, s.X, s.learner.C, s.learner.variant),
    loss=lambda learner, X, radius: losses.of(
        "squared_hinge" if learner.variant == "PA-II" else "hinge"
    ),
)
