"""Newtron."""

from __future__ import annotations

import math

from onebit.theory.bound import Bound, NotProvenError, Setting


def newtron_beta(K: int, alpha: float, D: float, X: float, gamma: float) -> float:
    """Return the largest beta for which Newtron's quadratics bound its loss from below on average.

    Let l(W) = -ln(p_y) / alpha, p = softmax(alpha W x), v = U - W and s = v x. Where both are in
    the ball, no two scores differ by more than sqrt(2) X D, so that with D' = sqrt(2) alpha X D

        l(U) >= l(W) + <grad l(W), v> + c alpha Var_p(s),   c = 1 / (2 + D' + ln(K - 1)),

    the corrected Lemma 1 of FOLKLORE. Also p_k >= delta = 1 / (1 + (K - 1) e^D'), so
    Var_p(s) >= delta sum of (s_k - mean)^2. The estimate g of the gradient has
    E kappa <g, v>^2 = (1 - p_y)^2 (s_y - mean)^2 + sum over k != y of p_k^2 / p'_k (s_k - mean)^2,
    which is at most 1 / (1 - gamma) sum of (s_k - mean)^2. So beta / 2 <= c alpha delta (1 - gamma)
    is enough.
    """
    spread = math.sqrt(2.0) * alpha * X * D
    c = 1.0 / (2.0 + spread + math.log(K - 1))
    delta = 1.0 / (1.0 + (K - 1) * math.exp(spread))
    return 2.0 * c * alpha * delta * (1.0 - gamma)


def newtron(
    T: int,
    d: int,
    K: int,
    L: float,
    alpha: float,
    beta: float,
    gamma: float,
    D: float = 1.0,
    X: float = 1.0,
) -> float:
    """Return a bound on the expected mistakes of `Newtron` in full form.

    The paper's own constants are unknown to us (SOBA's Theorem 6 quotes c = O(K^3 d)); these follow
    from the algorithm. For beta <= `newtron_beta` the expected regret in l is at most that of
    follow-the-leader on the quadratics f_t in the ball,

        D / 2 + 1/2 sum of g' A_t^{-1} g,   A_t = I / D + beta sum of kappa g g',

    and as kappa >= gamma / K the sum is at most K / (gamma beta) ln det(D A_T), with n = d (K - 1)
    directions and an expected trace of beta kappa ||g||^2 of at most 2 X^2 / (1 - gamma) per round:

        reg = D / 2 + K n / (2 gamma beta) ln(1 + 2 D beta X^2 T / ((1 - gamma) n)).

    A label drawn from p is wrong with probability 1 - p_y <= -ln p_y = alpha l, so that the
    expected mistakes are at most (1 - gamma) (L + alpha reg) + gamma T (K - 1) / K.

    Parameters
    ----------
    T, d, K : int
    L : float
        Sum of -ln of the probability of the true label under softmax(alpha U x), in nats.
    alpha, beta, gamma, D : float
        The learner's parameters.
    X : float
        Length of the longest example.

    Returns
    -------
    float

    Examples
    --------
    >>> beta = newtron_beta(K=2, alpha=1.0, D=1.0, X=1.0, gamma=0.2)
    >>> round(newtron(T=100_000, d=2, K=2, L=60_000.0, alpha=1.0, beta=beta, gamma=0.2))
    58816
    """
    largest = newtron_beta(K, alpha, D, X, gamma)
    if not 0.0 < gamma < 1.0 or beta > largest * (1 + 1e-9):
        raise NotProvenError(
            f"the bound holds for gamma in (0, 1) and a beta of at most {largest:.3g}; "
            f"got {gamma:g} and {beta:g}"
        )
    n = d * (K - 1)
    growth = 2.0 * D * beta * X**2 * T / ((1.0 - gamma) * n)
    regret = D / 2.0 + K * n / (2.0 * gamma * beta) * math.log1p(growth)
    return (1.0 - gamma) * (L + alpha * regret) + gamma * T * (K - 1) / K


def _newtron(s: Setting) -> float:
    me = s.learner
    if me.covariance != "full":
        raise NotProvenError("of PNewtron, the diagonal form, nothing is proven")
    # The comparator is alpha U, in the ball of radius alpha D: its loss is in nats.
    return newtron(s.T, s.d, s.K, s.L, me.alpha, me.beta, me.gamma, me.D, s.X)


NEWTRON = Bound(
    "O(sqrt(T log T)) over alpha-logistic loss, for a small beta (full)",
    _newtron,
    loss="log_loss",
    ball=lambda learner: ("frobenius", float(learner.alpha * learner.D)),
)
