"""SOBA, the Second Order Banditron Algorithm, full and diagonal."""

from __future__ import annotations

import math
from numbers import Integral
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from onebit.core import LINEAR, Cost, Kernels, Learner, kernel, lean_kernel
from onebit.core.ranges import NOT_NEGATIVE, PART, POSITIVE
from onebit.core.state import Amount, Count, Generator, Share, Variances, Weights, Within
from onebit.numerics.argmax import argmax_except
from onebit.numerics.exploration import gamma_greedy
from onebit.numerics.linear import linear_scores
from onebit.numerics.second_order import (
    Inverse,
    difference,
    new_inverse,
    products_along,
    rank_one_step,
)
from onebit.theory import bounds


class Progress(NamedTuple):
    """What both forms keep besides their weights.

    Attributes
    ----------
    margins
        Sum of n_s m_s.
    terms
        Sum of n_s z_s' A_s^{-1} z_s.
    rounds
        t - 1.
    """

    margins: Amount
    terms: Amount
    rounds: Count
    adaptive: bool


class FullState(NamedTuple):
    """Weights, with the inverse of A.

    Attributes
    ----------
    W
        Weights.
    A_inv
        The inverse of A, of size d K.
    gamma
        Share of the rounds that explore.
    """

    W: Weights
    A_inv: Annotated[Inverse, Within(n="weights")]
    gamma: Share
    progress: Progress
    rng: Generator


class DiagonalState(NamedTuple):
    """Weights, with the diagonal of A; theta = W / A_inv is not stored.

    Attributes
    ----------
    W
        Weights.
    A_inv
        1 / A, one number for each weight.
    gamma
        Share of the rounds that explore.
    """

    W: Weights
    A_inv: Variances
    gamma: Share
    progress: Progress
    rng: Generator


@lean_kernel
def updates(progress, m):
    """Return whether a round with this m updates (lines 13-16): the sum of n_s m_s stays >= 0."""
    return progress.margins[()] + m >= 0.0


@lean_kernel
def count_update(progress, m, term):
    """Count the margin and the term z' A_t^{-1} z = q / (1 + q) of an update."""
    progress.margins[()] += m
    progress.terms[()] += term


@lean_kernel
def end_round(state, n_classes):
    """Theorem 5: the gamma of the next round, if it adapts; any label may be on offer in it."""
    progress = state.progress
    progress.rounds[()] += 1
    if progress.adaptive:
        t = progress.rounds[()] + 1
        state.gamma[()] = min(1.0, math.sqrt(n_classes * (1.0 + progress.terms[()]) / t))


@kernel
def learn_full(state, x, scores, label, probability, offer, correct):
    """Algorithm 1, lines 8-20; no update where z' A^{-1} z is only rounding error."""
    n_classes = scores.size
    updated = False
    y_bar = argmax_except(scores, label, offer) if correct else -1  # line 10
    if y_bar >= 0:
        y = label
        alpha = 1.0 / math.sqrt(probability)
        z = difference(x, y_bar, y, alpha, n_classes)  # lines 11-12, g = alpha z
        v, q, settled = products_along(state.A_inv, z)
        wz = alpha * (scores[y_bar] - scores[y])
        m = (wz * wz + 2.0 * alpha * wz) / (1.0 + q)  # line 13
        updated = not settled and updates(state.progress, m)
        if updated:
            count_update(state.progress, m, q / (1.0 + q))
            # lines 18-20
            rank_one_step(state.W, state.A_inv, v, 1.0 / (1.0 + q), (wz + alpha) / (1.0 + q))
    end_round(state, n_classes)
    return updated


@lean_kernel
def quadratic_form(A_inv, x, y, y_bar, weight):
    """Return q = z' A^{-1} z for a diagonal A, where z^2 is `weight` x^2."""
    q = 0.0
    for i in range(x.indices.size):
        j, x_j = x.indices[i], x.values[i]
        q += weight * x_j * x_j * (A_inv[j, y] + A_inv[j, y_bar])
    return q


@lean_kernel
def step(W, A_inv, x, y, y_bar, weight):
    """Do lines 18-20 with only the diagonal of A, and return q, taken before the step."""
    q = 0.0
    for i in range(x.indices.size):
        j, x_j = x.indices[i], x.values[i]
        g_j = weight * x_j
        z_j2 = g_j * x_j
        D, D_bar = A_inv[j, y], A_inv[j, y_bar]
        q += z_j2 * (D + D_bar)
        # A + z^2 makes D = 1 / A shrink by r, and (theta + g) / A is then r (W + g D).
        r, r_bar = 1.0 / (1.0 + z_j2 * D), 1.0 / (1.0 + z_j2 * D_bar)
        W[j, y] = r * (W[j, y] + g_j * D)
        W[j, y_bar] = r_bar * (W[j, y_bar] - g_j * D_bar)
        A_inv[j, y] = r * D
        A_inv[j, y_bar] = r_bar * D_bar
    return q


@lean_kernel
def learn_diagonal(state, x, scores, label, probability, offer, correct):
    """Algorithm 1, lines 8-20, with only the diagonal of A."""
    updated = False
    y_bar = argmax_except(scores, label, offer) if correct else -1  # line 10
    if y_bar >= 0:
        W, A_inv, weight = state.W, state.A_inv, 1.0 / probability
        y = label
        alpha = math.sqrt(weight)
        wz = alpha * (scores[y_bar] - scores[y])
        largest_m = wz * wz + 2.0 * alpha * wz  # line 13, before the division by 1 + q
        # As 1 + q >= 1, a round that would update with this larger m updates in any case: most do,
        # and need no q before the step.
        updated = updates(state.progress, largest_m) or updates(
            state.progress, largest_m / (1.0 + quadratic_form(A_inv, x, y, y_bar, weight))
        )
        if updated:
            q = step(W, A_inv, x, y, y_bar, weight)
            share = 1.0 / (1.0 + q)
            count_update(state.progress, share * largest_m, share * q)
    end_round(state, scores.size)
    return updated


