"""LinTS: a ridge regression for each label, and Thompson sampling."""

from __future__ import annotations

import math
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np

from onebit.core import Cost, Kernels, Learner, lean_kernel
from onebit.core.offer import on_offer
from onebit.core.ranges import NOT_NEGATIVE, POSITIVE
from onebit.core.run import Run
from onebit.core.state import Generator, Weights, Within
from onebit.core.terms import Utility
from onebit.learners.lin_ucb import learn, score
from onebit.numerics.second_order import Inverse, new_inverses
from onebit.numerics.values import linear_policy
from onebit.numerics.winning import ROOM, winning_probabilities
from onebit.theory import bounds


class Scratch(NamedTuple):
    """What `score` and `policy` compute of x.

    Attributes
    ----------
    v, n
        As in `LinUCB`.
    deviations
        The standard deviations of the draws.
    room
        Memory for the integrals of the draws.
    """

    v: np.ndarray
    n: np.ndarray
    deviations: np.ndarray
    room: np.ndarray


class State(NamedTuple):
    """The posterior of each label's weights.

    Attributes
    ----------
    W
        Means of the weights.
    A_inv
        The paper's B^{-1} of each label.
    v
        Width of the draws.
    """

    W: Weights
    A_inv: Annotated[Inverse, Within(n="features", each="classes")]
    v: float
    rng: Generator
    scratch: Scratch


@lean_kernel
def policy(state, x, scores, offer, p):
    """Algorithm 1: fill the probability that a label's draw from N(score, v^2 n) is the largest."""
    scratch = state.scratch
    for k in on_offer(offer, p.size):
        scratch.deviations[k] = state.v * math.sqrt(scratch.n[k])
    return winning_probabilities(scores, scratch.deviations, p, scratch.room, offer)


LIN_TS = Kernels("lin_ts", score, policy, learn)


class LinTS(Learner):
    """Thompson sampling with a linear regression for each label.

    Each label has a linear regression of the bit on x, fitted to the rounds in which that label was
    chosen, as in `LinUCB`. Its weights are drawn from their posterior, a normal distribution, and
    the label with the highest score is chosen.

    Parameters
    ----------
    v : float >= 0, default=0.2
        Width of the draws: the standard deviation of a score is v sqrt(x' B^{-1} x). 0 is greedy;
        see the notes for the value of the paper.
    regularization : float > 0, default=1.0
        The weight of ||mu||^2. The paper has 1.
    classes : array-like, optional
        The labels. Needed to `decide` before any `fit`.
    random_state : int, RandomState instance or None, default=None
        Seed of the exploration.

    Notes
    -----
    The paper has one weight vector for all labels, each of which comes with features of its own.
    The same algorithm results if each label has the features of x in a block of its own, which
    makes the draws of different labels independent. Instead of the weights, the label itself is
    drawn, with the probability that its score is the largest, computed by quadrature to within
    1e-7.

    If v is the standard deviation of the noise, draws are those of the posterior. A bit that is
    right with probability p has the deviation sqrt(p (1 - p)), at most 1/2 and 0.4 for p = 0.2. As
    found by Chapelle and Li (2011), draws half as wide as the posterior are right more often: hence
    0.2. In earlier versions v was 1 by default, as if a bit had four times the largest variance
    that it can have: where labels are seldom right, that chooses them nearly at random. ``onebit
    lab run clicks`` compares both and other values.

    The v of the paper's bound grows with d and ln t: R sqrt(9 d ln(t / delta)), where R = 1/2 for
    bits; `onebit.theory.bounds.lin_ts_v` returns it. As for `LinUCB`, constants do better in
    practice, and are what libraries use.

    References
    ----------
    S. Agrawal and N. Goyal. Thompson sampling for contextual bandits with linear payoffs. ICML
    2013; arXiv:1209.3352. Algorithm 1. O. Chapelle and L. Li. An empirical evaluation of Thompson
    sampling. NIPS 2011.

    Examples
    --------
    >>> from onebit import LinTS, play
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.preprocessing import normalize
    >>> X, y = load_digits(return_X_y=True)
    >>> play(LinTS(v=0.3, random_state=0), normalize(X), y).n_mistakes
    527
    """

    takes_rewards = True
    reference = "Agrawal, Goyal 2013"
    cost = Cost("d^2 K")
    bound = bounds.LIN_TS

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "v": [NOT_NEGATIVE],
        "regularization": [POSITIVE],
    }

    def __init__(
        self,
        v: float = 0.2,
        regularization: float = 1.0,
        *,
        classes: Any = None,
        random_state: Any = None,
    ) -> None:
        self.v = v
        self.regularization = regularization
        self.classes = classes
        self.random_state = random_state

    def _begin(self, n_features: int, n_classes: int, rng: np.ndarray) -> tuple[Kernels, Any]:
        W = np.zeros((n_features, n_classes))
        A_inv = new_inverses(n_classes, n_features, float(self.regularization), any_size=True)
        scratch = Scratch(
            v=np.zeros((n_classes, n_features)),
            n=np.zeros(n_classes),
            deviations=np.zeros(n_classes),
            room=np.zeros((ROOM, n_classes)),
        )
        return LIN_TS, State(W, A_inv, float(self.v), rng, scratch)

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
        deviations = utility.worth * run.state.scratch.deviations
        return linear_policy(utility.values(scores), deviations, offer, p)
