"""Newtron, full, and PNewtron, its diagonal form."""

from __future__ import annotations

import math
from numbers import Real
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from scipy.special import log_softmax
from scipy.special import softmax as softmax_of
from sklearn.utils._param_validation import Interval, StrOptions

from onebit.core import LINEAR, Cost, Kernels, Learner, kernel, lean_kernel
from onebit.core.compiling import no_alias
from onebit.core.generator import uniform
from onebit.core.offer import n_on_offer, on_offer
from onebit.core.ranges import POSITIVE
from onebit.core.state import Generator, Precisions, Weights, Within
from onebit.numerics.argmax import argmax
from onebit.numerics.linear import Scaled, linear_scores, new_scaled, scaled_scores, weight_norm
from onebit.numerics.newton import check_ball, newton_step
from onebit.numerics.second_order import Inverse, new_inverse, outer
from onebit.numerics.softmax import softmax
from onebit.theory import bounds


class Parameters(NamedTuple):
    """The learner's parameters, as in the paper."""

    gamma: float
    alpha: float
    beta: float
    D: float


class Scratch(NamedTuple):
    """p: softmax(alpha W'x), of all labels or of those on offer."""

    p: np.ndarray


class FullState(NamedTuple):
    """Weights, with the inverse of A.

    Attributes
    ----------
    W
        The weights W'.
    W_free
        W'' = -A^{-1} b, before the projection.
    A_inv
        A^{-1} / D.
    """

    W: Weights
    W_free: Weights
    A_inv: Annotated[Inverse, Within(n="weights")]
    parameters: Parameters
    rng: Generator
    scratch: Scratch

    def check(self) -> None:
        """Check that W is in the ball."""
        check_ball(self.W, self.parameters.D)


class DiagonalState(NamedTuple):
    """Weights, with the diagonal of A.

    Attributes
    ----------
    W
        The weights W' = scale V with V = W'' = -b / A.
    A, b
        The diagonal of the matrix, and the vector of the paper.
    """

    W: Scaled
    A: Precisions
    b: Weights
    parameters: Parameters
    rng: Generator
    scratch: Scratch


@lean_kernel
def score_full(state, x, scores):
    """Fill the scores W'x, and p = softmax(alpha W'x) for later."""
    linear_scores(state, x, scores)
    softmax(scores, state.parameters.alpha, state.scratch.p)


@lean_kernel
def score_diagonal(state, x, scores):
    """Fill the scores W'x, and p = softmax(alpha W'x) for later."""
    scaled_scores(state, x, scores)
    softmax(scores, state.parameters.alpha, state.scratch.p)


@lean_kernel
def restrict(state, scores, offer):
    """Recompute p, unless all labels are on offer, as `score` assumes."""
    if n_on_offer(offer, scores.size) < scores.size:
        softmax(scores, state.parameters.alpha, state.scratch.p, offer)


@lean_kernel
def policy(state, x, scores, offer, p):
    """Fill p' = (1 - gamma) p + gamma / K."""
    restrict(state, scores, offer)
    gamma, K = state.parameters.gamma, n_on_offer(offer, p.size)
    if offer is not None:
        p[:] = 0.0
    for k in on_offer(offer, p.size):
        p[k] = (1.0 - gamma) * state.scratch.p[k] + gamma / K
    return argmax(scores, offer)


@lean_kernel
def estimate(state, scores, label, probability, offer, correct):
    """Return r and kappa, where g = r (1/K 1 - e_label) (x) x estimates (p - e_y) (x) x."""
    restrict(state, scores, offer)
    p_label = state.scratch.p[label]
    if correct:
        return (1.0 - p_label) / probability, probability
    return -p_label / probability, 1.0


@kernel
def learn_full(state, x, scores, label, probability, offer, correct):
    """Follow the approximate leader: the minimiser of the sum of all f_t in the ball.

    f_t(W) = <g, W - W'> + kappa beta / 2 <g, W - W'>^2. Times D, as A starts as I / D, it is
    slope <z, W - W'> + 1/2 <z, W - W'>^2 with z = sqrt(kappa beta D) g and slope z = D g.
    """
    K, D = n_on_offer(offer, scores.size), state.parameters.D
    r, kappa = estimate(state, scores, label, probability, offer, correct)
    root = math.sqrt(kappa * state.parameters.beta * D)
    c = np.zeros(scores.size)
    for k in on_offer(offer, c.size):
        c[k] = root * r / K
    c[label] -= root * r
    return newton_step(state, outer(c, x), np.dot(c, scores), D / root, D)


