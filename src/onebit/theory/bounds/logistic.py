"""Online logistic regression. Derivations are in the learners' notes."""

from __future__ import annotations

import math
from typing import Any

from onebit.theory.bound import Bound, NotProvenError, Setting, check_length

_SMALLEST_BETA = 1e-50
"""A smaller beta never moves any weight, and its powers would underflow."""


def folklore(
    T: int,
    d: int,
    K: int,
    B: float = 1.0,
    R: float = 1.0,
    regularization: float | None = None,
    *,
    lookahead: bool = False,
) -> float:
    """Return a bound on the regret of `Folklore` in T rounds, in nats.

    It is lambda K B^2 + K d / (4c) ln(1 + 2c T R^2 / (lambda K d)), for lambda >= c R^2. With
    lambda = 2 R / B, 2c R^2 / lambda = c B R <= 1/2. With `lookahead` it is lambda K B^2 + K d /
    (4c) ln(1 + c T R^2 / (lambda K d)), for any lambda.

    Parameters
    ----------
    T : int
        Rounds.
    d, K : int
        Features and classes.
    B, R, regularization : float
        The learner's parameters.
    lookahead : bool
        One more.

    Returns
    -------
    float

    Examples
    --------
    >>> round(folklore(T=10_000, d=20, K=7, B=10.0), 1)
    3140.4
    >>> round(folklore(T=10_000, d=20, K=7, B=10.0, lookahead=True), 1)
    2449.3
    """
    c = 1.0 / (2.0 * B * R + math.log(K - 1) + 2.0)
    if lookahead:
        lambda_ = 2.0 * R / B if regularization is None else regularization
        growth = c * T * R**2 / (lambda_ * K * d)
        return lambda_ * K * B**2 + K * d / (4.0 * c) * math.log1p(growth)
    if regularization is None:
        return 2.0 * B * R * K + K * d / (4.0 * c) * math.log1p(T / (2.0 * K * d))
    if regularization < c * R**2:
        raise NotProvenError(
            f"the bound holds for a regularization of at least c R^2 = {c * R**2:.3g}; "
            f"got {regularization}"
        )
    growth = 2.0 * c * T * R**2 / (regularization * K * d)
    return regularization * K * B**2 + K * d / (4.0 * c) * math.log1p(growth)


def aioli(
    T: int, d: int, B: float = 1.0, R: float = 1.0, regularization: float | None = None
) -> float:
    """Return a bound on the regret of `Aioli` in T rounds, in nats.

    It is lambda B^2 + d (1 + B R) ln(1 + T R^2 / (8 lambda d (1 + B R))), as follows. With s the
    probability of the true label at theta_t, the regularisation by both labels has the derivative
    a = 2s - 1 and the loss -(1 - s), up to a common sign. So a round adds at most 1/4 x'A_t^{-1}x
    ((a + 1 - s)^2 - a^2) = 1/4 x'A_t^{-1}x (1 - s)(3s - 1), which is at most 1/2 s (1 - s)
    x'A_t^{-1}x. As A_t gains c s (1 - s) xx', these sum to at most 1 / (2c) ln det(A_T / lambda),
    with c = 1 / (2 (1 + B R)) and s (1 - s) <= 1/4.

    Parameters
    ----------
    T : int
        Rounds.
    d : int
        Features.
    B, R, regularization : float
        The learner's parameters.

    Returns
    -------
    float

    Examples
    --------
    >>> round(aioli(T=10_000, d=20, B=10.0), 1)
    1396.7
    """
    lambda_ = 1.0 / B**2 if regularization is None else regularization
    growth = T * R**2 / (8.0 * lambda_ * d * (1.0 + B * R))
    return lambda_ * B**2 + d * (1.0 + B * R) * math.log1p(growth)


def online_gradient(T: int, radius: float = 1.0, max_norm: float = 1.0) -> float:
    """Return a bound on the regret of `OnlineGradient` in T rounds, in nats.

    It is 3 G D sqrt(T), where G = sqrt(2) R is the largest norm of a gradient and eta_t = 2 D / (G
    sqrt(t)): a round adds at most (||W_t - U||^2 - ||W_{t+1} - U||^2) / (2 eta_t) + eta_t G^2 / 2.
    As no distance exceeds 2 D, the first part sums to at most 4 D^2 / (2 eta_T) = G D sqrt(T), the
    second to 2 G D sqrt(T).

    Parameters
    ----------
    T : int
        Rounds.
    radius, max_norm : float
        The learner's parameters, D and R.

    Returns
    -------
    float

    Examples
    --------
    >>> round(online_gradient(T=10_000, radius=10.0), 1)
    4242.6
    """
    return 3.0 * math.sqrt(2.0) * max_norm * radius * math.sqrt(T)


