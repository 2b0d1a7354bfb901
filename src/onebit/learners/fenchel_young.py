"""Gradient descent on the logistic loss with randomized decoding, one bit or full information."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from onebit import losses
from onebit.core import LINEAR, Cost, Kernels, Learner, kernel
from onebit.core.offer import n_on_offer, on_offer
from onebit.core.ranges import POSITIVE
from onebit.core.state import Generator, Weights
from onebit.numerics.argmax import argmax
from onebit.numerics.linear import linear_scores
from onebit.numerics.softmax import softmax
from onebit.theory import bounds
from onebit.theory.bounds.fenchel_young import theory_eta, theory_gamma


class State(NamedTuple):
    """Weights, and the numbers of the gradient descent.

    Attributes
    ----------
    W
        Weights.
    eta
        Step size.
    gamma
        Share of the rounds that choose a random label.
    """

    W: Weights
    eta: float
    gamma: float
    rng: Generator


@kernel
def policy(state, x, scores, offer, p):
    """Fill (1 - gamma) ((1 - M) e_y* + M sigma) + gamma / K, with M = min{1, 2 (1 - sigma_y*)}."""
    y_star, K = argmax(scores, offer), n_on_offer(offer, p.size)
    softmax(scores, 1.0, p, offer)
    others = 0.0  # 1 - sigma_y* would cancel
    for k in on_offer(offer, p.size):
        if k != y_star:
            others += p[k]
    M = min(1.0, 2.0 * others)
    for k in on_offer(offer, p.size):
        p[k] = (1.0 - state.gamma) * M * p[k] + state.gamma / K
    p[y_star] += (1.0 - state.gamma) * (1.0 - M)
    return y_star


@kernel
def gradient_step(state, x, scores, y, weight, offer):
    """Descend by `weight` times the gradient of the logistic loss, in bits."""
    g = np.empty(scores.size)
    if not losses.logistic_gradient(scores, y, g, offer):
        return False
    for i in range(x.indices.size):
        for k in range(g.size):
            state.W[x.indices[i], k] -= state.eta * weight * x.values[i] * g[k]
    return x.indices.size > 0


@kernel
def learn_full(state, x, scores, label, probability, offer, truth):
    """Descend along the gradient itself."""
    return gradient_step(state, x, scores, truth, 1.0, None)


@kernel
def learn_bandit(state, x, scores, label, probability, offer, correct):
    """Descend along its estimate, 1[label is right] / probability times the gradient."""
    return correct == 1 and gradient_step(state, x, scores, label, 1.0 / probability, offer)


FULL = Kernels("full", linear_scores, policy, learn_full)
BANDIT = Kernels("bandit", linear_scores, policy, learn_bandit)


class FenchelYoung(Learner):
    """Randomized decoding of a Fenchel-Young loss, the logistic: regret of order sqrt(K T).

    Its weights follow the gradient of the logistic loss, as those of `Gaptron`. Where the most
    probable label has less than probability one, it is chosen less often, and the rest of the
    decisions is drawn from the softmax of the scores, not uniformly: the mistakes of that draw are
    below the surrogate loss whatever the number of labels. That saves a factor sqrt(K) in the
    regret with one bit, K with full information.

    Parameters
    ----------
    feedback : {"bandit", "full"}, default="bandit"
        What the learner is told: right or wrong, or the label itself.
    eta : float > 0 or "theory", default="theory"
        Step size of the gradient descent. "theory" is the largest for which the bound holds, for
        the `gamma` in use.
    gamma : float in [0, 1] or "theory", default="theory"
        Share of the rounds that choose a label uniformly at random. "theory" is the best value for
        `horizon` rounds and comparators of norm `radius` with one bit, and 0 with full information.
    radius : float > 0, default=10
        D, the norm ||U|| of the weights to compete with, for gamma="theory". The bound holds for
        any U, and the learner's own weights are not projected onto a ball.
    max_norm : float > 0, default=1
        X, the largest norm of an example, for "theory". Longer ones void the bound.
    horizon : int >= 1, default=10_000
        T, the expected number of rounds, for gamma="theory".
    classes : array-like, optional
        The labels. Needed to `decide` before any `fit`.
    random_state : int, RandomState instance or None, default=None
        Seed of the exploration.

    Notes
    -----
    Written from what the papers' abstracts say, and derived anew: with sigma the softmax of the
    scores, y* the greedy label and M = min{1, 2 (1 - sigma_y*)}, the label is y* with probability
    1 - M and otherwise drawn from sigma. With p = sigma_y, the chance of a mistake is at most

    - 2 (1 - p)^2 if y = y* and p >= 1/2,
    - 1 - 2 p^2 if y != y* and sigma_y* >= 1/2, as p <= 1 - sigma_y*,
    - 1 - p if no label has probability 1/2,

    and the loss -log2 p exceeds that by at least eta_0 / 2 times 2 (1 - p)^2 / (ln 2)^2 with eta_0
    = 0.8555: the least ratio is that of the second case at p = 0.387. That is at least eta_0 / 2
    times the squared norm of the gradient, (sigma - e_y) / ln 2. So a step of eta_0 / X^2 has
    regret ||U||^2 X^2 / (2 eta_0) over the loss of any U, in mistakes, without any K. With one bit,
    the estimate of the gradient has up to K / gamma times its squared norm, eta is eta_0 gamma /
    (K X^2), and

        K X^2 ||U||^2 / (2 eta_0 gamma) + gamma T (K - 1) / K

    is least at about 1.53 X D sqrt((K - 1) T): `onebit.theory.bounds.fenchel_young`. Gaptron has
    K X D sqrt(2 T).

    References
    ----------
    S. Sakaue, H. Bao, T. Tsuchiya and T. Oki. Online structured prediction with Fenchel-Young
    losses and improved surrogate regret for online multiclass classification with logistic loss.
    COLT 2024; arXiv:2402.08180. With one bit: Y. Shibukawa, T. Tsuchiya, S. Sakaue and K.
    Yamanishi. Bandit and delayed feedback in online structured prediction. NeurIPS 2025;
    arXiv:2502.18709.

    Examples
    --------
    >>> from sklearn.preprocessing import normalize
    >>> from onebit import FenchelYoung, play, streams
    >>> X, y = streams.synsep(100_000, seed=0)
    >>> play(FenchelYoung(horizon=100_000, random_state=0), normalize(X), y).n_mistakes
    14863
    >>> play(FenchelYoung(feedback="full", random_state=0), normalize(X), y).n_mistakes
    79
    """

    reference = "Sakaue et al. 2024, Shibukawa et al. 2025"
    cost = Cost(LINEAR)
    bound = bounds.FENCHEL_YOUNG
    forms: ClassVar[list[dict[str, Any]]] = [{}, {"feedback": "full"}]

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "feedback": [StrOptions({"bandit", "full"})],
        "eta": [POSITIVE, StrOptions({"theory"})],
        "gamma": [Interval(Real, 0, 1, closed="both"), StrOptions({"theory"})],
        "radius": [POSITIVE],
        "max_norm": [POSITIVE],
        "horizon": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        feedback: str = "bandit",
        eta: float | str = "theory",
        gamma: float | str = "theory",
        radius: float = 10,
        max_norm: float = 1,
        horizon: int = 10_000,
        *,
        classes: Any = None,
        random_state: Any = None,
    ) -> None:
        self.feedback = feedback
        self.eta = eta
        self.gamma = gamma
        self.radius = radius
        self.max_norm = max_norm
        self.horizon = horizon
        self.classes = classes
        self.random_state = random_state

    def _begin(self, n_features: int, n_classes: int, rng: np.ndarray) -> tuple[Kernels, State]:
        X, bandit = float(self.max_norm), self.feedback == "bandit"
        if self.gamma != "theory":
            gamma = float(self.gamma)
        else:
            D, T = float(self.radius), int(self.horizon)
            gamma = theory_gamma(n_classes, X, D, T) if bandit else 0.0
        if self.eta != "theory":
            eta = float(self.eta)
        else:
            eta = theory_eta(self.feedback, gamma, n_classes, X)
        if eta == 0.0:
            raise ValueError(
                "eta='theory' is 0 for feedback='bandit' and gamma=0: it would never learn; give a "
                "gamma > 0 or an eta > 0"
            )
        W = np.zeros((n_features, n_classes))
        return BANDIT if bandit else FULL, State(W, eta, gamma, rng)
