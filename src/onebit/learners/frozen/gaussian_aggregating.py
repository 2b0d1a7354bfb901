"""An aggregating forecaster for multiclass logistic regression with a normal posterior."""

from __future__ import annotations

import math
from numbers import Integral
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from sklearn.utils._param_validation import Interval

from onebit.core import Cost, Kernels, ProbabilityLearner, kernel
from onebit.core.ranges import POSITIVE
from onebit.core.state import Field, Generator, Within
from onebit.numerics.exploration import greedy
from onebit.numerics.logistic_surrogate import (
    Parameters,
    Scratch,
    check_basis,
    class_basis,
    fill_products,
    new_scratch,
    safe_parameters,
    update,
)
from onebit.numerics.mixture import log_mixture
from onebit.numerics.second_order import Inverse, new_inverse
from onebit.theory import bounds


class State(NamedTuple):
    """A Gaussian over the weights, in the basis of `onebit.learners.folklore.State`.

    Attributes
    ----------
    A_inv
        A^{-1}.
    h
        A^{-1} G.
    Q
        The basis of the classes.
    nodes
        Equally weighted points of R^{K-1} that represent N(0, I).
    """

    A_inv: Annotated[Inverse, Within(n="contrast_weights")]
    h: Annotated[np.ndarray, Field("features", "contrasts")]
    Q: Annotated[np.ndarray, Field("classes", "contrasts")]
    nodes: Annotated[np.ndarray, Field("n_nodes", "contrasts", least=-100.0, most=100.0)]
    parameters: Parameters
    scratch: Scratch
    rng: Generator

    def check(self) -> None:
        """Check that Q is the basis."""
        check_basis(self.Q)


@kernel
def score(state, x, scores):
    """Fill ln E sigma(z), z = Q u with u from N(g0, A~), g0 = -1/2 mat(A^{-1} G) x and A~ = T / 2.

    With L L' = A~, u is g0 + L times a node.
    """
    fill_products(state, x)
    Q, nodes, (_, T, hx) = state.Q, state.nodes, state.scratch
    if symmetric(T, hx):  # the classes are exchangeable, in the distribution if not in its nodes
        scores[:] = -math.log(scores.size)
        return
    L = root(0.25 * (T + T.T))
    u = np.dot(nodes, L.T) - 0.5 * hx
    log_weights = np.full(nodes.shape[0], -math.log(nodes.shape[0]))
    log_mixture(np.dot(u, Q.T), log_weights, scores)


@kernel
def symmetric(T, hx):
    """Return whether z has mean zero and the same variance in all directions: x is new."""
    for k in range(hx.size):
        if hx[k] != 0.0 or T[k, k] != T[0, 0]:
            return False
        for k_2 in range(hx.size):
            if k_2 != k and T[k, k_2] != 0.0:
                return False
    return True


@kernel
def root(A):
    """Return a lower triangular L with L L' = A, which may be singular."""
    L = np.zeros(A.shape)
    for j in range(A.shape[0]):
        for i in range(j, A.shape[0]):
            rest = A[i, j]
            for k in range(j):
                rest -= L[i, k] * L[j, k]
            if i == j:
                # A pivot this small is zero up to rounding, and then so is its column.
                if rest <= 1e-15 * A[j, j]:
                    break
                L[j, j] = math.sqrt(rest)
            else:
                L[i, j] = rest / L[j, j]
    return L


@kernel
def learn(state, x, scores, label, probability, offer, truth):
    """Add the surrogate of the loss around the scores z_t: P_{t+1} is P_t exp(-l^_t(W))."""
    y = np.zeros(scores.size)
    y[truth] = 1.0
    return update(state, x, scores, y)


KERNELS = Kernels("gaussian_aggregating", score, greedy, learn)


