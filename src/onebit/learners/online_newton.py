"""Online Newton steps on the logistic loss: ONS and Follow the Approximate Leader."""

from __future__ import annotations

import math
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from sklearn.utils._param_validation import StrOptions

from onebit import losses
from onebit.core import Cost, Kernels, ProbabilityLearner, kernel
from onebit.core.ranges import POSITIVE
from onebit.core.state import Generator, Weights, Within
from onebit.numerics.exploration import greedy
from onebit.numerics.linear import assign, linear_scores
from onebit.numerics.newton import StepParameters, check_ball, newton_step, step_parameters
from onebit.numerics.second_order import Inverse, new_inverse, outer
from onebit.theory import bounds
from onebit.theory.bounds.logistic import log_loss_exp_concavity, theory_beta


class State(NamedTuple):
    """Weights, before and after the projection, and the matrix of the quadratic losses.

    Attributes
    ----------
    W
        Weights.
    W_free
        Weights before the projection.
    A_inv
        epsilon A^{-1}, of size d K.
    """

    W: Weights
    W_free: Weights
    A_inv: Annotated[Inverse, Within(n="weights")]
    step: StepParameters
    rng: Generator

    def check(self) -> None:
        """Check that W is in the ball."""
        check_ball(self.W, self.step.radius)


@kernel
def learn_ftal(state, x, scores, label, probability, offer, truth):
    """Do A += gg', b += gg'W - g / beta and W = Pi(A^{-1} b), where g = (sigma - e_y) (x) x."""
    scale, slope, radius = state.step
    c = np.empty(scores.size)
    if not losses.log_loss_gradient(scores, truth, c):
        return False
    for k in range(c.size):
        c[k] *= scale
    return newton_step(state, outer(c, x), np.dot(c, scores), slope, radius)


@kernel
def learn_ons(state, x, scores, label, probability, offer, truth):
    """Do A += gg' and W = Pi(W - A^{-1} g / beta): as FTAL, but from the projected weights."""
    assign(state.W_free, state.W)
    return learn_ftal(state, x, scores, label, probability, offer, truth)


KERNELS = {
    "ons": Kernels("ons", linear_scores, greedy, learn_ons),
    "ftal": Kernels("ftal", linear_scores, greedy, learn_ftal),
}


