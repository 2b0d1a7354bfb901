"""First-order learners with one bit: Banditron, Bandit EG+- and the bandit Perceptrons."""

from __future__ import annotations

import math

import numpy as np

from onebit.theory.bound import Bound, NotProvenError, with_exploration


def variance_of_right_rounds(K: int, gamma: float) -> float:
    """Return the expected ||U~||^2 / ||x||^2 of Banditron's update where the greedy label is right.

    With P = 1 - gamma (K - 1) / K its probability, it is P (1 / P - 1)^2 + 1 - P = (1 - P) / P.
    """
    wrong = gamma * (K - 1) / K
    return wrong / (1.0 - wrong)


def banditron(T: int, K: int, L: float, U: float, X: float, gamma: float) -> float:
    """Return a bound on the expected mistakes of `Banditron`, over the hinge loss.

    Kakade et al. (2008) with the constants that their argument yields. The update U~ has the mean
    of the Perceptron's, so E<W_t, U~> <= 0, and E<U, W_{T+1}> >= M - L, where M are the mistakes of
    the greedy label. Its expected square is X^2 (K / gamma + 1) where that is wrong and X^2 rho
    where it is right, `variance_of_right_rounds`. By the Cauchy-Schwarz inequality

        M - L <= ||U|| X sqrt((K / gamma + 1 - rho) M + rho T),

    a quadratic inequality with one positive root. `with_exploration` adds the cost of exploration.

    Parameters
    ----------
    T, K : int
    L, U, X : float
        Sum of the hinge loss, ||U||_F, length of the longest example.
    gamma : float in (0, 1]
        The learner's parameter.

    Returns
    -------
    float

    Examples
    --------
    >>> round(banditron(T=10_000, K=3, L=500.0, U=1.0, X=1.0, gamma=0.1))
    1246
    """
    B, rho = (U * X) ** 2, variance_of_right_rounds(K, gamma)
    c = K / gamma + 1.0 - rho
    root = math.sqrt((B * c) ** 2 + 4.0 * B * (c * L + rho * T))
    return with_exploration(L + (B * c + root) / 2.0, T, K, gamma)


def bandit_eg(
    T: int, d: int, K: int, L: float, U: float, X: float, eta: float, gamma: float
) -> float:
    """Return a bound on the expected mistakes of `BanditEG`, over the hinge loss.

    With the potential ln sum (e^theta + e^-theta), as in the notes of `BanditEG`, the greedy label
    makes M mistakes with

        M <= L + B ln(2 K d) / eta + (B eta X^2 / 2) ((K / gamma + 1) M + rho (T - M)).

    If the factor of M on the right is at least one, nothing is proven.

    Parameters
    ----------
    T, d, K : int
    L : float
        Sum of the hinge loss.
    U, X : float
        Sum of the absolute values of the comparator's weights, B; largest |x_j|.
    eta, gamma : float
        The learner's parameters.

    Returns
    -------
    float
    """
    half, rho = U * eta * X**2 / 2.0, variance_of_right_rounds(K, gamma)
    kept = 1.0 - half * (K / gamma + 1.0 - rho)
    if kept <= 0.0:
        largest = 2.0 / (U * X**2 * (K / gamma + 1.0 - rho))
        raise NotProvenError(
            f"with gamma={gamma:g} the bound needs eta < {largest:.3g}; got {eta:g}"
        )
    greedy = (L + U * math.log(2.0 * K * d) / eta + half * rho * T) / kept
    return with_exploration(greedy, T, K, gamma)


def separable_bandit(K: int, R: float, margin: float) -> int:
    """Return a bound on the expected mistakes of `SeparableBandit`, for any number of rounds.

    It is (K - 1) floor(4 (R / margin)^2), if vectors u_k whose squared norms sum to at most one
    have <u_y, x> >= margin / 2 and <u_k, x> <= -margin / 2 for k != y, ||x|| <= R: the Perceptrons
    are corrected at most 4 (R / margin)^2 times; a wrong label of one that said yes is a
    correction, and K - 1 wrong guesses are expected for each right one. With a kernel it holds for
    norms and margin in its space.

    Parameters
    ----------
    K : int
    R, margin : float

    Returns
    -------
    int

    Examples
    --------
    >>> separable_bandit(K=3, R=1.0, margin=0.2)
    200
    """
    return (K - 1) * math.floor(4.0 * (R / margin) ** 2 * (1 + 1e-12))


def strong_margin(U: np.ndarray, X: np.ndarray, y: np.ndarray) -> float:
    """Return the margin for which weights U show a stream to be strongly separable.

    Parameters
    ----------
    U : ndarray of shape (n_classes, n_features)
        Scaled to ||U||_F = 1 here.
    X : ndarray or sparse matrix of shape (n, n_features)
    y : ndarray of int
        Positions of the labels.

    Returns
    -------
    float
        Twice the least <u_y, x> and -<u_k, x>, k != y. If it is not positive, U shows nothing.
    """
    scores = np.asarray(X @ (U / np.linalg.norm(U)).T)
    signs = np.where(np.arange(len(U)) == np.asarray(y)[:, np.newaxis], 1.0, -1.0)
    return 2.0 * float((signs * scores).min())


BANDITRON = Bound(
    "O(T^(2/3)) over hinge loss",
    lambda s: banditron(s.T, s.K, s.L, s.length, s.X, s.learner.gamma),
)
BANDIT_EG = Bound(
    "O(T^(2/3)) over hinge loss, logarithmic in d",
    lambda s: bandit_eg(
        s.T,
        s.d,
        s.K,
        s.L,
        float(np.abs(s.U).sum()),
        s.largest,
        s.learner.eta,
        s.learner.gamma,
    ),
)
SEPARABLE_BANDIT = Bound(
    "(K - 1) floor(4 (R / gamma)^2) if strongly separable with margin gamma",
    why_not="the bound is for strongly separable streams, by their margin: "
    "bounds.separable_bandit(K, R, margin), with bounds.strong_margin(U, X, y)",
)
KERNEL_SEPARABLE_BANDIT = Bound(
    "min(2^O~(K log^2(1 / gamma)), 2^O~(sqrt(1 / gamma) log K)) if separable by gamma",
    why_not="the theorem has unknown constants in its exponents; with the margin in the space of "
    "the kernel, bounds.separable_bandit holds",
)
