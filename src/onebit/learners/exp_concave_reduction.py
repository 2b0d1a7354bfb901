"""Classification with one bit, by reduction to online exp-concave optimisation."""

from __future__ import annotations

from numbers import Integral
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from onebit.core import Cost, Kernels, Learner, kernel
from onebit.core.ranges import PART, POSITIVE
from onebit.core.state import Generator, Share, Weights, Within
from onebit.numerics.argmax import argmax
from onebit.numerics.exploration import gamma_greedy
from onebit.numerics.linear import assign, linear_scores
from onebit.numerics.newton import StepParameters, check_ball, newton_step, step_parameters
from onebit.numerics.second_order import Inverse, difference, new_inverse
from onebit.theory import bounds
from onebit.theory.bounds.logistic import theory_beta
from onebit.theory.bounds.soba import exp_concave_curvature, exp_concave_gamma


class State(NamedTuple):
    """The state of the oracle, and the paper's gamma and eta.

    Attributes
    ----------
    W, W_free, A_inv, step
        As in `OnlineNewton`.
    gamma
        Share of the rounds that explore: an array, as `gamma_greedy` takes it, that never changes.
    eta
        Which of the losses between hinge and squared hinge is minimised.
    """

    W: Weights
    W_free: Weights
    A_inv: Annotated[Inverse, Within(n="weights")]
    step: StepParameters
    gamma: Share
    eta: float
    rng: Generator

    def check(self) -> None:
        """Check that W is in the ball."""
        check_ball(self.W, self.step.radius)


@kernel
def learn_ftal(state, x, scores, label, probability, offer, correct):
    """Algorithm 2, lines 8-12, with FTAL for the oracle."""
    y_hat = argmax(scores, offer)  # line 4
    if not correct or label == y_hat:
        return False  # the loss is zero, and so is its gradient
    scale, slope, radius = state.step
    # Line 9. The best label other than y is y_hat. The negative derivative of l_eta with respect to
    # the margin m is 2 (1 - eta m) / (2 - eta).
    y, eta = label, state.eta
    m = scores[y] - scores[y_hat]
    c = scale * 2.0 * (1.0 - eta * m) / ((2.0 - eta) * probability)
    z = difference(x, y_hat, y, c, scores.size)
    return newton_step(state, z, -c * m, slope, radius)


@kernel
def learn_ons(state, x, scores, label, probability, offer, correct):
    """Do the same with ONS for the oracle, which steps from the projected weights."""
    assign(state.W_free, state.W)
    return learn_ftal(state, x, scores, label, probability, offer, correct)


KERNELS = {
    "ons": Kernels("ons", linear_scores, gamma_greedy, learn_ons),
    "ftal": Kernels("ftal", linear_scores, gamma_greedy, learn_ftal),
}