class OnlineNewton(ProbabilityLearner):
    """Online Newton Step: logistic regression with curvature estimated from gradients.

    Each round adds the square of its gradient g to a matrix A. The weights move by A^{-1} g / beta,
    and are projected onto the ball ||W||_F <= `radius` in the norm of A. Follow the Approximate
    Leader has the same A, and its weights always minimise the sum of quadratic bounds of the past
    losses over the ball. The regret of both grows with ln T, but also with exp(sqrt(2) radius),
    which `Folklore` avoids.

    Parameters
    ----------
    variant : {"ons", "ftal"}, default="ons"
        Online Newton Step, or Follow the Approximate Leader.
    radius : float > 0, default=1
        D, the radius of the ball: the comparators of the bound are the weights in it.
    max_norm : float > 0, default=1
        R, the largest norm of an example. Longer ones are learned from, but void the bound.
    beta : float > 0 or "theory", default="theory"
        Curvature of the quadratic bounds, see the notes. The theory's value is tiny for large
        balls; there a larger one does better on most streams.
    epsilon : float > 0 or "theory", default="theory"
        A starts as epsilon I. "theory" is 1 / (2 D beta)^2, for the `beta` in use.
    classes : array-like, optional
        The labels. Needed to `decide` before any `fit`.
    random_state : int, RandomState instance or None, default=None
        Not used: it does not explore.

    Notes
    -----
    With g_t the gradient of round t, at W_t, A_t = epsilon I + sum of g_s g_s' and Pi the
    projection in the norm of A_t,

        ONS:   W_{t+1} = Pi(W_t - A_t^{-1} g_t / beta),
        FTAL:  W_{t+1} = Pi(A_t^{-1} b_t),   b_t = sum of (<g_s, W_s> - 1 / beta) g_s.

    The authors' FTAL has epsilon = 0 and a pseudo-inverse. With epsilon > 0 it minimises the sum of
    the quadratic bounds and beta epsilon / 2 ||W||^2, and needs no pseudo-inverse.

    The theory's beta is 1/2 min{1 / (4 G 2D), alpha}, where G = sqrt(2) R bounds the gradients and
    the losses are alpha-exp-concave. In the ball alpha = exp(-sqrt(2) D R) / (K - 1), see
    `onebit.theory.bounds.logistic.log_loss_exp_concavity`. It is kept above 1e-50, so that it does
    not underflow; long before that, the weights no longer move.

    With such a beta the regret of both over the best weights in the ball is at most

        beta epsilon D^2 / 2 + d (K - 1) / (2 beta) ln(1 + 2 R^2 T / (epsilon d (K - 1))),

    `onebit.theory.bounds.online_newton`. For ONS, <g_t, W_t - U> is at most 1 / (2 beta) g_t'
    A_t^{-1} g_t + beta / 2 (||W_t - U||^2 - ||W_{t+1} - U||^2), in the norm of A_t; summed over t,
    this leaves beta / 2 <g_t, W_t - U>^2, which cancels against the quadratic bounds, and beta
    epsilon / 2 ||U||^2, as W_1 = 0. For FTAL, with F_t the sum it minimises, F_t(W_t) -
    F_t(W_{t+1}) is at most 1 / (2 beta) g_t' A_t^{-1} g_t. The sum of g_t' A_t^{-1} g_t is at most
    ln det(A_T / epsilon), and as the rows of a gradient sum to zero, at most d (K - 1) eigenvalues
    of A_T differ from epsilon.

    A round takes O((d K)^2). If a step leaves the ball, the projection takes m products with a
    matrix of (d K)^2 numbers, with m at most d K.

    References
    ----------
    E. Hazan, A. Agarwal and S. Kale. Logarithmic regret algorithms for online convex optimization.
    Machine Learning 69, 2007.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.preprocessing import normalize
    >>> from onebit import play
    >>> from onebit.learners import OnlineNewton
    >>> X, y = load_digits(return_X_y=True)
    >>> play(OnlineNewton(radius=30, beta=0.3, epsilon=1), normalize(X), y).n_mistakes
    126
    """

    reference = "Hazan, Agarwal, Kale 2007"
    cost = Cost("(d K)^2, m (d K)^2 when projecting")
    bound = bounds.ONLINE_NEWTON
    feedback = "full"
    forms: ClassVar[list[dict[str, Any]]] = [{}, {"variant": "ftal"}]

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "variant": [StrOptions(set(KERNELS))],
        "radius": [POSITIVE],
        "max_norm": [POSITIVE],
        "beta": [POSITIVE, StrOptions({"theory"})],
        "epsilon": [POSITIVE, StrOptions({"theory"})],
    }

    def __init__(
        self,
        variant: str = "ons",
        radius: float = 1,
        max_norm: float = 1,
        beta: float | str = "theory",
        epsilon: float | str = "theory",
        *,
        classes: Any = None,
        random_state: Any = None,
    ) -> None:
        self.variant = variant
        self.radius = radius
        self.max_norm = max_norm
        self.beta = beta
        self.epsilon = epsilon
        self.classes = classes
        self.random_state = random_state

    def _begin(self, n_features: int, n_classes: int, rng: np.ndarray) -> tuple[Kernels, State]:
        D, R = float(self.radius), float(self.max_norm)
        alpha = log_loss_exp_concavity(n_classes, D, R)
        largest = theory_beta(D, math.sqrt(2.0) * R, alpha)
        beta = largest if self.beta == "theory" else float(self.beta)
        step = step_parameters(beta, self.epsilon, D)
        W = np.zeros((n_features, n_classes))
        A_inv = new_inverse(W.size, 1.0)
        return KERNELS[self.variant], State(W, np.zeros_like(W), A_inv, step, rng)
