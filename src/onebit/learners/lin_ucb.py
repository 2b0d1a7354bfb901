"""LinUCB: a ridge regression for each label, and the highest upper confidence bound."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np

from onebit.core import Cost, Kernels, Learner, kernel, lean_kernel
from onebit.core.ranges import NOT_NEGATIVE, POSITIVE
from onebit.core.run import Run
from onebit.core.state import Generator, Weights, Within
from onebit.core.terms import Utility
from onebit.numerics.exploration import upper_confidence
from onebit.numerics.ridge import ridge_scores, ridge_step
from onebit.numerics.second_order import Inverse, class_inverse, is_settled, new_inverses
from onebit.theory import bounds


class Scratch(NamedTuple):
    """What `score` computes of x.

    Attributes
    ----------
    v
        A_k^{-1} x, a row for each class.
    n
        x' A_k^{-1} x of each class.
    """

    v: np.ndarray
    n: np.ndarray


class State(NamedTuple):
    """The regression of each label.

    Attributes
    ----------
    W
        The paper's theta_a of each label.
    A_inv
        A_a^{-1} of each label.
    width
        alpha^2.
    """

    W: Weights
    A_inv: Annotated[Inverse, Within(n="features", each="classes")]
    width: float
    rng: Generator
    scratch: Scratch


@lean_kernel
def score(state, x, scores):
    """Algorithm 1, line 8, and the square under the root in line 9."""
    ridge_scores(state.W, state.A_inv, x, scores, state.scratch.v, state.scratch.n)


@lean_kernel
def policy(state, x, scores, offer, p):
    """Algorithm 1, lines 9 and 11."""
    return upper_confidence(scores, state.scratch.n, state.width, offer, p)


@kernel
def learn(state, x, scores, label, probability, offer, correct):
    """Algorithm 1, lines 12-13, for the reward 1 or 0.

    Unlike in the paper, there is no update where x' A^{-1} x is only rounding error.
    """
    A_inv, v, n = class_inverse(state.A_inv, label), state.scratch.v[label], state.scratch.n[label]
    if not n > 0.0 or is_settled(A_inv, x, v, n):  # x is zero, or known
        return False
    ridge_step(state.W, A_inv, label, v, n, correct - scores[label])
    return True


LIN_UCB = Kernels("lin_ucb", score, policy, learn)


class LinUCB(Learner):
    """LinUCB with disjoint models: the label with the highest upper confidence bound.

    Each label has a linear regression of the bit on x, fitted to the rounds in which that label was
    chosen. The width of a confidence interval is added to its prediction, and the label with the
    highest sum is chosen. It is the best-known contextual bandit algorithm; feedback for one label
    teaches nothing about the others.

    Parameters
    ----------
    alpha : float >= 0, default=1.0
        Width of the intervals, in standard deviations. 0 is greedy.
    regularization : float > 0, default=1.0
        The weight of ||theta||^2. The paper has 1.
    classes : array-like, optional
        The labels. Needed to `decide` before any `fit`.
    random_state : int, RandomState instance or None, default=None
        Not used: the exploration is deterministic.

    Notes
    -----
    The paper's line 10 breaks ties at random; here the lowest label wins. There is no intercept
    unless you add a constant feature.

    The inverse of each label's matrix, of d^2 numbers, is kept up to date by rank-one updates,
    which `numerics.second_order` collects; no matrix is inverted.

    References
    ----------
    L. Li, W. Chu, J. Langford and R. E. Schapire. A contextual-bandit approach to personalized news
    article recommendation. WWW 2010; arXiv:1003.0146. Algorithm 1.

    Examples
    --------
    >>> from onebit import LinUCB, play
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.preprocessing import normalize
    >>> X, y = load_digits(return_X_y=True)
    >>> play(LinUCB(), normalize(X), y).n_mistakes
    345
    """

    takes_rewards = True
    reference = "Li, Chu, Langford, Schapire 2010"
    cost = Cost("d^2 K")
    bound = bounds.LIN_UCB

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "alpha": [NOT_NEGATIVE],
        "regularization": [POSITIVE],
    }

    def __init__(
        self,
        alpha: float = 1.0,
        regularization: float = 1.0,
        *,
        classes: Any = None,
        random_state: Any = None,
    ) -> None:
        self.alpha = alpha
        self.regularization = regularization
        self.classes = classes
        self.random_state = random_state

    def _begin(self, n_features: int, n_classes: int, rng: np.ndarray) -> tuple[Kernels, Any]:
        W = np.zeros((n_features, n_classes))
        A_inv = new_inverses(n_classes, n_features, float(self.regularization), any_size=True)
        scratch = Scratch(np.zeros((n_classes, n_features)), np.zeros(n_classes))
        return LIN_UCB, State(W, A_inv, float(self.alpha) ** 2, rng, scratch)

    def _knows_probabilities(self, run: Run) -> bool:
        return True  # the scores estimate them

    def _fill_valued_policy(
        self,
        run: Run,
        utility: Utility,
        offer: np.ndarray,
        scores: np.ndarray,
        p: np.ndarray,
        greedy: int,
    ) -> int:
        bounds = scores + np.sqrt(run.state.width * run.state.scratch.n)
        p[:] = 0.0
        p[offer[np.argmax(utility.values(bounds)[offer])]] = 1.0
        return int(offer[np.argmax(utility.values(scores)[offer])])