class ExpConcaveReduction(Learner):
    """A simpler variant of SOBA: any exp-concave optimiser can learn to classify from one bit.

    It chooses the label with the highest score or, with probability `gamma`, a label uniformly at
    random. Where exploration finds that a label other than the greedy one is right, a quadratic
    loss, weighted by one over the label's probability, is passed to an oracle for online
    exp-concave optimisation; in all other rounds nothing is learned. The oracle is the Online
    Newton Step or Follow the Approximate Leader, as in `OnlineNewton`.

    Parameters
    ----------
    oracle : {"ons", "ftal"}, default="ons"
        Online Newton Step, or Follow the Approximate Leader.
    gamma : float in (0, 1] or "theory", default="theory"
        Share of the rounds that choose a random label. "theory" is the best value for `horizon`
        rounds, min{1, sqrt(K^2 d ln(T) / (eta T))}.
    eta : float in (0, 1] or "theory", default="theory"
        Which of the losses between the hinge (0) and the squared hinge (1) is minimised. "theory"
        is the largest value for which the theorem holds, 1 / max{2 X D, 1}.
    radius : float > 0, default=1
        D, the radius of the ball that the weights stay in. The comparator of the bound is the best
        in it.
    max_norm : float > 0, default=1
        X, the largest norm of an example. Longer ones are learned from, but void the bound.
    horizon : int >= 2, default=10_000
        T, the expected number of rounds, for gamma="theory".
    beta, epsilon : float > 0 or "theory", default="theory"
        The parameters of the oracle, see `OnlineNewton`.
    classes : array-like, optional
        The labels. Needed to `decide` before any `fit`.
    random_state : int, RandomState instance or None, default=None
        Seed of the exploration.

    Notes
    -----
    With the margin m = (Wx)_y - max over k != y of (Wx)_k, the loss is

        1[label = y] 1[y_hat != y] / p_y (1 - 2 m / (2 - eta) + eta m^2 / (2 - eta)),

    whose expectation is 1[y_hat != y] times the last factor, l_eta(W), which is at least one where
    y_hat != y.

    In Claim 1 of the paper, f'' is 2 eta / (2 - eta), twice what is printed, and the trivial case
    is y_hat = y. In the ball |m| is at most sqrt(2) X D, not 2 X D, and its gradient has norm
    sqrt(2) ||x||. So with F = 2 (1 + sqrt(2) eta X D) / (2 - eta), the largest derivative with
    respect to m, the losses are alpha-exp-concave with alpha = gamma / K f'' / F^2, which is at
    least gamma eta / (8 K), and their gradients have norm at most K / gamma sqrt(2) X F; the paper
    has gamma eta / (32 K) and 16 X K / gamma. The theory's beta is that of `OnlineNewton` with
    these.

    References
    ----------
    A. Beygelzimer, F. Orabona and C. Zhang. Efficient online bandit multiclass learning with
    O~(sqrt(T)) regret. ICML 2017; arXiv:1702.07958, Appendix E.

    Examples
    --------
    >>> from onebit import play, streams
    >>> from onebit.learners import ExpConcaveReduction
    >>> X, y = streams.strongly_separable(10_000, n_features=10, n_classes=4, seed=0)
    >>> play(ExpConcaveReduction(gamma=0.05, random_state=0), X, y).n_mistakes
    1778
    """

    reference = "Beygelzimer, Orabona, Zhang 2017"
    cost = Cost("(d K)^2, m (d K)^2 when projecting")
    bound = bounds.EXP_CONCAVE_REDUCTION
    forms: ClassVar[list[dict[str, Any]]] = [{}, {"oracle": "ftal", "gamma": 0.1}]

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "oracle": [StrOptions(set(KERNELS))],
        "gamma": [PART, StrOptions({"theory"})],
        "eta": [PART, StrOptions({"theory"})],
        "radius": [POSITIVE],
        "max_norm": [POSITIVE],
        "horizon": [Interval(Integral, 2, None, closed="left")],
        "beta": [POSITIVE, StrOptions({"theory"})],
        "epsilon": [POSITIVE, StrOptions({"theory"})],
    }

    def __init__(
        self,
        oracle: str = "ons",
        gamma: float | str = "theory",
        eta: float | str = "theory",
        radius: float = 1,
        max_norm: float = 1,
        horizon: int = 10_000,
        beta: float | str = "theory",
        epsilon: float | str = "theory",
        *,
        classes: Any = None,
        random_state: Any = None,
    ) -> None:
        self.oracle = oracle
        self.gamma = gamma
        self.eta = eta
        self.radius = radius
        self.max_norm = max_norm
        self.horizon = horizon
        self.beta = beta
        self.epsilon = epsilon
        self.classes = classes
        self.random_state = random_state

    def _begin(self, n_features: int, n_classes: int, rng: np.ndarray) -> tuple[Kernels, State]:
        d, K, T = n_features, n_classes, self.horizon
        X, D = float(self.max_norm), float(self.radius)
        eta = 1.0 / max(2.0 * X * D, 1.0) if self.eta == "theory" else float(self.eta)
        gamma = exp_concave_gamma(T, d, K, eta) if self.gamma == "theory" else float(self.gamma)
        G, alpha = exp_concave_curvature(K, gamma, eta, X, D)
        beta = theory_beta(D, G, alpha) if self.beta == "theory" else float(self.beta)
        step = step_parameters(beta, self.epsilon, D)
        W = np.zeros((d, K))
        A_inv = new_inverse(W.size, 1.0)
        state = State(W, np.zeros_like(W), A_inv, step, np.array(gamma), eta, rng)
        return KERNELS[self.oracle], state