class GaussianAggregating(ProbabilityLearner):
    """An aggregating forecaster with a normal posterior, for multiclass logistic regression.

    Its distribution over the weights W is normal: every round multiplies it by exp(-l^(W)), where
    l^ is a quadratic surrogate of the loss of the round. The prediction for x is the mean of
    sigma(W x) over that distribution, where sigma is the softmax. It is close to 1 / K where x is
    new. As only W x matters, the mean is an integral over K numbers, not K d, whatever the number
    of rounds.

    Parameters
    ----------
    B : float > 0, default=1.0
        Largest norm ||w_k|| of a row of the weights it competes with. It sets the curvature of the
        surrogates and the regularisation; the weights themselves are not bounded.
    R : float > 0, default=1.0
        Largest norm ||x|| of an example. Longer ones are learned from, but their surrogates may
        exceed their losses.
    regularization : float > 0 or None, default=None
        lambda; before the first round, W is normal with variance 1 / (2 lambda). None is 2 R / B.
    n_nodes : int >= 2, default=256
        Number of quadrature points for the mean over the K numbers.
    classes : array-like, optional
        The labels. Needed to `decide` before any `fit`.
    random_state : int, RandomState instance or None, default=None
        Seed of the points, which are drawn once. After that the predictions depend only on the
        data.

    Notes
    -----
    **This is not the published algorithm.** Jezequel, Gaillard and Rudi have one with a normal
    distribution and predictions averaged over it, GAF, which could not be reconstructed: where it
    expands its surrogates, and whether it hedges over the possible labels of x, is unknown to us.
    Its regret bound is not claimed for this learner, and none is proven.

    This learner is the aggregating forecaster (`Aggregating`) with the surrogates of `Folklore` in
    place of the losses. With z_t = ln E sigma(W x_t), the logits of the prediction, p = sigma(z_t),
    S(p) = diag(p) - pp' and c = 1 / (2 B R + ln(K - 1) + 2),

        l^_t(W) = l_t + <W x_t - z_t, p - y> + c (W x_t - z_t)' S(p) (W x_t - z_t),

    which is not above the loss where ||W x_t||_inf <= B R; see the notes of `Folklore`. So

        P_t is proportional to exp(-lambda ||W||_F^2 - sum over s < t of l^_s(W)),

    and W x_t has the mean g0 = -1/2 mat(A^{-1} G) x_t and the covariance A~ = 1/2 x_t'A^{-1}x_t, by
    blocks, with A and G as in `Folklore`. Unlike there, no equation has to be solved: averaging
    over P_t pulls the prediction towards 1 / K, as the term for all labels does there.

    The points are scrambled Sobol points, made normal, and their mirror images. They are the same
    for all x, so predictions are a smooth function of x.

    References
    ----------
    R. Jezequel, P. Gaillard and A. Rudi. Mixability made efficient: fast online multiclass logistic
    regression. NeurIPS 2021; arXiv:2110.03960.

    N. Agarwal, S. Kale and J. Zimmert. Efficient methods for online multiclass logistic regression.
    ALT 2022; arXiv:2110.03020.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.preprocessing import normalize
    >>> from onebit import play
    >>> from onebit.learners import GaussianAggregating
    >>> X, y = load_digits(return_X_y=True)
    >>> play(GaussianAggregating(B=10, random_state=0), normalize(X), y).n_mistakes
    136
    """

    reference = "after Jezequel, Gaillard, Rudi 2021"
    cost = Cost("K^3 d^2 + K^2 for each node")
    bound = bounds.GAUSSIAN_AGGREGATING
    feedback = "full"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "B": [POSITIVE],
        "R": [POSITIVE],
        "regularization": [POSITIVE, None],
        "n_nodes": [Interval(Integral, 2, None, closed="left")],
    }

    def __init__(
        self,
        B: float = 1.0,
        R: float = 1.0,
        regularization: float | None = None,
        n_nodes: int = 256,
        *,
        classes: Any = None,
        random_state: Any = None,
    ) -> None:
        self.B = B
        self.R = R
        self.regularization = regularization
        self.n_nodes = n_nodes
        self.classes = classes
        self.random_state = random_state

    def _begin(self, n_features: int, n_classes: int, rng: np.ndarray) -> tuple[Kernels, Any]:
        B, R, m = float(self.B), float(self.R), n_classes - 1
        lambda_ = 2.0 * R / B if self.regularization is None else float(self.regularization)
        return KERNELS, State(
            A_inv=new_inverse(n_features * m, lambda_),
            h=np.zeros((n_features, m)),
            Q=class_basis(n_classes),
            nodes=normal_nodes(self.n_nodes, m, rng),
            parameters=safe_parameters(B, R, n_classes),
            scratch=new_scratch(n_features, n_classes),
            rng=rng,
        )


def normal_nodes(n: int, dimension: int, rng: np.ndarray) -> np.ndarray:
    """Return n points that represent N(0, I): scrambled Sobol points and their mirror images.

    If n is odd, the origin is added. They are determined by `rng`, whose state does not change.
    """
    from scipy.stats import norm, qmc  # which take long to import

    sobol = qmc.Sobol(dimension, rng=np.random.default_rng(rng))
    half = norm.ppf(sobol.random_base2(max(n // 2 - 1, 0).bit_length())[: n // 2])
    return np.ascontiguousarray(np.vstack([half, -half, np.zeros((n % 2, dimension))]))
