"""AROW, adaptive regularisation of weight vectors, full and diagonal."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from sklearn.utils._param_validation import StrOptions

from onebit.core import LINEAR, Cost, Kernels, Learner, kernel, lean_kernel
from onebit.core.ranges import POSITIVE
from onebit.core.state import Generator, Variances, Weights, Within
from onebit.numerics.argmax import argmax_except
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


class State(NamedTuple):
    """A Gaussian over the weights.

    Attributes
    ----------
    W
        The means mu.
    Sigma
        The covariance, of size d K, or the variances.
    r
        Regularisation.
    """

    W: Weights
    Sigma: Annotated[Inverse, Within(n="weights")] | Variances
    r: float
    rng: Generator


@kernel
def learn_full(state, x, scores, label, probability, offer, truth):
    """With z = (e_y - e_j) (x) x: mu += alpha Sigma z, Sigma -= beta Sigma z z' Sigma.

    Unlike in the paper, there is no update where z' Sigma z is only rounding error.
    """
    y = truth
    j = argmax_except(scores, y)
    m = scores[y] - scores[j]
    if m >= 1.0:
        return False
    z = difference(x, y, j, 1.0, scores.size)
    Sigma_z, v, settled = products_along(state.Sigma, z)
    if settled:
        return False
    beta = 1.0 / (v + state.r)
    alpha = (1.0 - m) * beta
    rank_one_step(state.W, state.Sigma, Sigma_z, beta, -alpha)
    return True


@lean_kernel
def learn_diagonal(state, x, scores, label, probability, offer, truth):
    """As `learn_full`, with only the diagonal of Sigma^{-1}, that is 1 + sum x_i^2 / r."""
    W, Sigma, r = state.W, state.Sigma, state.r
    y = truth
    j = argmax_except(scores, y)
    m = scores[y] - scores[j]
    if m >= 1.0:
        return False
    v = 0.0
    for n in range(x.indices.size):
        i, x_i = x.indices[n], x.values[n]
        v += x_i * x_i * (Sigma[i, y] + Sigma[i, j])
    beta = 1.0 / (v + r)
    alpha = (1.0 - m) * beta
    for n in range(x.indices.size):
        i, x_i = x.indices[n], x.values[n]
        W[i, y] += alpha * Sigma[i, y] * x_i
        W[i, j] -= alpha * Sigma[i, j] * x_i
        Sigma[i, y] /= 1.0 + Sigma[i, y] * x_i * x_i / r
        Sigma[i, j] /= 1.0 + Sigma[i, j] * x_i * x_i / r
    return True


FULL = Kernels("full", linear_scores, greedy, learn_full)
DIAGONAL = Kernels("diagonal", linear_scores, greedy, learn_diagonal)


class AROW(Learner):
    """AROW: adaptive regularisation of weight vectors, a strong full-information baseline.

    It keeps a Gaussian over the weights and chooses the label with the highest mean score. It
    learns whenever the true label leads the best other label by less than one: the means move most
    where the weights are least certain, as far as `r` allows, and the weights of the features seen
    become more certain.

    Parameters
    ----------
    r : float > 0, default=1.0
        Regularisation. A large r means small steps and little trust in any one example. Crammer and
        Gentile tune it.
    covariance : {"diagonal", "full"}, default="diagonal"
        "full" keeps a matrix of (d K)^2 numbers. "diagonal" keeps one variance for each weight.
    classes : array-like, optional
        The labels. Needed to `decide` before any `fit`.
    random_state : int, RandomState instance or None, default=None
        Seed. AROW itself never explores.

    Notes
    -----
    This is the multiclass version with a single competing label j, the best other one. In full form
    Sigma^{-1} = I + sum z z' / r, and the means are those that the second-order Perceptron with a =
    r would have after the same updates. The mistake bound, where A = r Sigma^{-1} and N is the
    number of updates on right labels, is the paper's for two classes; its proof goes through with z
    in place of y x.

    Two diagonal forms are in use: one keeps the diagonal of Sigma^{-1}, so that 1 / Sigma grows by
    x^2 / r, and the other that of Sigma, which falls by beta Sigma^2 x^2. This is the first, in
    which a variance depends only on the values of its own feature.

    References
    ----------
    K. Crammer, A. Kulesza and M. Dredze. Adaptive regularization of weight vectors. NIPS 2009;
    Machine Learning 91(2), 2013.

    Examples
    --------
    >>> from onebit import AROW, play, streams
    >>> X, y = streams.synnonsep(10_000, seed=0)
    >>> play(AROW(), X, y).n_mistakes
    522
    """

    feedback = "full"
    reference = "Crammer, Kulesza, Dredze 2009"
    cost = Cost(LINEAR, full="(d K)^2")
    bound = bounds.AROW
    forms: ClassVar[list[dict[str, Any]]] = [{}, {"covariance": "full"}]

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "r": [POSITIVE],
        "covariance": [StrOptions({"diagonal", "full"})],
    }

    def __init__(
        self,
        r: float = 1.0,
        covariance: str = "diagonal",
        *,
        classes: Any = None,
        random_state: Any = None,
    ) -> None:
        self.r = r
        self.covariance = covariance
        self.classes = classes
        self.random_state = random_state

    def _begin(self, n_features: int, n_classes: int, rng: np.ndarray) -> tuple[Kernels, Any]:
        W, r = np.zeros((n_features, n_classes)), float(self.r)
        if self.covariance == "full":
            return FULL, State(W, new_inverse(W.size, 1.0), r, rng)
        return DIAGONAL, State(W, np.ones_like(W), r, rng)
