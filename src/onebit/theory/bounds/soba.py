"""SOBA and its Algorithm 2."""

from __future__ import annotations

import math
from typing import Any

from onebit import losses
from onebit.theory.bound import Bound, NotProvenError, Setting, check_length, with_exploration
from onebit.theory.bounds.logistic import theory_beta
from onebit.theory.bounds.perceptron import eta_of_ball, largest_eta


def soba_terms(T: int, d: int, K: int, X: float, a: float) -> float:
    """Return a bound on the expected sum of n_t z_t' A_t^{-1} z_t (Lemma 3).

    The sum is at most ln det(A_T / a), for a matrix of size d K and, in expectation, of trace at
    most a d K + 2 X^2 T, as 1[label = y] / p_y has mean one.
    """
    return d * K * math.log1p(2.0 * X**2 * T / (a * d * K))


def soba(
    T: int,
    d: int,
    K: int,
    L: float,
    U: float,
    X: float,
    gamma: float,
    a: float = 1.0,
    eta: float = 1.0,
    terms: float | None = None,
) -> float:
    """Return a bound on the expected mistakes of `SOBA` in full form (Theorems 2 and 3).

    The greedy labels make at most L + a eta ||U||^2 / (2 - eta) + K Q / (gamma eta (2 - eta))
    mistakes, where Q is the expected sum of n_t z_t' A_t^{-1} z_t; `with_exploration` adds those of
    exploration, for which Theorem 2 has gamma T.

    Parameters
    ----------
    T, d, K : int
    L : float
        Sum of the eta-loss.
    U, X : float
        ||U||_F, length of the longest example.
    gamma, a : float
        The learner's parameters.
    eta : float in (0, 1]
        At most 2 / (2 max ||u_k|| X + 1).
    terms : float, optional
        Q of a run, or its mean over runs; by default its upper bound, `soba_terms`.

    Returns
    -------
    float

    Examples
    --------
    >>> round(soba(T=10_000, d=5, K=3, L=500.0, U=1.0, X=1.0, gamma=0.3, eta=2 / 3))
    3200
    """
    Q = soba_terms(T, d, K, X, a) if terms is None else terms
    share = eta * (2.0 - eta)
    greedy = L + a * eta * U**2 / (2.0 - eta) + K * Q / (gamma * share)
    return with_exploration(greedy, T, K, gamma)


def soba_hinge(
    T: int,
    d: int,
    K: int,
    L: float,
    U: float,
    X: float,
    gamma: float,
    a: float = 1.0,
    terms: float | None = None,
) -> float:
    """Return a bound on the expected mistakes of `SOBA`, over the hinge loss (Theorem 4).

    With H the expected sum of h_t, which counts the greedy labels' mistakes, inequality (5) divided
    by 2 eta is H <= L + eta ||U||^2 X^2 (H + a / (2 X^2)) + K Q / (2 gamma eta), for every eta > 0.
    With the best eta, v = H + a / (2 X^2) has v <= L + a / (2 X^2) + sqrt(C v),
    C = 2 ||U||^2 X^2 K Q / gamma, so that

        sqrt(v) <= sqrt(C) / 2 + sqrt(C / 4 + L + a / (2 X^2)).

    (The paper's eta lacks a square root, and the sum of its two terms a factor 2.)

    Parameters
    ----------
    T, d, K, L, U, X, gamma, a, terms
        As in `soba`, with the hinge loss.

    Returns
    -------
    float

    Examples
    --------
    >>> round(soba_hinge(T=10_000, d=5, K=3, L=500.0, U=1.0, X=1.0, gamma=0.3))
    4155
    """
    Q = soba_terms(T, d, K, X, a) if terms is None else terms
    C = 2.0 * U**2 * X**2 * K * Q / gamma
    least = a / (2.0 * X**2)
    H = (math.sqrt(C) / 2.0 + math.sqrt(C / 4.0 + L + least)) ** 2 - least
    return with_exploration(H, T, K, gamma)


def soba_hinge_gamma(T: int, d: int, K: int, L: float, U: float, X: float) -> float:
    """Return the gamma of Theorem 4, for a = X^2."""
    H = d * K**2 * X**2 * math.log(T)
    if (U**2 + 1.0) * math.sqrt(H * T) <= L:
        return min(1.0, (H * L / T**2) ** (1.0 / 3.0))
    return min(1.0, math.sqrt(H / T))


def soba_gamma(learner: Any, d: int, K: int) -> float:
    """Return the gamma of a `SOBA` that does not adapt: its own, or that of Theorem 2 or 4.

    Theorem 2 has O(sqrt(K^2 d ln(T) / T)), here with the constant 1.
    """
    T, L = learner.horizon, learner.comparator_loss
    if learner.gamma != "theory":
        return float(learner.gamma)
    if L is None:
        return min(1.0, K * math.sqrt(d * math.log(T) / T))
    return soba_hinge_gamma(T, d, K, float(L), float(learner.norm), float(learner.max_norm))


