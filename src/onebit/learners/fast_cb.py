"""FastCB: a logistic regression for each label, and reweighted inverse gap weighting."""

from __future__ import annotations

import math
from numbers import Integral
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from onebit.core import Cost, Kernels, Learner, kernel, lean_kernel
from onebit.core.offer import n_on_offer, on_offer
from onebit.core.ranges import NOT_NEGATIVE, POSITIVE
from onebit.core.state import Field, Generator, Within
from onebit.numerics.argmax import argmax
from onebit.numerics.fixed_point import binary_fixed_point
from onebit.numerics.logistic_surrogate import binary_surrogate
from onebit.numerics.ridge import ridge_scores
from onebit.numerics.second_order import (
    Inverse,
    class_inverse,
    is_settled,
    new_inverses,
    subtract,
)
from onebit.theory import bounds

_LARGEST_EXPONENT = 700.0
"""e^700 is finite; a label with a larger ratio of errors is never chosen."""


class Scratch(NamedTuple):
    """What `score` computes of x, for each label.

    Attributes
    ----------
    m
        h_k . x.
    v
        A_k^{-1} x.
    q
        x' A_k^{-1} x.
    """

    m: np.ndarray
    v: np.ndarray
    q: np.ndarray


class State(NamedTuple):
    """An `onebit.Aioli` for each label, which predicts whether that label is right.

    Attributes
    ----------
    h
        -A_k^{-1} b_k / 2 of each label.
    A_inv
        A_k^{-1}.
    c
        Curvature of the surrogate losses.
    gamma
        The larger it is, the less is explored.
    """

    h: Annotated[np.ndarray, Field("features", "classes")]
    A_inv: Annotated[Inverse, Within(n="features", each="classes")]
    c: float
    gamma: float
    rng: Generator
    scratch: Scratch


@kernel
def score(state, x, scores):
    """Fill the log odds u_k that label k is right, as `onebit.Aioli` predicts them."""
    scratch = state.scratch
    ridge_scores(state.h, state.A_inv, x, scratch.m, scratch.v, scratch.q)
    for k in range(scores.size):
        scores[k] = binary_fixed_point(scratch.m[k], 0.5 * scratch.q[k])


@lean_kernel
def softplus(u):
    """Return ln(1 + e^u)."""
    return max(u, 0.0) + math.log1p(math.exp(-abs(u)))


@kernel
def policy(state, x, scores, offer, p):
    """Fill p_k = f_b / (K f_b + gamma (f_k - f_b)) for k other than b, the label of least f.

    f_k = 1 / (1 + e^{u_k}) is the predicted chance of a mistake.
    """
    b, K = argmax(scores, offer), n_on_offer(offer, p.size)
    if offer is not None:
        p[:] = 0.0
    rest = 1.0
    for k in on_offer(offer, p.size):
        if k != b:
            # f_k / f_b - 1 without cancellation
            excess = math.expm1(min(softplus(scores[b]) - softplus(scores[k]), _LARGEST_EXPONENT))
            p[k] = 1.0 / (K + state.gamma * excess)
            rest -= p[k]
    p[b] = rest
    return b


@kernel
def learn(state, x, scores, label, probability, offer, correct):
    """Add the surrogate of the round to the regression of the chosen label, as `onebit.Aioli`."""
    scratch = state.scratch
    A_inv, v, q = class_inverse(state.A_inv, label), scratch.v[label], scratch.q[label]
    if not q > 0.0 or is_settled(A_inv, x, v, q):  # x is zero, or known
        return False
    bend, g = binary_surrogate(scores[label], correct == 1, state.c)
    if 0 < correct < 1:  # a grade: the losses of both bits, weighted by it
        g -= correct
    weight = bend / (1.0 + bend * q)
    step = -0.5 * g + weight * (0.5 * g * q - scratch.m[label])
    for j in range(v.size):
        state.h[j, label] += step * v[j]
    subtract(A_inv, v, weight)
    return True


FAST_CB = Kernels("fast_cb", score, policy, learn)