def log_loss_exp_concavity(n_classes: int, radius: float, max_norm: float) -> float:
    """Return an alpha > 0 for which exp(alpha ln sigma_y) is concave in W, sigma = softmax(Wx).

    This holds for ||W||_F <= radius and ||x|| <= max_norm. With S = diag(sigma) - sigma sigma' the
    gradient of -ln sigma_y is (sigma - e_y) (x) x and the Hessian S (x) xx', so that alpha has to
    satisfy alpha (sigma - e_y)(sigma - e_y)' <= S. As S e_y / sigma_y = e_y - sigma, that is alpha
    (1 / sigma_y - 1) <= 1; and 1 / sigma_y - 1, the sum of exp(s_k - s_y) over k != y, is at most
    (K - 1) exp(sqrt(2) radius max_norm), since ||s|| <= radius max_norm.
    """
    return math.exp(-math.sqrt(2.0) * radius * max_norm) / (n_classes - 1)


def theory_beta(radius: float, G: float, alpha: float) -> float:
    """Return 1/2 min{1 / (4 G diameter), alpha}, for alpha-exp-concave losses, or 1e-50 if larger.

    G is the largest norm of a gradient; see `onebit.numerics.newton`.
    """
    return max(0.5 * min(1.0 / (8.0 * G * radius), alpha), _SMALLEST_BETA)


def online_newton(
    T: int,
    d: int,
    K: int,
    radius: float = 1.0,
    max_norm: float = 1.0,
    beta: float | str = "theory",
    epsilon: float | str = "theory",
) -> float:
    """Return a bound on the regret of `OnlineNewton` in T rounds, in nats.

    It is beta epsilon D^2 / 2 + d (K - 1) / (2 beta) ln(1 + 2 R^2 T / (epsilon d (K - 1))), for
    both variants and every beta up to the theory's.

    Parameters
    ----------
    T : int
        Rounds.
    d, K : int
        Features and classes.
    radius, max_norm, beta, epsilon : float or "theory"
        The learner's parameters.

    Returns
    -------
    float

    Examples
    --------
    >>> round(online_newton(T=10_000, d=20, K=7), 1)
    722.5
    >>> round(online_newton(T=10_000, d=20, K=7, radius=10.0))
    2079423
    """
    alpha = log_loss_exp_concavity(K, radius, max_norm)
    largest = theory_beta(radius, math.sqrt(2.0) * max_norm, alpha)
    beta = largest if beta == "theory" else float(beta)
    if beta > largest:
        raise NotProvenError(f"the bound holds for a beta of at most {largest:.3g}; got {beta}")
    epsilon = 1.0 / (2.0 * radius * beta) ** 2 if epsilon == "theory" else float(epsilon)
    n = d * (K - 1)
    growth = 2.0 * max_norm**2 * T / (epsilon * n)
    return beta * epsilon * radius**2 / 2.0 + n / (2.0 * beta) * math.log1p(growth)


def aggregating(T: int, d: int, K: int, B: float = 1.0, R: float = 1.0, mu: float = 0.0) -> float:
    """Return a bound on the regret of `Aggregating` in T rounds, in nats.

    It is d K (1 + ln max{1, T (B R + ln K) / (d K)}) - T ln(1 - mu), for the exact mean, not a mean
    over samples.

    Parameters
    ----------
    T : int
        Rounds.
    d, K : int
        Features and classes.
    B, mu : float
        The learner's parameters.
    R : float
        Largest norm of an example.

    Returns
    -------
    float

    Examples
    --------
    >>> round(aggregating(T=10_000, d=20, K=7, B=10.0), 1)
    1084.9
    """
    growth = T * (B * R + math.log(K)) / (d * K)
    return d * K * (1.0 + math.log(max(1.0, growth))) - T * math.log1p(-mu)


def obama(T: int, d: int, K: int, mu: float, B: float = 1.0, R: float = 1.0) -> float:
    """Return a bound on the expected mistakes of `Obama` in T rounds, in excess of a logistic loss.

    It is d K^2 / mu (1 + ln max{1, mu T (B R + ln K) / (d K^2)}) - T ln(1 - mu), over the loss, in
    nats, of any weights with rows of norm at most B; for the exact mean, not a mean over samples,
    and eta = mu / K.

    Parameters
    ----------
    T : int
        Rounds.
    d, K : int
        Features and classes.
    mu, B, R : float
        The learner's parameters, mu < 1.

    Returns
    -------
    float

    Examples
    --------
    >>> round(obama(T=10_000, d=5, K=3, mu=0.1), 1)
    3232.7
    """
    size = d * K**2 / mu
    growth = T * (B * R + math.log(K)) / size
    return size * (1.0 + math.log(max(1.0, growth))) - T * math.log1p(-mu)