def soba_adaptive(
    T: int,
    d: int,
    K: int,
    L: float,
    U: float,
    X: float,
    a: float = 1.0,
    eta: float = 1.0,
    terms: float | None = None,
) -> float:
    """Return a bound on the expected mistakes of `SOBA` with gamma="adaptive" (Theorem 5).

    The last step of its proof, by Lemma 4 with c_t = K n_t z_t' A_t^{-1} z_t <= K = b, is

        L + a eta ||U||^2 / (2 - eta) + (2 + 2 / s) sqrt(K T (1 + Q)) + K Q / s

    with s = eta (2 - eta), where the square root of the expected Q is at least the expected square
    root.

    Parameters
    ----------
    T, d, K, L, U, X, a, eta, terms
        As in `soba`.

    Returns
    -------
    float

    Examples
    --------
    >>> round(soba_adaptive(T=100_000, d=5, K=3, L=500.0, U=1.0, X=1.0, eta=2 / 3))
    28864
    """
    Q = soba_terms(T, d, K, X, a) if terms is None else terms
    share = eta * (2.0 - eta)
    explored = (2.0 + 2.0 / share) * math.sqrt(K * T * (1.0 + Q)) + K * Q / share
    return L + a * eta * U**2 / (2.0 - eta) + explored


def exp_concave_gamma(T: int, d: int, K: int, eta: float) -> float:
    """Return the exploration of Theorem 7."""
    return min(1.0, K * math.sqrt(d * math.log(T) / (eta * T)))


def exp_concave_curvature(
    K: int, gamma: float, eta: float, X: float, D: float
) -> tuple[float, float]:
    """Return the largest norm of a gradient and the exp-concavity of Claim 1's losses.

    The derivative of l_eta in the margin m, |m| <= sqrt(2) X D, is at most F = 2 (1 + sqrt(2) eta X
    D) / (2 - eta), f'' is 2 eta / (2 - eta), the gradient of m has norm sqrt(2) ||x||, and weights
    are at most K / gamma.
    """
    F = 2.0 * (1.0 + math.sqrt(2.0) * eta * X * D) / (2.0 - eta)
    G = K / gamma * math.sqrt(2.0) * X * F
    return G, gamma / K * 2.0 * eta / (2.0 - eta) / F**2


def exp_concave_reduction(
    T: int,
    d: int,
    K: int,
    L: float,
    gamma: float,
    eta: float,
    D: float = 1.0,
    X: float = 1.0,
    beta: float | str = "theory",
    epsilon: float | str = "theory",
) -> float:
    """Return a bound on the expected mistakes of `ExpConcaveReduction` (Theorem 7).

    Its oracle, ONS or FTAL, has regret at most beta epsilon D^2 / 2 + sum of g' A_t^{-1} g / (2
    beta), A_t = epsilon I + sum of g g'; the sum is at most n ln(1 + sum of ||g||^2 / (epsilon n)),
    n = d (K - 1), as the rows of g sum to zero. A round has a non-zero gradient, of norm at most G,
    with probability gamma / K, so the expected sum of squares is at most T G^2 gamma / K, and the
    logarithm is concave. The paper says O(k^2 d ln(T) / (gamma eta)).

    Parameters
    ----------
    T, d, K : int
    L : float
        Sum of the eta-loss.
    gamma, eta, D, X, beta, epsilon
        The learner's parameters; D is its radius and X its max_norm.

    Returns
    -------
    float
    """
    if eta > 1.0 / max(2.0 * X * D, 1.0) * (1 + 1e-9):
        raise NotProvenError(f"Theorem 7 needs eta <= 1 / max(2 X D, 1); got {eta:g}")
    G, alpha = exp_concave_curvature(K, gamma, eta, X, D)
    largest = theory_beta(D, G, alpha)
    beta = largest if beta == "theory" else float(beta)
    if beta > largest * (1 + 1e-9):
        raise NotProvenError(f"the bound holds for a beta of at most {largest:.3g}; got {beta}")
    epsilon = 1.0 / (2.0 * D * beta) ** 2 if epsilon == "theory" else float(epsilon)
    n = d * (K - 1)
    growth = T * G**2 * gamma / (K * epsilon * n)
    regret = beta * epsilon * D**2 / 2.0 + n / (2.0 * beta) * math.log1p(growth)
    return with_exploration(L + regret, T, K, gamma)


def _soba(s: Setting) -> float:
    if s.learner.covariance != "full":
        raise NotProvenError("of SOBA with a diagonal covariance nothing is proven")
    eta = largest_eta(s.longest_row, s.X)
    if s.learner.gamma == "adaptive":
        return soba_adaptive(s.T, s.d, s.K, s.L, s.length, s.X, s.learner.a, eta)
    gamma = soba_gamma(s.learner, s.d, s.K)
    return soba(s.T, s.d, s.K, s.L, s.length, s.X, gamma, s.learner.a, eta)


def _eta_of(learner: object, X: float = 0.0, radius: float = 0.0) -> float:
    given = learner.eta  # type: ignore[attr-defined]
    size = 2.0 * learner.max_norm * learner.radius  # type: ignore[attr-defined]
    return 1.0 / max(size, 1.0) if given == "theory" else float(given)


def _exp_concave(s: Setting) -> float:
    me = s.learner
    check_length(s.X, me.max_norm)
    eta = _eta_of(me)
    gamma = me.gamma
    if gamma == "theory":
        gamma = exp_concave_gamma(me.horizon, s.d, s.K, eta)
    return exp_concave_reduction(
        s.T, s.d, s.K, s.L, gamma, eta, me.radius, me.max_norm, me.beta, me.epsilon
    )


SOBA = Bound("O~(sqrt(T)) over eta-loss (full)", _soba, loss=eta_of_ball)
EXP_CONCAVE_REDUCTION = Bound(
    "O(K sqrt(d T ln(T) / eta)) over eta-loss",
    _exp_concave,
    loss=lambda learner, X, radius: losses.of("eta", _eta_of(learner)),
    ball=lambda learner: ("frobenius", float(learner.radius)),
)