@lean_kernel
def descend_diagonally(state, x, scores, label, offer, own, others, step, curvature):
    """Do A += curvature g^2, b += step g and W'' = -b / A; return ||W''||.

    The row of `label` in g is `own` x and that of all other classes on offer is `others` x. The
    scores and p are no longer needed: their memory is reused for the changes of the squares, class
    by class, and for these factors of x.
    """
    no_alias()
    W, V, A, b, growth, factors = state.W, state.W.V, state.A, state.b, scores, state.scratch.p
    changes = 0
    for k in range(growth.size):
        growth[k] = factors[k] = 0.0
    for k in on_offer(offer, factors.size):
        factors[k] = others
    factors[label] = own
    for i in range(x.indices.size):
        j, x_j = x.indices[i], x.values[i]
        if x_j != 0.0:  # so that dense and sparse copies of a row count the same number of changes
            for k in range(growth.size):
                g = factors[k] * x_j
                A[j, k] += curvature * g * g
                b[j, k] += step * g
                w = -b[j, k] / A[j, k]
                growth[k] += w * w - V[j, k] * V[j, k]
                V[j, k] = w
            changes += 1
    for k in range(growth.size):
        W.squares[()] += growth[k]
    W.changes[()] += changes
    W.scale[()] = 1.0
    return weight_norm(W)


@lean_kernel
def total(scores, offer):
    """Return the sum of the scores of the labels on offer."""
    total = 0.0
    for k in on_offer(offer, scores.size):
        total += scores[k]
    return total


@lean_kernel
def learn_diagonal(state, x, scores, label, probability, offer, correct):
    """Do as `learn_full` does, with only the diagonal of A and the Euclidean projection."""
    D = state.parameters.D
    K = n_on_offer(offer, scores.size)
    r, kappa = estimate(state, scores, label, probability, offer, correct)
    own, others = r / K - r, r / K
    curvature = kappa * state.parameters.beta
    gw = others * total(scores, offer) - r * scores[label]
    step = 1.0 - curvature * gw
    norm = descend_diagonally(state, x, scores, label, offer, own, others, step, curvature)
    if norm > D:
        state.W.scale[()] = D / norm
    return r != 0.0


@lean_kernel
def learn_soba2017(state, x, scores, label, probability, offer, correct):
    """Learn as in the code of SOBA's authors, with the diagonal of A.

    Given the label, the round explored with probability gamma / K / p'_label. This is drawn here,
    after the label; the joint distribution is the same as if it had been drawn before.
    """
    K, D = n_on_offer(offer, scores.size), state.parameters.D
    r, kappa = estimate(state, scores, label, probability, offer, correct)
    own, others = -r / K, r / K
    curvature = kappa * state.parameters.beta
    gw = others * (total(scores, offer) - 2.0 * scores[label])
    if uniform(state.rng) < state.parameters.gamma / K / probability:
        gw = 0.0
    step = 1.0 - curvature * gw
    norm = descend_diagonally(state, x, scores, label, offer, own, others, step, curvature)
    if norm > 0.0:
        state.W.scale[()] = D / norm
    return r != 0.0


FULL = Kernels("full", score_full, policy, learn_full)
DIAGONAL = Kernels("diagonal", score_diagonal, policy, learn_diagonal)
SOBA2017 = Kernels("soba2017", score_diagonal, policy, learn_soba2017)