class FastCB(Learner):
    """FastCB: explores in proportion to the errors of the best label, by logistic regression.

    A logistic regression for each label predicts the chance that it would be wrong, from the rounds
    in which it was chosen. Other labels are chosen the more rarely, the larger their chance of a
    mistake is compared with that of the best label: where some label is almost surely right, hardly
    anything is explored. Its regret grows with the mistakes of the best labels, not with the number
    of rounds.

    Parameters
    ----------
    gamma : float > 0 or "theory", default="theory"
        The larger it is, the less is explored. "theory" is that of the bound for `horizon` rounds.
    B : float > 0, default=1.0
        Largest norm ||theta_k|| of the weights of the labels. theta_k . x is the log odds that
        label k is right.
    R : float > 0, default=1.0
        Largest norm ||x|| of an example. Longer ones are learned from, but void the bound.
    regularization : float > 0 or None, default=None
        lambda, the weight of ||theta_k||^2. None is 1 / B^2.
    horizon : int >= 1, default=10_000
        T, the expected number of rounds, for gamma="theory".
    comparator_loss : float >= 0, default=0
        L*, the expected mistakes of the best labels in these rounds, for gamma="theory".
    classes : array-like, optional
        The labels. Needed to `decide` before any `fit`.
    random_state : int, RandomState instance or None, default=None
        Seed of the exploration.

    Notes
    -----
    The paper reduces contextual bandits to any online regression with logarithmic loss. Here it is
    `Aioli` for each label, whose regret is of order d B R ln T.

    The algorithm is as the authors describe it; the constants were derived anew. With f_k the
    predicted and f*_k the true chance of a mistake, b the label of least f, a that of least f*, F*
    the sum of p_k f*_k, F that of p_k f_k, and S the sum of p_k (f_k - f*_k)^2 / (f_k + f*_k), the
    expected regret of a round is

        F* - f*_a = (F - f_b) + (F* - F) + (f_b - f*_a).

    The first part is at most K f_b / gamma. By the inequality of the means, the second is at most K
    / (2 gamma) (F + F*) + gamma S / (2 K). In the third, let f*_a < f_b, or it is negative. With
    gamma >= 10 K and f_a <= 2 f_b it is at most 0.775 gamma p_a (f_a - f*_a)^2 / (f_a + f*_a) +
    0.645 K f_b / gamma, by the same inequality and 1 / p_a = K + gamma (f_a - f_b) / f_b; with
    f_a > 2 f_b it is at most f_b, which is at most 3.3 gamma times the term of a in S. As F is at
    most 1.06 F* + 10.3 S, the regret of a round is at most

        2.8 K / gamma F* + 3.7 gamma S.

    Each (f - f*)^2 / (f + f*) is at most twice a squared Hellinger distance, and so twice a
    Kullback-Leibler divergence; these sum to the regret of the regressions, Reg, in expectation. So
    if each label has a logistic model, the expected mistakes are at most

        (L* + 7.4 gamma Reg) / (1 - 2.8 K / gamma),

    `onebit.theory.bounds.fast_cb`: L* + O(sqrt(K L* Reg) + K Reg) for the best gamma.

    References
    ----------
    D. J. Foster and A. Krishnamurthy. Efficient first-order contextual bandits: prediction,
    allocation, and triangular discrimination. NeurIPS 2021; arXiv:2107.02237.

    Examples
    --------
    >>> from onebit import FastCB, play
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.preprocessing import normalize
    >>> X, y = load_digits(return_X_y=True)
    >>> play(FastCB(B=10, random_state=0), normalize(X), y).n_mistakes
    288
    """

    takes_rewards = True
    reference = "Foster, Krishnamurthy 2021"
    cost = Cost("d^2 K")
    bound = bounds.FAST_CB

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "gamma": [POSITIVE, StrOptions({"theory"})],
        "B": [POSITIVE],
        "R": [POSITIVE],
        "regularization": [POSITIVE, None],
        "horizon": [Interval(Integral, 1, None, closed="left")],
        "comparator_loss": [NOT_NEGATIVE],
    }

    def __init__(
        self,
        gamma: float | str = "theory",
        B: float = 1.0,
        R: float = 1.0,
        regularization: float | None = None,
        horizon: int = 10_000,
        comparator_loss: float = 0,
        *,
        classes: Any = None,
        random_state: Any = None,
    ) -> None:
        self.gamma = gamma
        self.B = B
        self.R = R
        self.regularization = regularization
        self.horizon = horizon
        self.comparator_loss = comparator_loss
        self.classes = classes
        self.random_state = random_state

    def _begin(self, n_features: int, n_classes: int, rng: np.ndarray) -> tuple[Kernels, Any]:
        B, R = float(self.B), float(self.R)
        lambda_ = 1.0 / B**2 if self.regularization is None else float(self.regularization)
        if self.gamma == "theory":
            regret = bounds.fast_cb_regret(self.horizon, n_features, n_classes, B, R, lambda_)
            gamma = bounds.fast_cb_gamma(n_classes, float(self.comparator_loss), regret)
        else:
            gamma = float(self.gamma)
        scratch = Scratch(
            m=np.zeros(n_classes), v=np.zeros((n_classes, n_features)), q=np.zeros(n_classes)
        )
        return FAST_CB, State(
            h=np.zeros((n_features, n_classes)),
            A_inv=new_inverses(n_classes, n_features, lambda_, any_size=True),
            c=1.0 / (2.0 * (1.0 + B * R)),
            gamma=gamma,
            rng=rng,
            scratch=scratch,
        )