FULL = Kernels("full", linear_scores, gamma_greedy, learn_full)
DIAGONAL = Kernels("diagonal", linear_scores, gamma_greedy, learn_diagonal)


class SOBA(Learner):
    """SOBA, the Second Order Banditron Algorithm: the first efficient one with sqrt(T) regret.

    It chooses the label with the highest score or, with probability `gamma`, a label uniformly at
    random, and learns only from labels that were right, as only then the truth is known. The update
    is that of a second-order Perceptron with importance weights. It happens in every round in which
    exploration found that a label other than the greedy one is right, and in rounds with a right
    greedy label as long as earlier mistakes pay for its margin: the sum of n_s m_s never falls
    below zero.

    Parameters
    ----------
    gamma : float in (0, 1], "adaptive" or "theory", default=0.01
        Share of the rounds that choose a random label. "adaptive" sets it round by round as in
        Theorem 5 of the paper; "theory" is that of Theorem 2 for `horizon` rounds or, if a
        comparator's loss is given, that of Theorem 4. The authors find values near 0.01 good on all
        their data.
    a : float > 0, default=1.0
        Regularisation: A starts as a I. The theory requires the largest squared norm of an x; the
        authors' experiments use 1.
    covariance : {"diagonal", "full"}, default="diagonal"
        "full" is Algorithm 1, for which the theorems hold; it keeps a matrix of (d K)^2 numbers.
        "diagonal" is the authors' SOBAdiag, for many features.
    horizon : int >= 2, default=10_000
        With gamma="theory", the number of rounds to come.
    comparator_loss : float >= 0, optional
        With gamma="theory", the hinge loss of the best weights U in these rounds, which Theorem 4
        assumes to be known. None is Theorem 2, for which nothing need be known.
    norm, max_norm : float, default=1
        With a comparator's loss, the norm ||U||, and the length of the longest example.
    classes : array-like, optional
        The labels. Needed to `decide` before any `fit`.
    random_state : int, RandomState instance or None, default=None
        Seed of the exploration.

    Notes
    -----
    In Theorem 5, gamma_t depends on the sum of z_s' A_s^{-1} z_s over all earlier rounds, but z_s
    exists only where the label was right, and the proof needs terms of at most one. The sum here
    goes over the rounds that updated, as in Theorem 3; t counts the rounds with feedback. The
    diagonal form, for which no theorem holds, uses the same q / (1 + q) with its own q.

    The text of Lemma 1 in the paper has the sign of the expected update reversed: the expectation
    of n g is h (e_ybar - e_y) (x) x.

    References
    ----------
    A. Beygelzimer, F. Orabona and C. Zhang. Efficient online bandit multiclass learning with
    O~(sqrt(T)) regret. ICML 2017; arXiv:1702.07958.

    Examples
    --------
    >>> from onebit import SOBA, play, streams
    >>> X, y = streams.synsep(100_000, seed=0)
    >>> play(SOBA(gamma=0.01, random_state=0), X, y).n_mistakes
    10692
    """

    reference = "Beygelzimer, Orabona, Zhang 2017"
    cost = Cost(LINEAR, full="(d K)^2")
    bound = bounds.SOBA
    forms: ClassVar[list[dict[str, Any]]] = [
        {},
        {"covariance": "full"},
        {"gamma": "adaptive"},
        {"gamma": "adaptive", "covariance": "full"},
        {"gamma": "theory", "covariance": "full"},
    ]

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "gamma": [PART, StrOptions({"adaptive", "theory"})],
        "a": [POSITIVE],
        "covariance": [StrOptions({"diagonal", "full"})],
        "horizon": [Interval(Integral, 2, None, closed="left")],
        "comparator_loss": [NOT_NEGATIVE, None],
        "norm": [NOT_NEGATIVE],
        "max_norm": [POSITIVE],
    }

    def __init__(
        self,
        gamma: float | str = 0.01,
        a: float = 1.0,
        covariance: str = "diagonal",
        horizon: int = 10_000,
        comparator_loss: float | None = None,
        norm: float = 1,
        max_norm: float = 1,
        *,
        classes: Any = None,
        random_state: Any = None,
    ) -> None:
        self.gamma = gamma
        self.a = a
        self.covariance = covariance
        self.horizon = horizon
        self.comparator_loss = comparator_loss
        self.norm = norm
        self.max_norm = max_norm
        self.classes = classes
        self.random_state = random_state

    def _begin(self, n_features: int, n_classes: int, rng: np.ndarray) -> tuple[Kernels, Any]:
        adaptive = self.gamma == "adaptive"
        # The first gamma_t of Theorem 5 is min(1, sqrt(K)) = 1.
        gamma = np.array(1.0 if adaptive else bounds.soba_gamma(self, n_features, n_classes))
        progress = Progress(np.zeros(()), np.zeros(()), np.zeros((), dtype=np.int64), adaptive)
        W = np.zeros((n_features, n_classes))
        if self.covariance == "full":
            A_inv = new_inverse(W.size, self.a)
            return FULL, FullState(W, A_inv, gamma, progress, rng)
        return DIAGONAL, DiagonalState(W, np.full_like(W, 1.0 / self.a), gamma, progress, rng)
