"""Gaptron, with one bit and with full information, for three surrogate losses."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from onebit import losses
from onebit.core import LINEAR, Cost, Kernels, Learner, kernel
from onebit.core.offer import n_on_offer, on_offer
from onebit.core.ranges import POSITIVE
from onebit.core.state import Generator
from onebit.numerics.argmax import argmax
from onebit.numerics.linear import (
    Scaled,
    add_outer,
    new_scaled,
    project,
    scaled_scores,
    squared_norm,
)
from onebit.theory import bounds
from onebit.theory.bounds.gaptron import theory_eta, theory_gamma

SMALLEST_NORM = 1e-6
"""Shorter examples are treated as having this norm: in the ball their scores are negligible."""


class State(NamedTuple):
    """Weights, and the numbers of the gradient descent.

    Attributes
    ----------
    W
        Weights.
    eta
        Step size.
    by_length
        Whether eta is the step size for examples of unit length, to be divided by ||x||^2.
    gamma
        Minimal exploration.
    D
        Radius of the ball.
    """

    W: Scaled
    eta: float
    by_length: bool
    gamma: float
    D: float
    rng: Generator


def _kernels(loss: str, gap: Any, gradient: Any) -> dict[str, Kernels]:
    """Return the kernels of Algorithm 1 for one surrogate loss, by kind of feedback."""

    @kernel
    def policy(state, x, scores, offer, p):
        """Lines 4-5: p' = (1 - M) e_y* + M / K with M = max{a, gamma}."""
        y_star = argmax(scores, offer)
        M = max(gap(scores, offer), state.gamma)
        if offer is not None:
            p[:] = 0.0
        for k in on_offer(offer, p.size):
            p[k] = M / n_on_offer(offer, p.size)
        p[y_star] += 1.0 - M
        return y_star

    @kernel
    def gradient_step(state, x, scores, y, weight, offer):
        """Lines 7-8: descend by `weight` times the gradient of the loss, and project."""
        g = np.empty(scores.size)
        if not gradient(scores, y, g, offer):
            return False
        eta = state.eta
        if state.by_length:
            eta /= max(squared_norm(x), SMALLEST_NORM * SMALLEST_NORM)
        for k in range(g.size):
            g[k] *= -eta * weight
        add_outer(state.W, g, x, scores)
        project(state.W, state.D)
        return True

    @kernel
    def learn_full(state, x, scores, label, probability, offer, truth):
        """Use the losses (1) to (3) as they are."""
        return gradient_step(state, x, scores, truth, 1.0, None)

    @kernel
    def learn_bandit(state, x, scores, label, probability, offer, correct):
        """Weigh the loss of the round by 1[y' = y] / p'(y'), as in (4) to (6)."""
        return correct == 1 and gradient_step(state, x, scores, label, 1.0 / probability, offer)

    return {
        "full": Kernels(f"{loss}_full", scaled_scores, policy, learn_full),
        "bandit": Kernels(f"{loss}_bandit", scaled_scores, policy, learn_bandit),
    }


KERNELS = {
    "logistic": _kernels("logistic", losses.logistic_gap, losses.logistic_gradient),
    "hinge": _kernels("hinge", losses.hinge_gap, losses.hinge_gradient),
    "smooth_hinge": _kernels("smooth_hinge", losses.smooth_hinge_gap, losses.smooth_hinge_gradient),
}


