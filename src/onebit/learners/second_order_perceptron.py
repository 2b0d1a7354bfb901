"""The multiclass second-order Perceptron, full and diagonal."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from sklearn.utils._param_validation import StrOptions

from onebit.core import LINEAR, Cost, Kernels, Learner, kernel, lean_kernel
from onebit.core.ranges import POSITIVE
from onebit.core.state import Generator, Precisions, Weights, Within
from onebit.numerics.argmax import argmax
from onebit.numerics.exploration import greedy
from onebit.numerics.linear import linear_scores
from onebit.numerics.second_order import (
    Inverse,
    difference,
    new_inverse,
    products_along,
    rank_one_step,
)
from onebit.theory import bounds


class FullState(NamedTuple):
    """Weights W = A^{-1} theta, and A_inv, the inverse of A, of size d K."""

    W: Weights
    A_inv: Annotated[Inverse, Within(n="weights")]
    rng: Generator


class DiagonalState(NamedTuple):
    """W = theta / A elementwise, each of the shape of the weights."""

    W: Weights
    A: Precisions
    theta: Weights
    rng: Generator


class CurrentState(NamedTuple):
    """A and theta as in `DiagonalState`; with the current x in A, no weights are fixed."""

    A: Precisions
    theta: Weights
    rng: Generator


@lean_kernel
def current_scores(state, x, scores):
    """Fill ``scores[k] = sum_j theta_kj x_j / (A_kj + x_j^2)``."""
    A, theta = state.A, state.theta
    scores[:] = 0.0
    for i in range(x.indices.size):
        j, x_j = x.indices[i], x.values[i]
        for k in range(scores.size):
            scores[k] += theta[j, k] * x_j / (A[j, k] + x_j * x_j)


@kernel
def learn_full(state, x, scores, label, probability, offer, truth):
    """On a mistake z = (e_yhat - e_y) (x) x, A += z z', theta -= z.

    Unlike in the paper, there is no update where z' A^{-1} z is only rounding error.
    """
    y, y_hat = truth, argmax(scores)
    if y_hat == y:
        return False
    z = difference(x, y_hat, y, 1.0, scores.size)
    v, q, settled = products_along(state.A_inv, z)
    if settled:
        return False
    wz = scores[y_hat] - scores[y]
    rank_one_step(state.W, state.A_inv, v, 1.0 / (1.0 + q), (wz + 1.0) / (1.0 + q))
    return True


@lean_kernel
def learn_current(state, x, scores, label, probability, offer, truth):
    """On a mistake theta_y += x, theta_yhat -= x, A_y += x^2, A_yhat += x^2."""
    y, y_hat = truth, argmax(scores)
    if y_hat == y:
        return False
    A, theta = state.A, state.theta
    for i in range(x.indices.size):
        j, x_j = x.indices[i], x.values[i]
        theta[j, y] += x_j
        theta[j, y_hat] -= x_j
        A[j, y] += x_j * x_j
        A[j, y_hat] += x_j * x_j
    return True


@lean_kernel
def learn_diagonal(state, x, scores, label, probability, offer, truth):
    """As `learn_current`, and W = theta / A where that changed."""
    if not learn_current(state, x, scores, label, probability, offer, truth):
        return False
    W, A, theta = state.W, state.A, state.theta
    for k in (truth, argmax(scores)):
        for j in x.indices:
            W[j, k] = theta[j, k] / A[j, k]
    return True


FULL = Kernels("full", linear_scores, greedy, learn_full)
DIAGONAL = Kernels("diagonal", linear_scores, greedy, learn_diagonal)
CURRENT = Kernels("current", current_scores, greedy, learn_current)


class SecondOrderPerceptron(Learner):
    """Second-order Perceptron: a full-information baseline, and SOBA's model.

    It chooses the label with the highest score. It learns from its mistakes as the Perceptron does,
    but its steps are smaller in directions that occurred often in earlier mistakes: W = A^{-1}
    theta, where theta is the sum of the Perceptron's updates and A that of their outer products.

    Parameters
    ----------
    a : float > 0, default=1.0
        Regularisation: A starts as a I. Crammer and Gentile tune it.
    covariance : {"diagonal", "full"}, default="diagonal"
        "full" keeps a matrix of (d K)^2 numbers. "diagonal" keeps one number for each weight.
    include_current : bool, default=False
        Whether the x to be classified already counts in A, as in the binary algorithm: its squared
        features are then added to A for the scores. For the diagonal form only.
    classes : array-like, optional
        The labels. Needed to `decide` before any `fit`.
    random_state : int, RandomState instance or None, default=None
        Seed. The second-order Perceptron itself never explores.

    Notes
    -----
    The paper treats two classes. Here the full form is its multiclass version by Kesler's
    construction, with A of size d K: SOBA with every label known, without SOBA's updates on right
    labels. The diagonal form follows Crammer and Gentile (2013), who compare with "a diagonal
    multiclass version" without details: they leave open whether the current x is in A, so both
    readings are offered. In the binary algorithm the question does not matter, since

        v' (A + x x')^{-1} x = v' A^{-1} x / (1 + x' A^{-1} x)

    has the sign of v' A^{-1} x; with a diagonal A the two readings differ. In Kesler's construction
    the vector to be included depends on the unknown label, so `include_current` is refused for the
    full form. With it the scores are not linear in x, and there is no `coef_`.

    References
    ----------
    N. Cesa-Bianchi, A. Conconi and C. Gentile. A second-order Perceptron algorithm. SIAM Journal on
    Computing 34(3), 2005.
    K. Crammer and C. Gentile. Multiclass classification with bandit feedback using adaptive
    regularization. Machine Learning 90(3), 2013.
    Mistake bound: F. Orabona, N. Cesa-Bianchi and C. Gentile. Beyond logarithmic bounds in online
    learning. AISTATS 2012.

    Examples
    --------
    >>> from onebit import SecondOrderPerceptron, play, streams
    >>> X, y = streams.synsep(10_000, seed=0)
    >>> play(SecondOrderPerceptron(), X, y).n_mistakes
    18
    """

    feedback = "full"
    reference = "Cesa-Bianchi, Conconi, Gentile 2005"
    cost = Cost(LINEAR, full="(d K)^2")
    bound = bounds.SECOND_ORDER_PERCEPTRON
    forms: ClassVar[list[dict[str, Any]]] = [
        {},
        {"covariance": "full"},
        {"include_current": True},
    ]

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "a": [POSITIVE],
        "covariance": [StrOptions({"diagonal", "full"})],
        "include_current": ["boolean"],
    }

    def __init__(
        self,
        a: float = 1.0,
        covariance: str = "diagonal",
        include_current: bool = False,
        *,
        classes: Any = None,
        random_state: Any = None,
    ) -> None:
        self.a = a
        self.covariance = covariance
        self.include_current = include_current
        self.classes = classes
        self.random_state = random_state

    def _begin(self, n_features: int, n_classes: int, rng: np.ndarray) -> tuple[Kernels, Any]:
        W = np.zeros((n_features, n_classes))
        if self.covariance == "full":
            if self.include_current:
                raise ValueError(
                    "the 'include_current' parameter of SecondOrderPerceptron must be False with "
                    "covariance='full': what to include depends on the label to be predicted"
                )
            return FULL, FullState(W, new_inverse(W.size, self.a), rng)
        A, theta = np.full_like(W, self.a), np.zeros_like(W)
        if self.include_current:
            return CURRENT, CurrentState(A, theta, rng)
        return DIAGONAL, DiagonalState(W, A, theta, rng)