def obama_mu(T: int, d: int, K: int, B: float, R: float) -> float:
    """Return the smoothing that minimises `obama` for T rounds, up to constants."""
    size = d * K**2
    C = size * (1.0 + math.log(max(1.0, T * (B * R + math.log(K)) / size)))
    return min(0.5, math.sqrt(C / T))


def _folklore(s: Setting) -> float:
    me = s.learner
    check_length(s.X, me.R)
    if me.curvature != "safe":
        raise NotProvenError("with the curvature as printed, FOLKLORE's theorem is false")
    return s.L + folklore(s.T, s.d, s.K, me.B, me.R, me.regularization, lookahead=me.lookahead)


def _aioli(s: Setting) -> float:
    check_length(s.X, s.learner.R)
    return s.L + aioli(s.T, s.d, s.learner.B, s.learner.R, s.learner.regularization)


def _online_gradient(s: Setting) -> float:
    check_length(s.X, s.learner.max_norm)
    if s.learner.eta != "theory":
        raise NotProvenError(f"the bound is for eta='theory'; got {s.learner.eta}")
    return s.L + online_gradient(s.T, s.learner.radius, s.learner.max_norm)


def _online_newton(s: Setting) -> float:
    me = s.learner
    check_length(s.X, me.max_norm)
    return s.L + online_newton(s.T, s.d, s.K, me.radius, me.max_norm, me.beta, me.epsilon)


def _obama(s: Setting) -> float:
    me = s.learner
    check_length(s.X, me.R)
    mu = obama_mu(me.horizon, s.d, s.K, me.B, me.R) if me.mu == "theory" else float(me.mu)
    if me.eta != "theory" and me.eta != mu / s.K:
        raise NotProvenError(f"the bound is for eta = mu / K = {mu / s.K:.3g}; got {me.eta}")
    if mu >= 1.0:
        raise NotProvenError("with mu=1 all labels are guesses, and the bound is infinite")
    return s.L + obama(s.T, s.d, s.K, mu, me.B, me.R)


def _rows(learner: Any) -> tuple[str, float]:
    return "rows", float(learner.B)


def _ball(learner: Any) -> tuple[str, float]:
    return "frobenius", float(learner.radius)


FOLKLORE = Bound(
    "O((B R + ln K) d K ln T) over logistic loss",
    _folklore,
    loss="log_loss",
    ball=_rows,
    measure="log_loss",
)
AIOLI = Bound(
    "O(d B R ln T) over logistic loss",
    _aioli,
    loss="log_loss",
    # theta = w_1 - w_0, and the best two rows of norm B / 2 are opposite.
    ball=lambda learner: ("rows", learner.B / 2.0),
    measure="log_loss",
)
ONLINE_GRADIENT = Bound(
    "O(D R sqrt(T)) over logistic loss",
    _online_gradient,
    loss="log_loss",
    ball=_ball,
    measure="log_loss",
)
ONLINE_NEWTON = Bound(
    "O(e^(sqrt(2) D R) d K^2 ln T) over logistic loss",
    _online_newton,
    loss="log_loss",
    ball=_ball,
    measure="log_loss",
)
AGGREGATING = Bound(
    "O(d K ln(B R T)) over logistic loss",
    lambda s: s.L + aggregating(s.T, s.d, s.K, s.learner.B, s.X, s.learner.mu),
    loss="log_loss",
    ball=_rows,
    measure="log_loss",
)
OBAMA = Bound("O(K sqrt(d T ln(B R T))) over logistic loss", _obama, loss="log_loss", ball=_rows)
GAUSSIAN_AGGREGATING = Bound("none", why_not="nothing is proven of GaussianAggregating")
ONE_BIT_CLASSIFIER = Bound("none proven", why_not="nothing is proven of OneBitClassifier")
HOEFFDING_TREE = Bound("none", why_not="nothing is proven of HoeffdingTree")

SOFTMAX_THOMPSON = Bound("none proven", why_not="nothing is proven of SoftmaxThompson")
LOGISTIC_THOMPSON = Bound("none proven", why_not="nothing is proven of LogisticThompson")
MIXTURE = Bound("none proven", why_not="nothing is proven of the mistakes of Mixture")