class Gaptron(Learner):
    """Gaptron: the first one-bit learner with time linear in K d and regret of order K sqrt(T).

    It chooses the label with the highest score or, with a probability that grows as its margin
    shrinks, a random one: where the margin is small, the surrogate loss exceeds the probability of
    a mistake by enough that a guess costs nothing. The weights follow the gradient of the
    surrogate loss, and stay in a ball. With one bit, the loss counts only where the label was
    right, divided by its probability.

    Parameters
    ----------
    loss : {"hinge", "smooth_hinge", "logistic"}, default="hinge"
        The surrogate loss; see `onebit.losses`.
    feedback : {"bandit", "full"}, default="bandit"
        What the learner is told: right or wrong, or the label itself.
    eta : float > 0, "practical" or "theory", default="practical"
        Step size of the gradient descent. "theory" is that of the theorems, for the `gamma` in use.
        "practical" is the same with full information; with one bit it is the step size of the
        theorems for gamma = 1 and examples of the norm of x, for which nothing is proven.
    gamma : float in [0, 1] or "theory", default=0
        Each decision is uniformly random with at least this probability. With 0, only the gap map
        explores. "theory" is that of the theorems: 0 with full information, and otherwise the best
        value for `horizon` rounds.
    radius : float > 0 or None, default=10
        D, the radius of the ball that the weights stay in. The bound with one bit compares with the
        best weights in it. Examples of norm far below one need a larger ball. None, with full
        information only, means no ball.
    max_norm : float > 0, default=1
        X, the largest norm of an example, for "theory". Longer ones are learned from like any
        other, but void the bounds: scale the examples, or give their norm here.
    horizon : int >= 1, default=10_000
        T, the expected number of rounds, for "theory" with one bit.
    classes : array-like, optional
        The labels. Needed to `decide` before any `fit`.
    random_state : int, RandomState instance or None, default=None
        Seed of the exploration.

    Notes
    -----
    Changes to the paper, where its formulas do not match what its proofs need:

    - The smooth hinge is (max{1 - m, 0})^2 for margins m > 0; the printed max{(1 - m)^2, 0} grows
      beyond m = 1.
    - The gap map of the hinge is 0 for m* > beta; the printed 1 - max{1[m* > beta], m*} is negative
      for m* > 1.
    - Theorem 4 leaves gamma open. The bound is ||U||^2 / (2 eta) + gamma T (K - 1) / K. Here gamma
      is min{1, K X D / sqrt(T ln 2)} or 0, whichever has the smaller bound, and eta = ln 2
      max{exp(-2 D X), gamma} / (2 K^2 X^2). This gives the stated bound; with the printed eta,
      gamma = 0 costs a factor K more.
    - In Theorem 6 gamma is min{1, K X D sqrt(2 / T)}, which gives the stated bound; the printed
      one, sqrt(2) times as large, does not for K >= 12.

    The paper's constants, ``Gaptron("logistic", eta="theory", gamma="theory", radius=1)``, guard
    against the worst stream, and learn little from a benign one. With one bit, the step size is
    gamma / K times that of full information, as a label may have a probability of only gamma / K.
    The gamma for the logistic loss is 0 where `radius` is small, as the gap map explores enough;
    and in a ball with D X sqrt(K / (K - 1)) < ln(K - 1) no label reaches p* = 1/2, so every
    decision is a guess, however good the greedy label is.

    With the defaults only the gap map explores, as long as the margin is at most 1 / K. Labels then
    have a probability of at least (1 - 1 / K) / K, so the step size of gamma = 1 moves the margin
    by about 1 / K: one lucky guess does not end the exploration. But there is no guarantee: an
    example that is wrong with a larger margin is not explored, and is corrected only through other
    examples. With gamma > 0, the weight of a label may reach K / gamma, which needs a smaller step
    size.

    References
    ----------
    D. van der Hoeven. Exploiting the surrogate gap in online multiclass classification. NeurIPS
    2020.

    Examples
    --------
    >>> from sklearn.preprocessing import normalize
    >>> from onebit import Gaptron, play, streams
    >>> X, y = streams.synsep(100_000, seed=0)
    >>> X = normalize(X)
    >>> play(Gaptron(random_state=0), X, y).n_mistakes
    436
    >>> theory = {"eta": "theory", "gamma": "theory", "horizon": 100_000, "random_state": 0}
    >>> play(Gaptron("hinge", radius=3, **theory), X, y).n_mistakes
    10298
    >>> play(Gaptron("logistic", radius=1, **theory), X, y).n_mistakes
    88706
    """

    reference = "van der Hoeven 2020"
    cost = Cost(LINEAR)
    bound = bounds.GAPTRON
    forms: ClassVar[list[dict[str, Any]]] = [
        {},
        {"loss": "logistic", "eta": "theory", "gamma": "theory"},
        {"loss": "smooth_hinge"},
        {"loss": "logistic", "feedback": "full"},
        {"feedback": "full", "radius": None},
        {"loss": "smooth_hinge", "feedback": "full"},
    ]

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "loss": [StrOptions(set(KERNELS))],
        "feedback": [StrOptions({"bandit", "full"})],
        "eta": [POSITIVE, StrOptions({"practical", "theory"})],
        "gamma": [Interval(Real, 0, 1, closed="both"), StrOptions({"theory"})],
        "radius": [POSITIVE, None],
        "max_norm": [POSITIVE],
        "horizon": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        loss: str = "hinge",
        feedback: str = "bandit",
        eta: float | str = "practical",
        gamma: float | str = 0,
        radius: float | None = 10,
        max_norm: float = 1,
        horizon: int = 10_000,
        *,
        classes: Any = None,
        random_state: Any = None,
    ) -> None:
        self.loss = loss
        self.feedback = feedback
        self.eta = eta
        self.gamma = gamma
        self.radius = radius
        self.max_norm = max_norm
        self.horizon = horizon
        self.classes = classes
        self.random_state = random_state

    def _begin(self, n_features: int, n_classes: int, rng: np.ndarray) -> tuple[Kernels, State]:
        if self.radius is None and self.feedback == "bandit":
            raise ValueError("radius=None goes with feedback='full' only; give a radius > 0")
        X, D = float(self.max_norm), math.inf if self.radius is None else float(self.radius)
        if self.gamma != "theory":
            gamma = float(self.gamma)
        elif self.feedback == "full":
            gamma = 0.0
        else:
            gamma = theory_gamma(self.loss, n_classes, X, D, self.horizon)
        by_length = self.eta == "practical" and self.feedback == "bandit"
        if by_length:
            eta = theory_eta(self.loss, "bandit", 1.0, n_classes, 1.0, D)
        elif isinstance(self.eta, str):
            eta = theory_eta(self.loss, self.feedback, gamma, n_classes, X, D)
        else:
            eta = float(self.eta)
        if eta == 0.0:
            raise ValueError(
                f"eta='theory' is 0 for loss={self.loss!r}, feedback='bandit', gamma={gamma} and "
                f"radius={self.radius}: it would never learn; give a gamma > 0 or an eta > 0"
            )
        W = new_scaled(n_features, n_classes)
        return KERNELS[self.loss][self.feedback], State(W, eta, by_length, gamma, D, rng)