class Newtron(Learner):
    """Newtron: online Newton steps on the logistic loss, with a gradient estimated from one bit.

    It draws its label from a softmax of the scores, or with probability `gamma` uniformly at
    random. Right or wrong, every label gives an unbiased estimate g of the gradient of the logistic
    loss, and from it a quadratic bound of the loss. The weights always minimise the sum of these
    bounds over the ball of radius `D`.

    Parameters
    ----------
    gamma : float in [0, 1], default=0.01
        Share of the rounds that choose a label uniformly, not by the softmax. The authors used
        0.01, 0.006 and 0.05 on SynSep, SynNonSep and Reuters4.
    alpha : float > 0, default=10.0
        Sharpness of the softmax: p = softmax(alpha W x), loss -ln(p_y) / alpha.
    beta : float > 0, default=0.01
        Curvature of the quadratic bounds. The authors used 0.01 on SynSep and SynNonSep and 0.0001
        on Reuters4.
    D : float > 0, default=1.0
        Largest norm ||W||_F of the weights. The minimised sum also has the term ||W||^2 / (2 D).
    covariance : {"diagonal", "full"}, default="diagonal"
        "full" is Newtron, for which the theorems hold; it keeps a matrix of (d K)^2 numbers and
        projects in its norm. "diagonal" is the authors' PNewtron, for many features, with the
        Euclidean projection.
    variant : {"paper", "soba2017"}, default="paper"
        "soba2017" is the diagonal form as in the code that the authors of SOBA released. See the
        notes.
    classes : array-like, optional
        The labels. Needed to `decide` before any `fit`.
    random_state : int, RandomState instance or None, default=None
        Seed of the labels drawn.

    Notes
    -----
    With p' the distribution of the label, g = (1 - p_y) / p'_y (1/K 1 - e_y) (x) x after a right
    label y, and g = p_k / p'_k (e_k - 1/K 1) (x) x after a wrong label k; its expectation is
    (p - e_y) (x) x, the gradient. The estimator and the choice of kappa, p'_y after a right label
    and 1 after a wrong one, are reconstructed from later accounts, such as SOBA's, and were derived
    anew.

    The variant "soba2017" differs in three ways. The row of the label in g has weight 1/K instead
    of 1 - 1/K, so the expectation of g is 2/K times the gradient. In rounds that explore, with
    probability gamma, W' is taken as zero in the update of b. W' is rescaled to norm D in every
    round; while W'' is zero it stays zero (there the released code divides by zero). The label does
    not reveal whether a round explored. This is drawn in `learn` from its probability given the
    label, which leaves the distribution of runs the same.

    In full form a round takes O((d K)^2) while W'' is inside the ball. Outside, the projection
    takes m products with a matrix of (d K)^2 numbers, with m at most d K; on 640 weights of the
    digits data of scikit-learn it is 17 with the default parameters.

    References
    ----------
    E. Hazan and S. Kale. Newtron: an efficient bandit algorithm for online multiclass prediction.
    NIPS 2011.

    A. Beygelzimer, F. Orabona and C. Zhang. Efficient online bandit multiclass learning with
    O~(sqrt(T)) regret. arXiv:1702.07958, Appendix D.

    Examples
    --------
    >>> from onebit import Newtron, play, streams
    >>> X, y = streams.synsep(10_000, seed=0)
    >>> play(Newtron(gamma=0.01, random_state=0), X, y).n_mistakes
    335
    """

    reference = "Hazan, Kale 2011"
    cost = Cost(LINEAR, full="(d K)^2, m (d K)^2 when projecting")
    bound = bounds.NEWTRON
    forms: ClassVar[list[dict[str, Any]]] = [
        {},
        {"covariance": "full"},
        {"variant": "soba2017"},
    ]

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "gamma": [Interval(Real, 0, 1, closed="both")],
        "alpha": [POSITIVE],
        "beta": [POSITIVE],
        "D": [POSITIVE],
        "covariance": [StrOptions({"diagonal", "full"})],
        "variant": [StrOptions({"paper", "soba2017"})],
    }

    def __init__(
        self,
        gamma: float = 0.01,
        alpha: float = 10.0,
        beta: float = 0.01,
        D: float = 1.0,
        covariance: str = "diagonal",
        variant: str = "paper",
        *,
        classes: Any = None,
        random_state: Any = None,
    ) -> None:
        self.gamma = gamma
        self.alpha = alpha
        self.beta = beta
        self.D = D
        self.covariance = covariance
        self.variant = variant
        self.classes = classes
        self.random_state = random_state

    def _inverse_temperature(self, state: Any) -> float | None:
        return state.parameters.alpha

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return p = softmax(alpha W x) for each row of `X`: the model, without `gamma`."""
        run, scores, _ = self._evaluate(X)
        return softmax_of(run.state.parameters.alpha * scores, axis=1)

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Return the logarithms of `predict_proba`, exact also where those are nearly zero."""
        run, scores, _ = self._evaluate(X)
        return log_softmax(run.state.parameters.alpha * scores, axis=1)

    def _begin(self, n_features: int, n_classes: int, rng: np.ndarray) -> tuple[Kernels, Any]:
        parameters = Parameters(
            float(self.gamma), float(self.alpha), float(self.beta), float(self.D)
        )
        scratch = Scratch(np.zeros(n_classes))
        if self.covariance == "full":
            if self.variant == "soba2017":
                raise ValueError("variant='soba2017' of Newtron has only covariance='diagonal'")
            W = np.zeros((n_features, n_classes))
            A_inv = new_inverse(W.size, 1.0)
            return FULL, FullState(W, np.zeros_like(W), A_inv, parameters, rng, scratch)
        kernels = DIAGONAL if self.variant == "paper" else SOBA2017
        A = np.full((n_features, n_classes), 1.0 / parameters.D)
        scaled = new_scaled(n_features, n_classes)
        return kernels, DiagonalState(scaled, A, np.zeros_like(A), parameters, rng, scratch)
