"""Online gradient descent on the logistic loss."""

from __future__ import annotations

import math
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.utils._param_validation import StrOptions

from onebit import losses
from onebit.core import LINEAR, Cost, Kernels, ProbabilityLearner, kernel
from onebit.core.ranges import POSITIVE
from onebit.core.state import Count, Generator
from onebit.numerics.exploration import greedy
from onebit.numerics.linear import Scaled, add_outer, new_scaled, project, scaled_scores
from onebit.theory import bounds


class State(NamedTuple):
    """Weights, and the numbers of the gradient descent.

    Attributes
    ----------
    W
        Weights.
    t
        Rounds.
    eta
        Step size, or eta_1 if it `shrinks`.
    D
        Radius of the ball.
    """

    W: Scaled
    t: Count
    eta: float
    shrinks: bool
    D: float
    rng: Generator


@kernel
def learn(state, x, scores, label, probability, offer, truth):
    """W = Pi(W - eta_t g), where g = (sigma - e_y) (x) x and Pi projects onto the ball."""
    state.t[()] += 1
    g = np.empty(scores.size)
    if not losses.log_loss_gradient(scores, truth, g):
        return False
    eta = state.eta / math.sqrt(state.t[()]) if state.shrinks else state.eta
    for k in range(g.size):
        g[k] *= -eta
    add_outer(state.W, g, x, scores)
    project(state.W, state.D)
    return True


KERNELS = Kernels("online_gradient", scaled_scores, greedy, learn)


class OnlineGradient(ProbabilityLearner):
    """Online gradient descent: logistic regression with one gradient step per round.

    After each round the weights move against the gradient of the logarithmic loss of that round,
    by a step that shrinks as 1 / sqrt(t), and are projected onto the ball ||W||_F <= `radius`.

    Parameters
    ----------
    radius : float > 0, default=1
        D, the radius of the ball: the comparators of the bound are the weights in it.
    max_norm : float > 0, default=1
        R, the largest norm of an example. Longer ones are learned from, but void the bound.
    eta : float > 0 or "theory", default="theory"
        "theory" is eta_t = sqrt(2) D / (R sqrt(t)). A number is the step size of every round.
    classes : array-like, optional
        The labels. Needed to `decide` before any `fit`.
    random_state : int, RandomState instance or None, default=None
        Not used: it does not explore.

    Notes
    -----
    The loss is -ln sigma_y, with sigma the softmax of Wx. Its gradient g = (sigma - e_y) (x) x has
    norm at most G = sqrt(2) R. As the ball has diameter 2 D, the theory's step size is 2 D / (G
    sqrt(t)), and the regret over the best weights in the ball is at most 3 G D sqrt(T),
    `onebit.theory.bounds.online_gradient`.

    References
    ----------
    M. Zinkevich. Online convex programming and generalized infinitesimal gradient ascent. ICML
    2003.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.preprocessing import normalize
    >>> from onebit import play
    >>> from onebit.learners import OnlineGradient
    >>> X, y = load_digits(return_X_y=True)
    >>> play(OnlineGradient(radius=30), normalize(X), y).n_mistakes
    196
    """

    reference = "Zinkevich 2003"
    cost = Cost(LINEAR)
    bound = bounds.ONLINE_GRADIENT
    feedback = "full"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "radius": [POSITIVE],
        "max_norm": [POSITIVE],
        "eta": [POSITIVE, StrOptions({"theory"})],
    }

    def __init__(
        self,
        radius: float = 1,
        max_norm: float = 1,
        eta: float | str = "theory",
        *,
        classes: Any = None,
        random_state: Any = None,
    ) -> None:
        self.radius = radius
        self.max_norm = max_norm
        self.eta = eta
        self.classes = classes
        self.random_state = random_state

    def _begin(self, n_features: int, n_classes: int, rng: np.ndarray) -> tuple[Kernels, State]:
        D, R, shrinks = float(self.radius), float(self.max_norm), self.eta == "theory"
        eta = math.sqrt(2.0) * D / R if shrinks else float(self.eta)
        t = np.zeros((), dtype=np.int64)
        return KERNELS, State(new_scaled(n_features, n_classes), t, eta, shrinks, D, rng)
